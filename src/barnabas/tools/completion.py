"""Print a script that lets a shell complete tools, options and names: `barnabas completion bash`, zsh or fish.

Tools, commands and options are in the script, taken from the tools when it is made, so that completing them costs the shell no process.
Names of topics, groups and settings are asked of the broker by `barnabas completion names`. Kafka has no such tool.
"""

from __future__ import annotations

import pkgutil
from argparse import REMAINDER, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

from barnabas import tools
from barnabas.tools.command_line.grammar import Grammar, Value, grammar_of

SHELLS: Final = ("bash", "zsh", "fish")
NAMED: Final[dict[str, str]] = {"topic": "topics", "group": "groups", "setting": "settings", "entity": "entities"}
_HOW: Final = {
    "bash": "barnabas completion bash > ~/.local/share/bash-completion/completions/barnabas",
    "zsh": 'barnabas completion zsh > "${fpath[1]}/_barnabas"',
    "fish": "barnabas completion fish > ~/.config/fish/completions/barnabas.fish",
}


def main(arguments: Sequence[str]) -> int:
    given = build_parser().parse_args(arguments)
    if given.command == "names":
        from barnabas.tools.guide.completion_names import print_names

        print_names(given.kind, given.words)
        return 0
    print(_SCRIPTS[given.command](grammars()), end="")
    return 0


