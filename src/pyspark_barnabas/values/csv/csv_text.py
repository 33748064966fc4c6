"""Splits one line of CSV into cells, as Spark's parser (univocity) does.

This is the slow path, for lines with quotes. A cell that begins with a quote ends with a quote that is followed by the separator or the end
of the line. If there is another quote inside without an escape, the cell is the raw text up to the separator, with its quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.options import boolean, integer

_SPACES: Final = frozenset(map(chr, range(33)))
_SPACE: Final = "".join(sorted(_SPACES))
_NAMED: Final = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", '\\"': '"', "\\'": "'", "\\\\": "\\", "\\0": "\0", "\\u0000": "\0"}

Split: TypeAlias = "list[str | None] | None"  # None is an empty cell; None instead of a list is a comment or an empty line


class CsvFault(Exception):
    """The line cannot be split into cells."""


@dataclass(frozen=True)
class CsvSyntax:
    """The options of Spark's CSV parser, with its defaults."""

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    quote_escape_escape: str = ""
    comment: str = ""
    null_value: str = ""
    empty_value: str = ""
    trims_left: bool = False
    trims_right: bool = False
    columns_max: int = 20480
    characters_max: int = -1
    special_numbers: Mapping[str, float] = field(default_factory=lambda: _special("NaN", "Inf", "-Inf"))

    @classmethod
    def of(cls, parser: Mapping[str, str]) -> CsvSyntax:
        def flag(name: str) -> bool:
            return boolean({f"value.{name}": parser[name.lower()]} if name.lower() in parser else {}, f"value.{name}", False)

        def number(name: str, default: int, least: int) -> int:
            value = integer(
                {f"value.{name}": parser[name.lower()]} if name.lower() in parser else {}, f"value.{name}", default, least=least
            )
            return default if value is None else value

        if "sep" in parser and "delimiter" in parser:
            raise OptionError("value.delimiter", "is another name of 'value.sep': set one of them.")
        separator = "".join(_parts(parser.get("sep", parser.get("delimiter", ","))))
        if not separator:
            raise OptionError("value.sep", "must not be empty.")
        return cls(
            separator,
            _character(parser, "quote", '"'),
            _character(parser, "escape", "\\"),
            _character(parser, "charToEscapeQuoteEscaping", ""),
            _character(parser, "comment", ""),
            parser.get("nullvalue", ""),
            parser.get("emptyvalue", ""),
            flag("ignoreLeadingWhiteSpace"),
            flag("ignoreTrailingWhiteSpace"),
            number("maxColumns", 20480, 1),
            number("maxCharsPerColumn", -1, -1),
            _special(parser.get("nanvalue", "NaN"), parser.get("positiveinf", "Inf"), parser.get("negativeinf", "-Inf")),
        )


def split_line(line: str, syntax: CsvSyntax) -> Split:
    """The cells of a line. Raises CsvFault if there are too many or one is too long."""
    if not line or (syntax.comment and line.startswith(syntax.comment)):
        return None
    cells: list[str | None] = []
    at = 0
    while at <= len(line):
        cell, at = _cell(line, at, syntax)
        if cell is not None and len(cell) > syntax.characters_max >= 0:
            raise CsvFault(f"a cell has more than {syntax.characters_max} characters (value.maxCharsPerColumn)")
        cells.append(cell)
        if len(cells) > syntax.columns_max:
            raise CsvFault(f"it has more than {syntax.columns_max} columns (value.maxColumns)")
    return cells


def _cell(line: str, at: int, syntax: CsvSyntax) -> tuple[str | None, int]:
    """A cell and the start of the next one, which is after the end of the line if there is none."""
    start = at
    if syntax.trims_left:
        while start < len(line) and line[start] in _SPACES and not line.startswith(syntax.separator, start):
            start += 1
    if syntax.quote and line.startswith(syntax.quote, start):
        quoted = _quoted(line, start, syntax)
        if quoted is not None:
            return quoted
    end = line.find(syntax.separator, start)
    end = len(line) if end < 0 else end
    text = line[start:end]
    if syntax.trims_right:
        text = text.rstrip(_SPACE)
    return text or None, end + len(syntax.separator) if end < len(line) else end + 1


def _quoted(line: str, start: int, syntax: CsvSyntax) -> tuple[str | None, int] | None:
    """A quoted cell, or None if the text is not a valid quoted cell."""
    parts: list[str] = []
    at = start + 1
    while at < len(line):
        letter = line[at]
        following = line[at + 1 : at + 2]
        if letter == syntax.escape and following and following in (syntax.quote, syntax.quote_escape_escape or syntax.escape):
            parts.append(following)
            at += 2
        elif letter == syntax.quote:
            end = _end_behind(line, at + 1, syntax)
            return None if end is None else ("".join(parts) or syntax.empty_value, end)
        else:
            parts.append(letter)
            at += 1
    return ("".join(parts), at + 1) if parts else None


def _end_behind(line: str, at: int, syntax: CsvSyntax) -> int | None:
    """The start of the next cell, if only blanks are between the quote and the separator or the end."""
    while at < len(line) and not line.startswith(syntax.separator, at):
        if line[at] not in _SPACES:
            return None
        at += 1
    return at + len(syntax.separator) if at < len(line) else at + 1


def _parts(text: str) -> list[str]:
    """The characters of a separator; tab and other control characters are escape sequences in it."""
    characters: list[str] = []
    at = 0
    while at < len(text):
        name = next((name for name in _NAMED if text.startswith(name, at)), text[at])
        characters.append(_NAMED.get(name, name))
        at += len(name)
    return characters


def _character(parser: Mapping[str, str], name: str, default: str) -> str:
    parts = _parts(parser.get(name.lower(), default))
    if len(parts) > 1:
        raise OptionError(f"value.{name}", "must be a single character.")
    return "" if parts in ([], ["\0"]) else parts[0]


def _special(nan: str, infinite: str, minus_infinite: str) -> dict[str, float]:
    return {nan: float("nan"), infinite: float("inf"), minus_infinite: float("-inf")}
