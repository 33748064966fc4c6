"""Types of JSON texts, by the rules of spark.read.json.

Whole numbers are bigint, others double; what is null everywhere, or of several types, is a string; fields are in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from pyspark_barnabas.values.json.json_text import Float, Int, JsonFault, Leniency, NotANumber, Pairs, read_json

_DIGITS_MAX: Final = 38
_LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True)
class JsonRules:
    """Spark's options of these names."""

    primitives_as_string: bool = False
    prefers_decimal: bool = False


def infer_json(texts: Iterable[str], leniency: Leniency | None = None, rules: JsonRules | None = None) -> StructType:
    """The columns of these texts; none if there is no object. Invalid JSON is ignored."""
    root: DataType = NullType()
    inference = _Inference(rules or JsonRules())
    for text in texts:
        try:
            node = read_json(text, leniency or Leniency())
        except JsonFault:
            continue
        if isinstance(node, Pairs):
            root = inference.common(root, inference.kind(node))
    kind = _settled(root)
    return kind if isinstance(kind, StructType) else StructType([])


class _Inference:
    def __init__(self, rules: JsonRules) -> None:
        self._rules = rules

    def kind(self, node: Any) -> DataType:
        if isinstance(node, Pairs):
            fields = {name: self.kind(value) for name, value in node}
            return StructType([StructField(name, fields[name]) for name in sorted(fields, key=_java_order)])
        if isinstance(node, list):
            element: DataType = NullType()
            for item in node:
                element = self.common(element, self.kind(item))
            return ArrayType(element)
        if node is None or node == "":
            return NullType()
        if self._rules.primitives_as_string:
            return StringType()
        return self._scalar(node)

    def _scalar(self, node: Any) -> DataType:
        if isinstance(node, bool):
            return BooleanType()
        if isinstance(node, NotANumber):
            return DoubleType()
        if isinstance(node, Int):
            if len(node) < 19 or -_LONG_MAX - 1 <= int(node[:40]) <= _LONG_MAX:
                return LongType()
            digits = len(node.lstrip("-"))
            return DecimalType(digits, 0) if digits <= _DIGITS_MAX else DoubleType()
        if isinstance(node, Float):
            return _decimal(node) if self._rules.prefers_decimal else DoubleType()
        return StringType()

    def common(self, one: DataType, other: DataType) -> DataType:
        """The narrowest type that fits both."""
        if one == other or isinstance(other, NullType):
            return one
        if isinstance(one, NullType):
            return other
        if isinstance(one, StructType) and isinstance(other, StructType):
            fields = {field.name: field.dataType for field in one.fields}
            for field in other.fields:
                fields[field.name] = self.common(fields.get(field.name, NullType()), field.dataType)
            return StructType([StructField(name, fields[name]) for name in sorted(fields, key=_java_order)])
        if isinstance(one, ArrayType) and isinstance(other, ArrayType):
            return ArrayType(self.common(one.elementType, other.elementType))
        return _common_number(one, other) or StringType()


def _common_number(one: DataType, other: DataType) -> DataType | None:
    numbers = (LongType, DoubleType, DecimalType)
    if not isinstance(one, numbers) or not isinstance(other, numbers):
        return None
    if isinstance(one, DoubleType) or isinstance(other, DoubleType):
        return DoubleType()
    first, second = (side if isinstance(side, DecimalType) else DecimalType(20, 0) for side in (one, other))
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return DecimalType(whole + scale, scale) if whole + scale <= _DIGITS_MAX else DoubleType()


def _decimal(text: str) -> DataType:
    from decimal import Decimal

    _, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    return DecimalType(precision, scale) if precision <= _DIGITS_MAX else DoubleType()


def _settled(kind: DataType) -> DataType | None:
    """Replaces types that no table has: a field that is always null is a string, an object without fields is dropped."""
    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, StructType):
        fields = [(field.name, _settled(field.dataType)) for field in kind.fields if field.name]
        kept = [StructField(name, settled) for name, settled in fields if settled is not None]
        return StructType(kept) if kept else None
    if isinstance(kind, ArrayType):
        element = _settled(kind.elementType)
        return None if element is None else ArrayType(element)
    return kind


def _java_order(name: str) -> bytes:
    """The sort key of Java, which compares texts by UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")
