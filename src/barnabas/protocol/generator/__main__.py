"""Generates `messages/`, `coordinator_records/` and the tables of both from the schemas: `make protocol`.

A developer runs it when Kafka has a new release. The generated files are checked in, so a difference shows in review.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from barnabas.protocol.generator.emit import COMPILED, HEADER, module_text
from barnabas.protocol.generator.schema import MessageSchema, load_coordinator_records, load_messages

PROTOCOL = Path(__file__).parents[1]
ROOT = PROTOCOL.parents[2]  # the directory of ruff's configuration, also for files that are written elsewhere
WRITTEN = ["messages", "coordinator_records", "api_keys.py", "coordinator_record_types.py"]


def main(target: Path = PROTOCOL) -> None:
    messages, records = load_messages(), load_coordinator_records()
    _write_modules(target / "messages", messages)
    _write_modules(target / "coordinator_records", records)
    (target / "api_keys.py").write_text(api_keys_text(messages))
    (target / "coordinator_record_types.py").write_text(record_types_text(records))
    for arguments in (["check", "-q", "--fix", "--select", "I,F401"], ["format", "-q"]):
        files = [str(target / name) for name in WRITTEN]
        subprocess.run([sys.executable, "-m", "ruff", *arguments, *files], cwd=ROOT, check=True)


def _write_modules(folder: Path, messages: list[MessageSchema]) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    (folder / "__init__.py").write_text("")
    compiled = compiled_modules()
    for message in messages:
        text = module_text(message)
        if f"barnabas.protocol.{folder.name}.{message.module}" in compiled:
            text = text.replace(HEADER, f"{HEADER}\n{COMPILED}", 1)
        (folder / f"{message.module}.py").write_text(text)


def compiled_modules() -> set[str]:
    groups: dict[str, list[str]] = tomllib.loads((PROTOCOL.parents[1] / "compiled.toml").read_text())
    return {module for modules in groups.values() for module in modules}


def api_keys_text(messages: list[MessageSchema]) -> str:
    """The table of APIs, one line each, in the order of their keys."""
    apis = sorted((message for message in messages if message.kind == "request"), key=lambda message: message.api_key)
    rows = "\n".join(_api_line(message) for message in apis)
    names = "\n".join(f"{_constant(message)}: Final = {message.api_key}" for message in apis)
    return f'''{HEADER}
"""The APIs of Kafka 4.2, and those and their versions that 3.9 had: key, name, versions, first flexible version."""

from __future__ import annotations

from typing import Final

{names}

# key: (name of the API, lowest version, highest version, highest that will not change, first flexible version or -1)
APIS: Final = {{
{rows}
}}
'''


def _api_line(message: MessageSchema) -> str:
    versions = message.versions
    stable = versions.highest - 1 if message.unstable else versions.highest
    flexible = -1 if (message.flexible & versions).is_empty else message.flexible.lowest
    name = message.name.removesuffix("Request")
    return f'    {_constant(message)}: ("{name}", {versions.lowest}, {versions.highest}, {stable}, {flexible}),'


def record_types_text(records: list[MessageSchema]) -> str:
    """The types of record in the logs of the coordinators, by coordinator."""
    keys = sorted((message for message in records if message.kind == "coordinator-key"), key=lambda message: message.api_key)
    text = f'''{HEADER}
"""The types of record in the logs of the coordinators: number, name, module."""

from __future__ import annotations

from typing import Final
'''
    for coordinator in ("GROUP", "TRANSACTION", "SHARE"):
        lines = "\n".join(_record_type_line(message) for message in keys if _coordinator(message) == coordinator)
        text += f"\n{coordinator}: Final = {{\n{lines}\n}}\n"
    return text


def _record_type_line(message: MessageSchema) -> str:
    return f'    {message.api_key}: ("{message.name.removesuffix("Key")}", "{message.module.removesuffix("_key")}"),'


def _coordinator(message: MessageSchema) -> str:
    """The coordinator whose log holds a record: the type numbers of each coordinator begin at 0."""
    if message.name.startswith("TransactionLog"):
        return "TRANSACTION"
    return "SHARE" if message.name.startswith(("ShareSnapshot", "ShareUpdate")) else "GROUP"


def _constant(message: MessageSchema) -> str:
    return message.module.removesuffix("_request").upper()


if __name__ == "__main__":
    main()
