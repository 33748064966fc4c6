"""The grammar of a tool's command line: its options, the kinds of their values, and its sub-commands with their options.

It is derived from `OPTIONS`, or from the parser of `build_parser()`, of the tool. Completion, suggestions and the default cluster use it,
so that a new tool or option works in all three.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final, Literal

from barnabas.tools.command_line.options import HELP, VERSION, Option

Value = Literal["none", "file", "topic", "group", "setting", "entity", "other"]

_FILE_METAVARS: Final = ("FILE", "CONFIG-FILE", "DIR", "FILE.properties")
_FILE_DESCRIPTIONS: Final = ("file", "path")
_VALUES: Final[dict[str, Value]] = {
    "topic": "topic",
    "group": "group",
    "config": "setting",
    "add-config": "setting",
    "delete-config": "setting",
    "override": "setting",
    "entity-name": "entity",
    "files": "file",
}


@dataclass(frozen=True)
class GrammarOption:
    name: str  # with its dashes; the long name if there are several
    about: str
    value: Value = "none"


@dataclass(frozen=True)
class Grammar:
    options: Mapping[str, GrammarOption] = field(default_factory=dict)
    commands: Mapping[str, Grammar] = field(default_factory=dict)
    words: Sequence[str] = ()  # positional words, such as the names of shells
    about: str = ""

    def path(self, words: Sequence[str]) -> tuple[Grammar, ...]:
        """This grammar, followed by that of the sub-command among the words."""
        for word in words:
            if word in self.commands:
                return (self, *self.commands[word].path(words[words.index(word) + 1 :]))
        return (self,)

    def known(self, words: Sequence[str]) -> dict[str, GrammarOption]:
        """The options that are valid beside these words."""
        return {name: option for grammar in self.path(words) for name, option in grammar.options.items()}

    def given(self, words: Sequence[str]) -> dict[str, str]:
        """The options among the words, each with its last value; empty for an option without a value."""
        known = self.known(words)
        values: dict[str, str] = {}
        for index, word in enumerate(words):
            name, equals, value = word.partition("=")
            option = known.get(name) or known.get(f"-{name}")
            if option is None:
                continue
            follows = words[index + 1] if option.value != "none" and index + 1 < len(words) else ""
            values[option.name] = value if equals else follows
        return values


def grammar_of(tool: ModuleType) -> Grammar:
    if hasattr(tool, "OPTIONS"):
        return Grammar({f"--{option.name}": _of_option(option) for option in (*tool.OPTIONS, HELP, VERSION)})
    return _of_parser(tool.build_parser())


def _of_option(option: Option) -> GrammarOption:
    value: Value = "none"
    if option.argument != "none":
        is_file = any(word in option.described_as.lower() for word in _FILE_DESCRIPTIONS) or option.name.endswith(("-file", ".config"))
        value = "file" if is_file or option.name == "command-config" else _VALUES.get(option.name, "other")
    return GrammarOption(f"--{option.name}", first_line(option.about), value)


def _of_parser(parser: ArgumentParser) -> Grammar:
    options = {name: option for action in parser._actions for name, option in _of_action(parser, action)}
    below = [action for action in parser._actions if not action.option_strings and action.choices]
    commands = {
        name: _of_parser(subparser) for action in below if isinstance(action.choices, Mapping) for name, subparser in action.choices.items()
    }
    words = [str(word) for action in below if not isinstance(action.choices, Mapping) for word in action.choices or ()]
    return Grammar(options, commands, words, first_line(parser.description or ""))


def _of_action(parser: ArgumentParser, action: Action) -> Iterator[tuple[str, GrammarOption]]:
    if action.help == SUPPRESS:
        return
    value: Value = "none"
    if action.nargs != 0:
        plain = action.option_strings[-1].lstrip("-") if action.option_strings else ""
        value = "file" if action.metavar in _FILE_METAVARS else _VALUES.get(plain, "other")
    about = first_line(parser._get_formatter()._expand_help(action)) if action.help else ""
    long = next((name for name in action.option_strings if name.startswith("--")), "")
    for name in action.option_strings:
        yield name, GrammarOption(long or name, about, value)


def first_line(about: str) -> str:
    """The first line, for a menu."""
    return about.split("\n")[0].split(". ")[0].strip().rstrip(".:")[:80]
