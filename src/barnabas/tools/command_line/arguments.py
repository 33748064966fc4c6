"""Parses the command lines of Kafka's tools that have sub-commands or positional arguments: argparse, with Kafka's error texts.

Kafka uses argparse4j for these, a translation of Python's argparse to Java; what differs are the texts of errors and the exit code, 1.
"""

from __future__ import annotations

import re
import sys
from argparse import REMAINDER, SUPPRESS, Action, ArgumentParser, ArgumentTypeError, HelpFormatter, Namespace, _SubParsersAction
from collections.abc import Callable
from typing import Any, Final, NoReturn

from barnabas.tools.command_line.failures import Ended, failed_with_message
from barnabas.tools.command_line.options import ShowVersion

_REQUIRED: Final = re.compile(r"the following arguments are required: (.*)")
_CHOICE: Final = re.compile(r"(?P<who>argument \S+: )?invalid choice: (?P<value>'[^']*') \(choose from (?P<choices>.*)\)")
_LIMITS: Final = {"Integer": 2**31, "Long": 2**63, "Short": 2**15}


class ArgumentsRefused(Exception):
    """An invalid command line; the text is argparse4j's."""

    def __init__(self, message: str, usage: str, prog: str) -> None:
        super().__init__(message)
        self.usage = usage
        self.prog = prog


class Parser(ArgumentParser):
    """Raises ArgumentsRefused instead of ending the process."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Formatter, **settings})

    def error(self, message: str) -> NoReturn:
        raise ArgumentsRefused(_translated(message, self), self.format_usage(), self.prog.split()[0])

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the tool after --help, with exit code 1 as Kafka's tools do."""
        raise Ended(1)

    def add_version(self) -> None:
        self.add_argument("-v", "--version", action=_Version, nargs=0, help="show the version of Kafka that this stands in for")

    def add_json(self) -> None:
        """Adds --json, which is accepted before and after a sub-command."""
        self.set_defaults(json=False)
        for parser in (self, *self._commands().values()):
            parser.add_argument(
                "--json", action="store_true", default=SUPPRESS, help="print the result as JSON, for programs (not in Kafka)"
            )

    def _unknown(self, arguments: list[str]) -> str | None:
        """The first unknown option: argparse4j reports it before missing arguments."""
        parser: Parser = self
        is_value = False
        for word in arguments:
            known = parser._option_string_actions
            action = known.get(word.partition("=")[0]) or (None if word.startswith("--") else known.get(word[:2]))
            if is_value:
                is_value = False
            elif action is not None:
                is_value = action.nargs is None and word in known
            elif any(other.nargs == REMAINDER for other in parser._actions):
                return None  # the rest belongs to a sub-command
            elif re.match("--?[a-zA-Z]", word):
                return word
            else:
                parser = parser._commands().get(word, parser)
        return None

    def _commands(self) -> dict[str, Parser]:
        commands = (action.choices for action in self._actions if isinstance(action, _SubParsersAction))
        return {name: parser for choices in commands for name, parser in choices.items()}

    def parse(self, arguments: list[str]) -> Any:
        unknown = self._unknown(arguments)
        if unknown is not None:
            raise ArgumentsRefused(f"unrecognized arguments: '{unknown}'", self.format_usage(), self.prog.split()[0])
        given, extra = self.parse_known_args(arguments)
        if extra:
            raise ArgumentsRefused(f"unrecognized arguments: '{extra[0]}'", self.format_usage(), self.prog.split()[0])
        return given


class _Version(Action):
    """Handles --version before any other error is reported."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        raise ShowVersion


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=100)


def number(kind: str) -> Callable[[str], int]:
    """An argparse type for a Java number; its errors are those of argparse4j."""
    limit = _LIMITS[kind]

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]+", text) or not -limit <= int(text) < limit:
            raise ArgumentTypeError(f"could not convert '{text}' to {kind} (For input string: \"{text}\")")
        return int(text)

    return parse


def failed(error: Exception) -> int:
    """Ends a tool after an exception: prints the usage for an invalid command line, otherwise the message."""
    if isinstance(error, ArgumentsRefused):
        print(refused_text(error), file=sys.stderr)
        return 1
    return failed_with_message(error)


def refused_text(refused: ArgumentsRefused) -> str:
    """The text that argparse4j prints on stderr: the usage, and the tool's name before the error."""
    return f"{refused.usage.rstrip()}\n{refused.prog}: error: {refused}"


def _translated(message: str, parser: ArgumentParser) -> str:
    required = _REQUIRED.fullmatch(message)
    if required:
        names = required[1].split(", ")
        return f"argument {names[0]} is required" if all(name.startswith("-") for name in names) else "too few arguments"
    choice = _CHOICE.fullmatch(message)
    if choice and not (choice["who"] or "").startswith("argument -"):
        return f"invalid choice: {choice['value']} (choose from {choice['choices']})"  # a sub-command
    if choice:
        choices = "{" + choice["choices"].replace("'", "").replace(", ", ",") + "}"
        return f"{choice['who']}invalid choice: {choice['value']} (choose from {choices})"
    return message
