"""The `barnabas` command: `barnabas TOOL …` runs one module of `barnabas.tools`.

A tool is a file there whose name does not begin with an underscore; it opens with a sentence that `barnabas --help` shows and has
`main(arguments) -> exit code`. Nothing is registered anywhere else, and this module knows no tool by name.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from barnabas import tools


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 1
    if words[0] == "--version":
        from importlib.metadata import version  # slow to import, and a broker has to start quickly

        print(version("barnabas"))
        return 0
    if words[0] not in tool_names():
        print(f"barnabas: there is no tool '{words[0]}'; `barnabas --help` lists them", file=sys.stderr)
        return 1
    return run(_load(words[0]), words[1:])


def run(tool: ModuleType, arguments: Sequence[str]) -> int:
    """Runs a tool; a reader that has seen enough (`| head`) and ^C end it quietly, as in any Unix command."""
    try:
        code: int = tool.main(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes stdout once more on its way out; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def usage() -> str:
    width = max(map(len, tool_names()), default=0)
    lines = [f"  {name:{width}}  {_summary(name)}" for name in tool_names()]
    return "\n".join(["usage: barnabas TOOL [OPTION…]    (barnabas TOOL --help for its options)", "", "tools:", *lines])


def tool_names() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(tools.__path__))
    return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))


def _load(name: str) -> ModuleType:
    return import_module(f"barnabas.tools.{name.replace('-', '_')}")


def _summary(name: str) -> str:
    """The first line of a tool's file, which is not run for it: nobody wants to wait for all tools to be told their names."""
    source = pkgutil.get_data(tools.__name__, f"{name.replace('-', '_')}.py") or b""
    return source.decode().partition("\n")[0].removeprefix('"""').removesuffix('"""')
