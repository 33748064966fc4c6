"""JSON in and out without changing it: numbers keep the digits they were written with, and text stays readable.

`json.loads` turns 1.10 into 1.1 and 12345678901234567.8 into another number. A person who looks at a message must see what was sent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final, NoReturn

DEPTH_MAX: Final = 200  # of arrays and objects inside each other; formatting and masking recurse


class WrittenNumber(float):
    """A number with a fraction or an exponent, and the text it was written as."""

    __slots__ = ("text",)

    text: str


def parse_json(text: str) -> Any:
    """The value. Raises ValueError for what is not strictly JSON (NaN and Infinity are not), or is nested deeper than DEPTH_MAX."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text.count("[") + text.count("{") > DEPTH_MAX and _depth(value) > DEPTH_MAX:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
    return value


def format_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON text: on one line, or with `indent` spaces for each level. Lone surrogates become escapes."""
    text = "".join(_pieces(value, indent, 0))
    return text.encode("utf-8", "backslashreplace").decode()


def _written_number(text: str) -> WrittenNumber:
    number = WrittenNumber(text)
    number.text = text
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_float=_written_number, parse_constant=_refuse_constant)


def _depth(value: Any) -> int:
    """The levels of arrays and objects. It does not recurse."""
    deepest, rest = 0, [(value, 1)]
    while rest:
        item, level = rest.pop()
        if isinstance(item, dict):
            rest += [(child, level + 1) for child in item.values()]
        elif isinstance(item, list):
            rest += [(child, level + 1) for child in item]
        else:
            continue
        deepest = max(deepest, level)
    return deepest


def _pieces(value: Any, indent: int | None, level: int) -> Iterator[str]:
    if isinstance(value, dict):
        items: list[tuple[str, Any]] = [(_string(str(name)) + (":" if indent is None else ": "), item) for name, item in value.items()]
        yield from _bracketed("{", "}", items, indent, level)
    elif isinstance(value, list | tuple):
        yield from _bracketed("[", "]", [("", item) for item in value], indent, level)
    elif isinstance(value, str):
        yield _string(value)
    elif isinstance(value, WrittenNumber):
        yield value.text
    elif isinstance(value, float) and not math.isfinite(value):
        yield _string(str(value))  # Avro and Protobuf have NaN and Infinity, JSON has not
    else:
        yield json.dumps(value)


def _bracketed(opening: str, closing: str, items: list[tuple[str, Any]], indent: int | None, level: int) -> Iterator[str]:
    yield opening
    for number, (front, item) in enumerate(items):
        if number:
            yield ","
        if indent is not None:
            yield "\n" + " " * (indent * (level + 1))
        yield front
        yield from _pieces(item, indent, level + 1)
    if items and indent is not None:
        yield "\n" + " " * (indent * level)
    yield closing


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
