"""The `barnabas` command: `barnabas TOOL …` runs one module of `barnabas.tools`.

A tool is a module of that package, not a subpackage. The first line of its docstring is shown by `barnabas --help`, and it has
`main(arguments) -> exit code`, and `OPTIONS` or `build_parser()`. Tools are not registered: this module finds them in the package.
`barnabas kafka-TOOL` behaves exactly as Kafka's script; `barnabas TOOL` adds a default cluster, suggestions, and help on stdout.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from barnabas import tools

KAFKA_PREFIX: Final = "kafka-"


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 1
    if words[0] == "--version":
        from importlib.metadata import version  # slow to import, and a broker must start quickly

        print(version("barnabas"))
        return 0
    name = words[0].removeprefix(KAFKA_PREFIX)
    if name not in tool_names():
        print(_no_such_tool(name), file=sys.stderr)
        return 1
    if name != words[0]:
        return run(_load(name), words[1:])
    from barnabas.tools.guide.guide import run_guided

    return run_guided(_load(name), words[1:], run)


def _no_such_tool(name: str) -> str:
    from barnabas.tools.guide.suggestions import nearest

    near = nearest(name, tool_names())
    return f"barnabas: there is no tool '{name}'" + (f"; did you mean {near}?" if near else "; `barnabas --help` lists them")


def run(tool: ModuleType, arguments: Sequence[str]) -> int:
    """Runs a tool. A closed pipe (`| head`) and ^C end it without a message, as any Unix command."""
    try:
        code: int = tool.main(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def usage() -> str:
    width = max(map(len, tool_names()), default=0)
    lines = [f"  {name:{width}}  {_summary(name)}" for name in tool_names()]
    return "\n".join(["usage: barnabas TOOL [OPTION…]    (barnabas TOOL --help for its options)", "", "tools:", *lines])


def tool_names() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(tools.__path__) if not module.ispkg)
    return sorted(name.replace("_", "-") for name in names)


def _load(name: str) -> ModuleType:
    return import_module(f"barnabas.tools.{name.replace('-', '_')}")


def _summary(name: str) -> str:
    """The first line of a tool's file. The tool is not imported for it: importing all tools would take too long."""
    source = pkgutil.get_data(tools.__name__, f"{name.replace('-', '_')}.py") or b""
    return source.decode().partition("\n")[0].removeprefix('"""').removesuffix('"""')
