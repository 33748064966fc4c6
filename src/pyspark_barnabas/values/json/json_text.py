"""JSON text as Spark's parser reads it: the first value of a text, with Jackson's leniencies, numbers kept as they are written.

This is the slow path, for the few texts that are not plain JSON objects of the schema. Python's parser is tried first; texts that it
rejects are read again with Spark's leniencies (single quotes, NaN, comments…). Text after the first value is ignored, as in Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from pyspark_barnabas.options import boolean

DEPTH_MAX: Final = 200  # for texts that are not plain; the limit for plain texts is that of Python's parser


class JsonFault(Exception):
    """The text is not JSON."""


class Pairs(list[tuple[str, Any]]):
    """An object as pairs, because names may be duplicate."""


class Int(str):
    """An integer, as it is written."""


class Float(str):
    """A number with a point or an exponent, as it is written."""


class NotANumber(str):
    """NaN and the infinities, as they are written."""


@dataclass(frozen=True)
class Leniency:
    """Spark's options of these names, with its defaults."""

    comments: bool = False
    unquoted_names: bool = False
    single_quotes: bool = True
    leading_zeros: bool = False
    not_a_number: bool = True
    any_escape: bool = False
    control_characters: bool = False

    @classmethod
    def of(cls, parser: Mapping[str, str]) -> Leniency:
        def flag(name: str, default: bool) -> bool:
            option = f"value.{name}"
            return boolean({option: parser[name.lower()]} if name.lower() in parser else {}, option, default)

        return cls(
            flag("allowComments", False),
            flag("allowUnquotedFieldNames", False),
            flag("allowSingleQuotes", True),
            flag("allowNumericLeadingZeros", False),
            flag("allowNonNumericNumbers", True),
            flag("allowBackslashEscapingAnyCharacter", False),
            flag("allowUnquotedControlChars", False),
        )


def read_json(text: str, leniency: Leniency) -> Any:
    """The first value: Pairs, list, str, Int, Float, NotANumber, bool or None. Raises JsonFault."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        return _plain.raw_decode(text, start)[0]
    except ValueError:
        pass
    except RecursionError:
        raise JsonFault("it is nested too deeply") from None
    return _Reader(text, leniency).first()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # the lenient reader decides whether NaN is allowed


_plain: Final = json.JSONDecoder(parse_int=Int, parse_float=Float, parse_constant=_refuse_constant, object_pairs_hook=Pairs)

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMENT: Final = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"(-?)(\d+)((?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)
_CONSTANT: Final = re.compile(r"NaN|[+-]?Infinity|[+-]INF")
_WORD: Final = re.compile(r"true|false|null")
_UNQUOTED: Final = re.compile(r"[\w$@#*+-]+")
_AFTER_SCALAR: Final = re.compile(r"[\w$.+-]")
_CHUNK: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_WORDS: Final = {"true": True, "false": False, "null": None}


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, leniency: Leniency) -> None:
        self._text = text
        self._at = 0
        self._allows = leniency
        self._space = _COMMENT if leniency.comments else _SPACE

    def first(self) -> Any:
        self._skip()
        if self._at == len(self._text):
            raise JsonFault("it is empty")
        return self._value(0)

    def _value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise JsonFault("it is nested too deeply")
        self._skip()
        mark = self._text[self._at : self._at + 1]
        if mark == "{":
            return self._object(depth)
        if mark == "[":
            return self._array(depth)
        if mark == '"' or (mark == "'" and self._allows.single_quotes):
            return self._string(mark)
        return self._scalar()

    def _object(self, depth: int) -> Pairs:
        self._at += 1
        pairs = Pairs()
        if self._next_is("}"):
            return pairs
        while True:
            self._skip()
            name = self._name()
            if not self._next_is(":"):
                self._fail("a colon is missing")
            pairs.append((name, self._value(depth + 1)))
            if self._next_is("}"):
                return pairs
            if not self._next_is(","):
                self._fail("a comma or the end of the object is missing")

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        elements: list[Any] = []
        if self._next_is("]"):
            return elements
        while True:
            elements.append(self._value(depth + 1))
            if self._next_is("]"):
                return elements
            if not self._next_is(","):
                self._fail("a comma or the end of the array is missing")

    def _name(self) -> str:
        mark = self._text[self._at : self._at + 1]
        if mark == '"' or (mark == "'" and self._allows.single_quotes):
            return self._string(mark)
        match = _UNQUOTED.match(self._text, self._at) if self._allows.unquoted_names else None
        if match is None:
            self._fail("the name of a field is missing")
        self._at = match.end()
        return match[0]

    def _string(self, quote: str) -> str:
        self._at += 1
        parts: list[str] = []
        while True:
            match = _CHUNK[quote].match(self._text, self._at)
            assert match is not None
            if not self._allows.control_characters and _CONTROL.search(match[0]):
                self._fail("a text holds a control character")
            parts.append(match[0])
            self._at = match.end()
            if self._at >= len(self._text):
                self._fail("a text has no end")
            if self._text[self._at] == quote:
                self._at += 1
                return _joined(parts)
            parts.append(self._escaped())

    def _escaped(self) -> str:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter == "u":
            code = _HEX.match(self._text, self._at + 2)
            if code is None:
                self._fail("\\u is not followed by four hexadecimal digits")
            self._at = code.end()
            return chr(int(code[0], 16))
        if letter in _ESCAPES:
            character = _ESCAPES[letter]
        elif letter and (self._allows.any_escape or (letter == "'" and self._allows.single_quotes)):
            character = letter
        else:
            self._fail(f"\\{letter} is no escape")
        self._at += 2
        return character

    def _scalar(self) -> Any:
        for pattern in (_NUMBER, _WORD, _CONSTANT):
            match = pattern.match(self._text, self._at)
            if match is None:
                continue
            if _AFTER_SCALAR.match(self._text, match.end()):
                self._fail("a value is followed by something else")
            self._at = match.end()
            return self._number(match) if pattern is _NUMBER else self._word(match[0])
        self._fail("a value is missing" if self._at < len(self._text) else "it ends too soon")

    def _number(self, match: re.Match[str]) -> Any:
        sign, digits, rest = match.groups()
        if len(digits) > 1 and digits[0] == "0":
            if not self._allows.leading_zeros:
                self._fail("a number begins with a zero")
            digits = digits.lstrip("0") or "0"
        return Float(sign + digits + rest) if rest else Int(sign + digits)

    def _word(self, word: str) -> Any:
        if word in _WORDS:
            return _WORDS[word]
        if not self._allows.not_a_number:
            self._fail(f"{word} is no number")
        return NotANumber(word)

    def _skip(self) -> None:
        match = self._space.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _next_is(self, mark: str) -> bool:
        self._skip()
        if self._text.startswith(mark, self._at):
            self._at += 1
            return True
        return False

    def _fail(self, what: str) -> NoReturn:
        raise JsonFault(f"{what}, at character {self._at + 1}")


def _joined(parts: list[str]) -> str:
    """Joins surrogates that were escaped separately."""
    text = "".join(parts)
    if any("\ud800" <= part <= "\udfff" for part in parts if len(part) == 1):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
