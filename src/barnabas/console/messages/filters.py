"""Which messages a visitor looks for: those that contain a text, have something at a JSON path, match an expression, or have a key.

A filter sees messages as they are shown, with their masks. It runs in a worker thread, over many messages: what cannot be decided in time
or cannot be read does not match and is counted.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, get_args

from barnabas.console.messages.decoding import DecodedField, DecodedMessage, header_values
from barnabas.console.messages.expression import FilterExpression, OutOfTime
from barnabas.console.messages.json_path import parse_path_at_start
from barnabas.console.messages.json_values import format_json, parse_json

FilterKind = Literal["text", "path", "expression"]
FILTER_KINDS: Final[tuple[FilterKind, ...]] = get_args(FilterKind)

FILTER_CHARACTERS_MAX: Final = 2000
MESSAGE_TIME_S_MAX: Final = 0.25
_SLICE_BYTES: Final = 1024 * 1024  # between slices of a large value other threads may run


class FilterError(ValueError):
    """The filter is not understood; the message says what to write."""


class Filter(Protocol):
    """Decides for one message after the other."""

    needs_values: bool  # whether values must be parsed up to the larger bound

    def matches(self, message: DecodedMessage) -> bool:
        """Whether the message is shown. Raises OutOfTime."""


def parse_filter(kind: str, text: str) -> Filter | None:
    """The filter, or None for an empty text. Raises FilterError."""
    if not text.strip():
        return None
    if len(text) > FILTER_CHARACTERS_MAX:
        raise FilterError(f"A filter has at most {FILTER_CHARACTERS_MAX} characters, this one has {len(text)}")
    try:
        if kind == "text":
            return TextFilter(text)
        if kind == "path":
            return PathFilter(text)
        if kind == "expression":
            return ExpressionFilter(text)
    except ValueError as fault:
        raise FilterError(str(fault)) from None
    raise FilterError(f"A filter is one of {', '.join(FILTER_KINDS)}, not {kind[:50]!r}")


class TextFilter:
    """Messages whose key, value or headers contain a text. Capital and small letters are the same."""

    needs_values = False

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._raw = text.encode("utf-8", "surrogatepass").lower()

    def matches(self, message: DecodedMessage) -> bool:
        record = message.record
        if not message.masks and (self._in_raw(record.value) or self._in_raw(record.key)):
            return True
        # what is shown differs from the bytes: masks, schemas, escapes, hexadecimal digits
        differs = message.masks or not message.shows_raw or b"\\u" in (record.value or b"") or not self._text.isascii()
        if differs and (self._in_shown(message.value) or self._in_shown(message.key)):
            return True
        return any(self._text in name.casefold() or self._text in decoded.text.casefold() for name, decoded in message.headers)

    def _in_raw(self, raw: bytes | None) -> bool:
        # `in` takes linear time for any text; a regular expression takes quadratic time for some, and no other thread runs meanwhile
        if raw is None:
            return False
        size = _SLICE_BYTES + len(self._raw)
        return any(self._raw in raw[at : at + size].lower() for at in range(0, len(raw), _SLICE_BYTES))

    def _in_shown(self, decoded: DecodedField) -> bool:
        text = format_json(decoded.data) if decoded.is_tree else decoded.text
        return decoded.form != "withheld" and self._text in text.casefold()


class PathFilter:
    """Messages whose value has something at a JSON path: `$.total`, or that something compared: `$.total > 100`, `$.name == "Ann"`,
    `$.name contains "nn"`. A word without quotes is a text."""

    needs_values = True

    def __init__(self, text: str) -> None:
        text = text.strip()
        self._path, end = parse_path_at_start(text)
        rest = text[end:].strip()
        self._holds: Callable[[Any, Any], Any] | None = None
        self._expected: Any = None
        if rest:
            name = next((name for name in _OPERATORS if rest.startswith(name)), None)
            if name is None:
                raise FilterError(
                    f"After the JSON path stands a comparison, not {rest[:50]!r}: ==, !=, <, <=, >, >= or contains, for example "
                    f"{self._path} > 100"
                )
            self._holds, self._expected = _OPERATORS[name], _literal(rest[len(name) :].strip(), self._path.text, name)

    def matches(self, message: DecodedMessage) -> bool:
        value = message.value
        if not value.is_tree:
            return False
        deadline = time.monotonic() + MESSAGE_TIME_S_MAX
        for number, item in enumerate(self._path.select(value.data)):
            if number % 1000 == 999 and time.monotonic() > deadline:
                raise OutOfTime
            if self._holds is None or _holds(self._holds, item, self._expected):
                return True
        return False


class ExpressionFilter:
    """Messages for which an expression is true, see `expression.py`."""

    needs_values = True

    def __init__(self, text: str) -> None:
        self._expression = FilterExpression(text)

    def matches(self, message: DecodedMessage) -> bool:
        return self._expression.matches(_MessageScope(message, time.monotonic() + MESSAGE_TIME_S_MAX))


class KeyFilter:
    """Messages with exactly these bytes as their key. A masked key matches nothing: keys could be guessed otherwise."""

    needs_values = False

    def __init__(self, key: bytes) -> None:
        self._key = key

    def matches(self, message: DecodedMessage) -> bool:
        return message.record.key == self._key and not message.masks.key


class AllOf:
    """Messages that several filters match, in this order."""

    def __init__(self, filters: list[Filter]) -> None:
        self._filters = filters
        self.needs_values = any(one.needs_values for one in filters)

    def matches(self, message: DecodedMessage) -> bool:
        return all(one.matches(message) for one in self._filters)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return str(part).casefold() in value.casefold()
    return isinstance(value, list | dict) and part in value


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "contains": _contains,
}


def _holds(comparison: Callable[[Any, Any], Any], value: Any, expected: Any) -> bool:
    try:
        return bool(comparison(value, expected))
    except (TypeError, RecursionError):
        return False


def _literal(text: str, path: str, name: str) -> Any:
    if not text:
        raise FilterError(f'{path} {name} is compared with nothing: write for example {path} {name} 100, or {path} {name} "text"')
    try:
        return parse_json(text)
    except ValueError:
        if text[0] in "\"'[{":
            if text[0] == "'" and text[-1] == "'" and len(text) > 1:
                return text[1:-1]
            raise FilterError(f"{text[:50]} is not JSON: a text stands in quotes") from None
        return text


class _MessageScope:
    """The names of an expression; each part of the message is decoded when it is first named."""

    def __init__(self, message: DecodedMessage, deadline: float) -> None:
        self._message = message
        self.deadline = deadline

    def get(self, name: str, /) -> Any:
        message = self._message
        if name == "value":
            return message.value.data
        if name == "key":
            return message.key.data
        if name == "headers":
            return header_values(message.headers)
        record = message.record
        return record.timestamp if name == "timestamp" else record.offset if name == "offset" else record.partition
