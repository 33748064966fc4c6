"""Print a script that lets a shell complete tools and their options: `barnabas completion bash`, zsh or fish.

The words are taken from the tools when the script is made, so that completing costs the shell no process. Kafka has no such tool.
"""

from __future__ import annotations

import pkgutil
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from barnabas import tools

SHELLS: Final = ("bash", "zsh", "fish")
_HOW: Final = {
    "bash": "barnabas completion bash > ~/.local/share/bash-completion/completions/barnabas",
    "zsh": 'barnabas completion zsh > "${fpath[1]}/_barnabas"',
    "fish": "barnabas completion fish > ~/.config/fish/completions/barnabas.fish",
}
Words = Mapping[str, Sequence[tuple[str, str]]]  # of each tool its options and sub-commands, each with what it is about


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        wanted = set(arguments) & {"-h", "--help"}
        lines = [f"usage: barnabas completion {{{','.join(SHELLS)}}}", *(f"  {shell}: {how}" for shell, how in _HOW.items())]
        print("\n".join(lines), file=sys.stdout if wanted else sys.stderr)
        return 0 if wanted else 2
    print(_SCRIPTS[arguments[0]](words_of_tools()), end="")
    return 0


def words_of_tools() -> dict[str, list[tuple[str, str]]]:
    """What can follow the name of each tool."""
    names = sorted(module.name for module in pkgutil.iter_modules(tools.__path__) if not module.name.startswith("_"))
    return {name.replace("_", "-"): list(_words(import_module(f"barnabas.tools.{name}"))) for name in names if name != "completion"} | {
        "completion": [(shell, f"for {shell}") for shell in SHELLS]
    }


def _words(tool: ModuleType) -> Iterator[tuple[str, str]]:
    for option in getattr(tool, "OPTIONS", ()):
        yield f"--{option.name}", _first(option.about)
    if hasattr(tool, "OPTIONS"):
        yield "--help", "show the options"
        yield "--version", "show the version of Kafka that this stands in for"
    if hasattr(tool, "build_parser"):
        yield from dict(_of_parser(tool.build_parser())).items()


def _of_parser(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        for name in action.option_strings:
            yield name, _first(action.help or "")
        if not action.option_strings and isinstance(action.choices, Mapping):
            for command, below in action.choices.items():
                yield command, _first(below.description or "")
                yield from _of_parser(below)


def _first(about: str) -> str:
    """One line, for a menu."""
    return about.split("\n")[0].split(". ")[0].strip().rstrip(".:")[:80]


def bash(words: Words) -> str:
    cases = "\n".join(f"    {tool}) words='{' '.join(word for word, _ in found)}' ;;" for tool, found in words.items())
    return f"""\
# bash completion of barnabas; {_HOW["bash"]}
_barnabas() {{
  local words previous=${{COMP_WORDS[COMP_CWORD-1]}} current=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(words)} --help --version' -- "$current"))
    return
  fi
  case $previous in
    *-file|*.config|--command-config|--config|--files|--data) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _barnabas barnabas
"""


def zsh(words: Words) -> str:
    def listed(found: Sequence[tuple[str, str]]) -> str:
        return " ".join("'" + f"{word}:{about}".replace("'", "’") + "'" for word, about in found)

    cases = "\n".join(f"    {tool}) words_here=({listed(found)}) ;;" for tool, found in words.items())
    return f"""\
#compdef barnabas
# {_HOW["zsh"]}
_barnabas() {{
  local -a words_here
  if (( CURRENT == 2 )); then
    words_here=({" ".join(words)})
    _describe 'tool' words_here
    return
  fi
  case $words[CURRENT-1] in
    *-file|*.config|--command-config|--config|--files|--data) _files; return ;;
  esac
  case $words[2] in
{cases}
  esac
  _describe 'option' words_here
}}
_barnabas "$@"
"""


def fish(words: Words) -> str:
    lines = [f"# fish completion of barnabas; {_HOW['fish']}", "complete -c barnabas -f"]
    for tool, found in words.items():
        lines.append(f"complete -c barnabas -n __fish_use_subcommand -a {tool}")
        for word, about in found:
            flag = f"-l {word[2:]}" if word.startswith("--") else f"-o {word[1:]}" if word.startswith("-") else f"-a {word}"
            told = about.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"complete -c barnabas -n '__fish_seen_subcommand_from {tool}' {flag} -d '{told}'")
    return "\n".join(lines) + "\n"


_SCRIPTS: Final = {"bash": bash, "zsh": zsh, "fish": fish}