def build_parser() -> ArgumentParser:
    where = "\n".join(f"  {shell}: {how}" for shell, how in _HOW.items())
    parser = ArgumentParser(
        "barnabas completion",
        description=__doc__.partition("\n")[0],
        epilog=f"where the scripts belong:\n{where}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar=f"{{{','.join(SHELLS)}}}")
    for shell in SHELLS:
        commands.add_parser(shell, description=f"Print the script for {shell}.", allow_abbrev=False)
    names = commands.add_parser("names", description="Print the names that the scripts offer, one a line.", allow_abbrev=False)
    names.add_argument("kind", choices=sorted(NAMED.values()))
    names.add_argument("words", nargs=REMAINDER, help="the command line so far, from the name of the tool on")
    return parser


def grammars() -> dict[str, Grammar]:
    """What can follow the name of each tool."""
    names = sorted(module.name for module in pkgutil.iter_modules(tools.__path__) if not module.ispkg)
    return {name.replace("_", "-"): grammar_of(import_module(f"barnabas.tools.{name}")) for name in names}


def places(tools_grammars: Mapping[str, Grammar]) -> Iterator[tuple[str, Grammar]]:
    """Each place of a command line by the words that lead to it (`pipeline`, `pipeline run`), with what may stand there."""
    for tool, grammar in tools_grammars.items():
        yield tool, grammar
        for command, below in grammar.commands.items():
            yield f"{tool} {command}", Grammar({**grammar.options, **below.options}, below.commands, below.words, below.about)


def menu(grammar: Grammar) -> list[tuple[str, str]]:
    """The words to offer, each with what it is about."""
    commands = [(name, below.about) for name, below in grammar.commands.items()]
    return [*commands, *((word, "") for word in grammar.words), *((name, option.about) for name, option in grammar.options.items())]


def _valued(grammar: Grammar, value: Value) -> list[str]:
    return [name for name, option in grammar.options.items() if option.value == value]


def _cases(of_tools: Mapping[str, Grammar]) -> Iterator[str]:
    """The lines of a `case "$place $previous"`, the same in bash and zsh: what the value of an option is."""
    for value, kind in (("file", "files"), *NAMED.items()):
        patterns = [f'"{place} {name}"' for place, grammar in places(of_tools) for name in _valued(grammar, value)]  # type: ignore[arg-type]
        yield f"    {'|'.join(patterns)}) kind={kind} ;;"


def bash(of_tools: Mapping[str, Grammar]) -> str:
    words = "\n".join(f"    '{place}') words='{' '.join(word for word, _ in menu(grammar))}' ;;" for place, grammar in places(of_tools))
    commands = "|".join(f"'{place}'" for place, _ in places(of_tools) if " " in place)
    kinds = "\n".join(_cases(of_tools))
    return f"""\
# bash completion of barnabas; {_HOW["bash"]}
_barnabas() {{
  local -a words
  local kind word place=${{COMP_WORDS[1]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} current=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(of_tools)} --help --version' -- "$current"))
    return
  fi
  for word in "${{COMP_WORDS[@]:2:COMP_CWORD-2}}"; do
    case "$place $word" in
      {commands}) place="$place $word"; break ;;
    esac
  done
  case "$place $previous" in
{kinds}
  esac
  case $kind in
    files) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ?*) # COMP_WORDS would be broken at the colon of host:port
      read -ra words <<< "${{COMP_LINE:0:COMP_POINT}}"
      COMPREPLY=($(compgen -W "$(barnabas completion names $kind "${{words[@]:1}}" 2>/dev/null)" -- "$current")); return ;;
  esac
  case $place in
{words}
  esac
  COMPREPLY=($(compgen -W "${{words[*]}}" -- "$current"))
}}
complete -F _barnabas barnabas
"""


def zsh(of_tools: Mapping[str, Grammar]) -> str:
    def listed(choices: Sequence[tuple[str, str]]) -> str:
        return " ".join("'" + f"{word}:{about}".replace("'", "’") + "'" for word, about in choices)

    words = "\n".join(f"    '{place}') words_here=({listed(menu(grammar))}) ;;" for place, grammar in places(of_tools))
    commands = "|".join(f"'{place}'" for place, _ in places(of_tools) if " " in place)
    kinds = "\n".join(_cases(of_tools))
    return f"""\
#compdef barnabas
# {_HOW["zsh"]}
_barnabas() {{
  local -a words_here
  local kind word place=$words[2]
  if (( CURRENT == 2 )); then
    words_here=({" ".join(of_tools)})
    _describe 'tool' words_here
    return
  fi
  for word in $words[3,CURRENT-1]; do
    case "$place $word" in
      {commands}) place="$place $word"; break ;;
    esac
  done
  case "$place $words[CURRENT-1]" in
{kinds}
  esac
  case $kind in
    files) _files; return ;;
    ?*) words_here=(${{(f)"$(barnabas completion names $kind $words[2,CURRENT-1] 2>/dev/null)"}}); compadd -a words_here; return ;;
  esac
  case $place in
{words}
  esac
  _describe 'option' words_here
}}
_barnabas "$@"
"""


def fish(of_tools: Mapping[str, Grammar]) -> str:
    lines = [f"# fish completion of barnabas; {_HOW['fish']}", "complete -c barnabas -f"]
    lines += [f"complete -c barnabas -n __fish_use_subcommand -a {tool}" for tool in of_tools]
    for tool, grammar in of_tools.items():
        lines += _fish_lines(f"__fish_seen_subcommand_from {tool}", grammar)
        for command, below in grammar.commands.items():
            lines += _fish_lines(f"__fish_seen_subcommand_from {tool}; and __fish_seen_subcommand_from {command}", below)
    return "\n".join(lines) + "\n"


def _fish_lines(condition: str, grammar: Grammar) -> Iterator[str]:
    for word, about in menu(grammar):
        option = grammar.options.get(word)
        flag = f"-l {word[2:]}" if word.startswith("--") else f"-o {word[1:]}" if word.startswith("-") else f"-a {word}"
        if option is not None and option.value in NAMED:
            flag += f" -x -a '(barnabas completion names {NAMED[option.value]} (commandline -opc)[2..] 2>/dev/null)'"
        elif option is not None and option.value != "none":
            flag += " -r -F" if option.value == "file" else " -x"
        description = about.replace("\\", "\\\\").replace("'", "\\'")
        yield f"complete -c barnabas -n '{condition}' {flag} -d '{description}'"


_SCRIPTS: Final = {"bash": bash, "zsh": zsh, "fish": fish}
