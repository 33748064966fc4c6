"""Kafka's command-line options: what its tools accept, their error messages, and the layout of --help.

Kafka's tools take `--name value` and `--name=value` (one dash will do), ignore words that belong to no option and exit with 1 both for a
mistake and for --help; scripts written for them must not see a difference. A tool declares its options as data and reads the values here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

KAFKA_VERSION: Final = "4.2.0"  # printed for --version: the version of Kafka whose tools these replace

_WIDTH: Final = 80
_SEPARATOR: Final = 2
_LIMITS: Final = {"Integer": 2**31 - 1, "Long": 2**63 - 1}
# A line of --help may break after a space, a hyphen or a full stop inside a word.
_PIECES: Final = re.compile(r"\S*?[-.](?=\w)|\S+\s*|\s+")


class UsageError(Exception):
    """An invalid command line; the text is printed for the user."""


class ShowUsage(Exception):
    """Prints a line and the table of options; the tool ends with 1, as Kafka's tools do even for --help."""

    def __init__(self, message: str, help_text: str) -> None:
        super().__init__(message)
        self.help_text = help_text


class ShowVersion(Exception):
    """Prints the version and ends the tool."""


@dataclass(frozen=True)
class Option:
    name: str
    about: str
    argument: Literal["none", "required", "optional"] = "none"
    kind: Literal["String", "Integer", "Long", "Double"] = "String"
    described_as: str = ""
    default: str | None = None
    separator: str = ""  # separates several values in one argument
    required: bool = False  # the parser reports it if it is missing
    available_if: tuple[str, ...] = ()  # the parser reports it without one of these

    def synopsis(self) -> str:
        if self.argument == "none":
            return f"--{self.name}"
        kind = f"{self.kind}: {self.described_as}" if self.described_as else self.kind
        return f"--{self.name} <{kind}>" if self.argument == "required" else f"--{self.name} [{kind}]"

    def description(self) -> str:
        return self.about if not self.default else f"{self.about} (default: {self.default})"


HELP: Final = Option("help", "Print usage information.")
VERSION: Final = Option("version", "Display Kafka version.")


class Options:
    """The options of one command line."""

    def __init__(self, declared: Sequence[Option], arguments: Sequence[str]) -> None:
        self._declared = {option.name: option for option in (*declared, HELP, VERSION)}
        self._given: dict[str, list[str]] = {}
        self.order: list[str] = []  # all options in the order of the command line, with repetitions
        self.is_empty = not arguments
        self._parse(arguments)
        if not self.has("help") and not self.has("version"):
            self._check()

    @classmethod
    def or_usage(cls, declared: Sequence[Option], arguments: Sequence[str]) -> Options:
        """Parses for the tools that print their options also after an invalid command line."""
        try:
            return cls(declared, arguments)
        except UsageError as error:
            raise ShowUsage(str(error), cls(declared, ["--help"]).help()) from None

    def has(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str) -> str:
        values = self._given.get(name, [])
        if len(values) > 1:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        if values:
            return values[0]
        default = self._declared[name].default
        if default is None:
            raise UsageError(f'Missing required argument "[{name}]"')
        return default

    def optional(self, name: str) -> str | None:
        """The value, else the default, else None."""
        return self.text(name) if self._given.get(name) or self._declared[name].default is not None else None

    def texts(self, name: str) -> list[str]:
        """All values of an option that may be repeated."""
        return list(self._given.get(name, ()))

    def integer(self, name: str) -> int:
        """A number in the range of Java's int or long; anything else is an error of the user."""
        text = self.text(name)
        limit = _LIMITS.get(self._declared[name].kind, _LIMITS["Integer"])
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -limit - 1 <= int(text) <= limit:
            raise UsageError(f"Cannot parse argument '{text}' of option {name}")
        return int(text)

    def optional_integer(self, name: str) -> int | None:
        return self.integer(name) if self.optional(name) is not None else None

    def usage(self, message: str) -> NoReturn:
        raise ShowUsage(message, self.help())

    def maybe_help_or_version(self, about: str) -> None:
        if self.is_empty or self.has("help"):
            self.usage(about)
        if self.has("version"):
            raise ShowVersion

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                self.usage(f'Missing required argument "[{name}]"')

    def refuse_with(self, used: str, others: Iterable[str]) -> None:
        """`used` and none of the others."""
        for other in others if self.has(used) else ():
            if self.has(other):
                self.usage(f'Option "[{used}]" can\'t be used with option "[{other}]"')

    def one_of(self, *names: str) -> None:
        if sum(map(self.has, names)) != 1:
            self.usage(f"Exactly one of the following arguments is required: {', '.join(f'[{name}]' for name in names)}")

    def help(self) -> str:
        """The table of options as Kafka's tools print it, trailing blanks included."""
        rows = [(option.synopsis(), option.description()) for _, option in sorted(self._declared.items())]
        left = min((_WIDTH - _SEPARATOR) // 2, max(len(synopsis) for synopsis, _ in rows))
        right = _WIDTH - _SEPARATOR - left
        rows = [("Option", "Description"), ("------", "-----------"), *rows]
        return "\n".join(line for row in rows for line in _two_columns(*row, left, right))

    def _parse(self, arguments: Sequence[str]) -> None:
        words = list(reversed(arguments))
        while words:
            word = words.pop()
            if word == "--":
                return
            if not word.startswith("-") or word == "-":
                continue
            name, equals, value = word.lstrip("-").partition("=")
            option = self._declared.get(name)
            if option is None:
                raise UsageError(f"{name} is not a recognized option")
            given = self._given.setdefault(name, [])
            self.order.append(name)
            if option.argument == "none":
                continue
            if equals:
                given.extend(_split(value, option.separator))
            elif option.argument == "required":
                if not words:
                    raise UsageError(f"Option {name} requires an argument")
                given.extend(_split(words.pop(), option.separator))
            else:
                given.extend([words.pop()] if words and _belongs_to(option, words[-1]) else [])

    def _check(self) -> None:
        missing = [name for name, option in sorted(self._declared.items()) if option.required and not self.has(name)]
        if missing:
            raise UsageError(f"Missing required option(s) [{', '.join(missing)}]")
        for name, option in self._declared.items():
            if option.available_if and self.has(name) and not any(map(self.has, option.available_if)):
                raise UsageError(f"Option(s) [{name}] are unavailable given other options on the command line")


def _belongs_to(option: Option, word: str) -> bool:
    """Whether a word is the value of an option with an optional value: -1 is one if the option takes a number."""
    return re.fullmatch(r"[+-]?[0-9]{1,19}", word) is not None if option.kind in _LIMITS else not word.startswith("-")


def _split(value: str, separator: str) -> list[str]:
    return [part for part in value.split(separator) if part] or [value] if separator else [value]


def _two_columns(left: str, right: str, left_width: int, right_width: int) -> list[str]:
    lefts = _wrapped(left, left_width)
    rights = _wrapped(right, right_width)
    rows = max(len(lefts), len(rights))
    lefts += [""] * (rows - len(lefts))
    rights += [""] * (rows - len(rights))
    return [f"{a:{left_width}}{'':{_SEPARATOR}}{b:{right_width}}" for a, b in zip(lefts, rights, strict=True)]


def _wrapped(text: str, width: int) -> list[str]:
    if "\n" in text:
        return [line for paragraph in text.split("\n") for line in _wrapped(paragraph, width)]
    lines = [""]
    for piece in _PIECES.findall(text):
        if len(lines[-1]) + len(piece) > width and lines != [""]:
            lines.append("  ")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
