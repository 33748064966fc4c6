"""Kafka's command-line options: what its tools accept, what they answer to a wrong one, and how their --help looks.

Kafka's tools take `--name value` and `--name=value` (one dash will do), ignore words that belong to no option and exit with 1 both for a
mistake and for --help; scripts written for them must not notice a difference here. A tool declares its options as data and asks for values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

KAFKA_VERSION: Final = "4.2.0"  # what the tools answer to --version: the Kafka whose tools they stand in for

_WIDTH: Final = 80
_SEPARATOR: Final = 2
_INT_MAX: Final = 2**31 - 1
# A line of --help may break after a space, a hyphen or a full stop inside a word.
_PIECES: Final = re.compile(r"\S*?[-.](?=\w)|\S+\s*|\s+")


class UsageError(Exception):
    """A command line that makes no sense; the text is what the user sees."""


@dataclass(frozen=True)
class Option:
    name: str
    about: str
    argument: Literal["none", "required", "optional"] = "none"
    kind: Literal["String", "Integer"] = "String"
    described_as: str = ""
    default: str | None = None

    def synopsis(self) -> str:
        if self.argument == "none":
            return f"--{self.name}"
        kind = f"{self.kind}: {self.described_as}" if self.described_as else self.kind
        return f"--{self.name} <{kind}>" if self.argument == "required" else f"--{self.name} [{kind}]"

    def description(self) -> str:
        return self.about if self.default is None else f"{self.about} (default: {self.default})"


HELP: Final = Option("help", "Print usage information.")
VERSION: Final = Option("version", "Display Kafka version.")


class Options:
    """The options of one command line."""

    def __init__(self, declared: Sequence[Option], arguments: Sequence[str]) -> None:
        self._declared = {option.name: option for option in (*declared, HELP, VERSION)}
        self._given: dict[str, list[str]] = {}
        self.is_empty = not arguments
        self._parse(arguments)

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

    def integer(self, name: str) -> int:
        """A number in Java's int; anything else is the user's mistake."""
        text = self.text(name)
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -_INT_MAX - 1 <= int(text) <= _INT_MAX:
            raise UsageError(f"Cannot parse argument '{text}' of option {name}")
        return int(text)

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
            if option.argument == "none":
                self._given.setdefault(name, [])
            elif equals:
                self._given.setdefault(name, []).append(value)
            elif option.argument == "required":
                if not words:
                    raise UsageError(f"Option {name} requires an argument")
                self._given.setdefault(name, []).append(words.pop())
            else:
                self._given.setdefault(name, []).extend([words.pop()] if words and not words[-1].startswith("-") else [])


def _two_columns(left: str, right: str, left_width: int, right_width: int) -> list[str]:
    lefts = _wrapped(left, left_width)
    rights = _wrapped(right, right_width)
    rows = max(len(lefts), len(rights))
    lefts += [""] * (rows - len(lefts))
    rights += [""] * (rows - len(rights))
    return [f"{a:{left_width}}{'':{_SEPARATOR}}{b:{right_width}}" for a, b in zip(lefts, rights, strict=True)]


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for piece in _PIECES.findall(text):
        if len(lines[-1]) + len(piece) > width and lines != [""]:
            lines.append("  ")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
