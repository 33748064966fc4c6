"""Parsed JSON as values of a schema, by the rules of Spark's from_json.

Only conversions of Spark are done: "1" is not a number, 1.0 is not an integer; a string field accepts every value. A field that does not
fit is null and the other fields of the record, or nested record, stay. An array or a map with a value that does not fit is null as a
whole.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_barnabas.errors import SchemaError
from pyspark_barnabas.values.json.json_text import Float, Int, NotANumber, Pairs
from pyspark_barnabas.values.text.java_text import json_again, special
from pyspark_barnabas.values.text.times import TimeFault, Times

Convert = Callable[[Any], Any]


class Misfit(Exception):
    """A value that does not fit its type."""


class PartlyMisfit(Misfit):
    """A record, or an array of records, in which something does not fit; `partial` is the rest."""

    def __init__(self, partial: Any, reason: str) -> None:
        super().__init__(reason)
        self.partial = partial


def root_converter(kind: StructType, times: Times, not_a_number: bool = True) -> Convert:
    """Returns a function that converts a parsed object to a dict. It raises Misfit, or PartlyMisfit with the fields that fit.

    `not_a_number`: whether the texts "NaN" and "Infinity" are accepted as numbers.
    """
    return _struct(kind, _Context(times, not_a_number))


@dataclass(frozen=True)
class _Context:
    times: Times
    not_a_number: bool


def _converter(kind: DataType, context: _Context) -> Convert:
    if isinstance(kind, StructType):
        return _struct(kind, context)
    if isinstance(kind, ArrayType):
        return _array(_converter(kind.elementType, context))
    if isinstance(kind, MapType):
        return _map(kind, context)
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if isinstance(kind, DateType):
        return _time("a date", context.times.date_or_days)
    if isinstance(kind, TimestampNTZType):
        return _time("a time", context.times.timestamp_ntz)
    if isinstance(kind, TimestampType):
        return _timestamp(context.times)
    if isinstance(kind, DoubleType | FloatType) and context.not_a_number:
        return _double
    converter = _SCALARS.get(type(kind))
    if converter is None:
        raise SchemaError(f"JSON cannot be decoded into {kind.simpleString()}")
    return converter


def _struct(kind: StructType, context: _Context) -> Convert:
    fields = {field.name: _converter(field.dataType, context) for field in kind.fields}

    def convert(node: Any) -> dict[str, Any]:
        if not isinstance(node, Pairs):
            raise Misfit(f"it is {_named(node)}, not an object")
        row: dict[str, Any] = {}
        reason = ""
        for name, value in node:
            field = fields.get(name)
            if field is None:
                continue
            if value is None:
                row[name] = None
                continue
            try:
                row[name] = field(value)
            except PartlyMisfit as fault:
                row[name] = fault.partial
                reason = reason or f"{name}.{fault}"
            except Misfit as fault:
                reason = reason or f"{name}: {fault}"
        if reason:
            raise PartlyMisfit(row, reason)
        return row

    return convert


def _array(element: Convert) -> Convert:
    def convert(node: Any) -> list[Any]:
        if not isinstance(node, list) or isinstance(node, Pairs):
            raise Misfit(f"it is {_named(node)}, not an array")
        items: list[Any] = []
        reason = ""
        for value in node:
            try:
                items.append(None if value is None else element(value))
            except PartlyMisfit as fault:
                items.append(fault.partial)
                reason = reason or str(fault)
        if reason:
            raise PartlyMisfit(items, reason)
        return items

    return convert


def _map(kind: MapType, context: _Context) -> Convert:
    if not isinstance(kind.keyType, StringType):
        raise SchemaError(f"The names in a JSON object are strings, not {kind.keyType.simpleString()}: use MAP<STRING, …>")
    element = _converter(kind.valueType, context)

    def convert(node: Any) -> list[tuple[str, Any]]:
        if not isinstance(node, Pairs):
            raise Misfit(f"it is {_named(node)}, not an object")
        pairs: list[tuple[str, Any]] = []  # a duplicate name is in Spark's map twice
        reason = ""
        for name, value in node:
            try:
                pairs.append((name, None if value is None else element(value)))
            except PartlyMisfit as fault:
                pairs.append((name, fault.partial))
                reason = reason or f"{name}.{fault}"
        if reason:
            raise PartlyMisfit(pairs, reason)
        return pairs

    return convert


def _integer(least: int, most: int, what: str) -> Convert:
    def convert(node: Any) -> int:
        if not isinstance(node, Int):
            raise Misfit(f"it is {_named(node)}, not a whole number")
        value = int(node) if len(node) <= 20 else most + 1
        if not least <= value <= most:
            raise Misfit(f"{node[:40]} is too large for {what}")
        return value

    return convert


def _byte(node: Any) -> int:
    """A byte; Jackson accepts signed and unsigned ones."""
    value: int = _integer(-128, 255, "a byte")(node)
    return value if value < 128 else value - 256


def _double(node: Any) -> float:
    return special(node) if type(node) is str and node in _SPECIAL else _number(node)


def _number(node: Any) -> float:
    if isinstance(node, Int):
        return float(node) if node != "-0" else 0.0
    if isinstance(node, Float):
        return float(node)
    if isinstance(node, NotANumber):
        return special(node)
    raise Misfit(f"it is {_named(node)}, not a number")


def _boolean(node: Any) -> bool:
    if not isinstance(node, bool):
        raise Misfit(f"it is {_named(node)}, not a boolean")
    return node


def _string(node: Any) -> str:
    text = node if type(node) is str else json_again(node)
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair becomes "?", as in Java


def _binary(node: Any) -> bytes:
    if type(node) is not str:
        raise Misfit(f"it is {_named(node)}, not a text in base64")
    text = "".join(node.split())
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit("it is not in base64") from None


def _time(what: str, parse: Callable[[str], int]) -> Convert:
    def convert(node: Any) -> int:
        if type(node) is not str:
            raise Misfit(f"it is {_named(node)}, not {what} as text")
        try:
            return parse(node)
        except TimeFault as fault:
            raise Misfit(str(fault)) from None

    return convert


def _timestamp(times: Times) -> Convert:
    of_text = _time("a time", times.timestamp)
    seconds_max = (2**63 - 1) // 1_000_000

    def convert(node: Any) -> Any:
        if isinstance(node, Int):
            seconds: int = _integer(-seconds_max, seconds_max, "a time in seconds")(node)
            return seconds * 1_000_000
        return of_text(node)

    return convert


def _decimal(kind: DecimalType) -> Convert:
    rounded = decimal_rounder(kind.precision, kind.scale)

    def convert(node: Any) -> Decimal:
        if not isinstance(node, Int | Float) and type(node) is not str:
            raise Misfit(f"it is {_named(node)}, not a number")
        return rounded(node if type(node) is not str else node.replace(",", ""))

    return convert


_BIG_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")


def decimal_rounder(precision: int, scale: int) -> Callable[[str], Decimal]:
    """Returns a function that rounds a text half up to a decimal of this precision and scale. It raises Misfit."""
    context = Context(prec=precision, rounding=ROUND_HALF_UP)
    unit = Decimal(1).scaleb(-scale)

    def convert(text: str) -> Decimal:
        if not _BIG_DECIMAL.fullmatch(text):
            raise Misfit("it is not a decimal number")
        try:
            return Decimal(text).quantize(unit, context=context)
        except InvalidOperation:
            raise Misfit(f"{text[:40]} has more digits than DECIMAL({precision},{scale})") from None

    return convert


def _named(node: Any) -> str:
    if isinstance(node, Pairs):
        return "an object"
    if isinstance(node, list):
        return "an array"
    if isinstance(node, bool):
        return "a boolean"
    if node is None:
        return "null"
    return "a number" if isinstance(node, Int | Float | NotANumber) else "a text"


_SPECIAL: Final = frozenset(("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF"))
_SCALARS: Final[dict[type[DataType], Convert]] = {
    BooleanType: _boolean,
    ByteType: _byte,
    ShortType: _integer(-(2**15), 2**15 - 1, "a smallint"),
    IntegerType: _integer(-(2**31), 2**31 - 1, "an int"),
    LongType: _integer(-(2**63), 2**63 - 1, "a bigint"),
    FloatType: _number,
    DoubleType: _number,
    StringType: _string,
    BinaryType: _binary,
}
