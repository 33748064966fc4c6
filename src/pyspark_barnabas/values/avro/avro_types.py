"""Avro's types as Spark types, by the table of Spark's from_avro, and the conversion of number columns to dates and times.

A union of null and one type is that type; int with long is long, float with double is double. Other unions and recursive schemas are
rejected: a column has one type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_barnabas.errors import SchemaError
from pyspark_barnabas.values.arrow_types import arrow_type

_PRIMITIVES: Final[dict[str, DataType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
    "fixed": BinaryType(),
}
_LOGICAL: Final[dict[tuple[str, str], DataType]] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
_NAMED: Final = ("record", "error", "enum", "fixed")
_PRECISION_MAX: Final = 38
_WIDER: Final = ({"int", "long"}, "long"), ({"float", "double"}, "double")


def spark_type(schema: Any) -> DataType:
    """The Spark type of an Avro schema. Raises SchemaError."""
    return _Types().kind(schema)


class _Types:
    """Converts one schema; holds the named types that it has defined so far."""

    def __init__(self) -> None:
        self._known: dict[str, DataType] = {}
        self._open: set[str] = set()

    def kind(self, schema: Any) -> DataType:
        schema = _without_null(schema)
        if isinstance(schema, str):
            return self._named(schema)
        name = str(schema["type"]) if not isinstance(schema["type"], dict | list) else ""
        if not name:
            return self.kind(schema["type"])
        if name in ("record", "error"):
            return self._record(schema)
        if name == "array":
            return ArrayType(self.kind(schema["items"]))
        if name == "map":
            return MapType(StringType(), self.kind(schema["values"]))
        kind = _decimal(schema) or _LOGICAL.get((name, str(schema.get("logicalType"))))
        if kind is None:
            kind = self._named(name)
        if name in _NAMED:
            self._known[full_name(schema)] = kind
        return kind

    def _named(self, name: str) -> DataType:
        if name in self._open:
            raise SchemaError(f"the Avro schema refers to itself ({name}), which a table cannot")
        kind = _PRIMITIVES.get(name) or self._known.get(name)
        if kind is None:
            raise SchemaError(f"the Avro type {name} cannot be a column")
        return kind

    def _record(self, schema: Mapping[str, Any]) -> DataType:
        name = full_name(schema)
        self._open.add(name)
        kind = StructType([StructField(field["name"], self.kind(field["type"])) for field in schema["fields"]])
        self._open.discard(name)
        if not kind.fields:
            raise SchemaError(f"the Avro record {name} has no fields")
        self._known[name] = kind
        return kind


def full_name(schema: Mapping[str, Any]) -> str:
    name, space = str(schema["name"]), schema.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"


def without_logical_types(schema: Any) -> Any:
    """The schema with numbers instead of dates and times; decimals stay."""
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: without_logical_types(part) if name in ("type", "items", "values", "fields") else part for name, part in schema.items()}
    if plain.get("logicalType") != "decimal" or _decimal(schema) is None:
        plain.pop("logicalType", None)
    return plain


def raw_type(schema: Any) -> pa.DataType:
    """The Arrow type of fastavro's values for a schema without logical types."""
    return _map_type(schema, {})


def _map_type(schema: Any, known: dict[str, pa.DataType]) -> pa.DataType:
    schema = _without_null(schema)
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return _map_type(schema["type"], known)
    name = schema if isinstance(schema, str) else str(schema["type"])
    if name in ("record", "error"):
        raw = pa.struct([pa.field(field["name"], _map_type(field["type"], known)) for field in schema["fields"]])
    elif name == "array":
        return pa.list_(pa.field("element", _map_type(schema["items"], known)))
    elif name == "map":
        return pa.map_(pa.string(), _map_type(schema["values"], known))
    elif name in known:
        return known[name]
    else:
        decimal = _decimal(schema) if isinstance(schema, dict) else None
        raw = arrow_type(decimal or _PRIMITIVES[name])
    if name in _NAMED and isinstance(schema, dict):
        known[full_name(schema)] = raw
    return raw


def finished(column: pa.Array, schema: Any, kind: DataType) -> pa.Array:
    """A raw column in the type that Spark expects."""
    return _finished(column, schema, kind, {})


def _finished(column: pa.Array, schema: Any, kind: DataType, known: dict[str, Any]) -> pa.Array:
    schema = _without_null(schema)
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return _finished(column, schema["type"], kind, known)
    if isinstance(schema, str):
        schema = known.get(schema, schema)
    elif schema["type"] in _NAMED:
        known[full_name(schema)] = schema
    if isinstance(kind, StructType):
        parts = [
            _finished(column.field(number), field["type"], spark_field.dataType, known)
            for number, (field, spark_field) in enumerate(zip(schema["fields"], kind.fields, strict=True))
        ]
        return pa.StructArray.from_arrays(parts, fields=list(arrow_type(kind)), mask=column.is_null())
    if isinstance(kind, ArrayType):
        offsets, elements = list_parts(column, column.values)
        return pa.ListArray.from_arrays(
            offsets, _finished(elements, schema["items"], kind.elementType, known), type=arrow_type(kind), mask=column.is_null()
        )
    if isinstance(kind, MapType):
        offsets, keys = list_parts(column, column.keys)
        _, items = list_parts(column, column.items)
        values = _finished(items, schema["values"], kind.valueType, known)
        return _map_array(offsets, keys, values, arrow_type(kind), column)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return _times(column, str(schema["logicalType"])).cast(arrow_type(kind))
    return column.cast(arrow_type(kind)) if column.type != arrow_type(kind) else column


def list_parts(column: pa.Array, elements: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets that start at zero, and the elements that they index."""
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return pc.subtract(column.offsets, pa.scalar(first, pa.int32())), elements.slice(first, last - first)


def _map_array(offsets: pa.Array, keys: pa.Array, values: pa.Array, kind: pa.DataType, column: pa.Array) -> pa.Array:
    mask = column.is_null()
    if pc.any(mask).as_py():
        gone = pc.if_else(pa.concat_arrays([mask, pa.array([False])]), pa.scalar(None, pa.int32()), offsets)
        return pa.MapArray.from_arrays(gone, keys, values, type=kind)
    return pa.MapArray.from_arrays(offsets, keys, values, type=kind)


def _times(column: pa.Array, logical: str) -> pa.Array:
    micros = pc.multiply_checked(column, pa.scalar(1000, pa.int64())) if logical.endswith("millis") else column
    return micros.cast(pa.timestamp("us"))


def _without_null(schema: Any) -> Any:
    """The one type of a union."""
    if not isinstance(schema, list):
        return schema
    rest = [branch for branch in schema if branch != "null" and not (isinstance(branch, dict) and branch.get("type") == "null")]
    if len(rest) == 1:
        return rest[0]
    for names, wider in _WIDER:
        if rest and all(isinstance(branch, str) and branch in names for branch in rest):
            return wider
    raise SchemaError(f"the Avro schema has a union of several types, which a column cannot: {str(schema)[:200]}")


def _decimal(schema: Mapping[str, Any]) -> DataType | None:
    """The decimal type, if Spark supports its precision; others are read as bytes."""
    if schema.get("logicalType") != "decimal" or schema["type"] not in ("bytes", "fixed"):
        return None
    precision, scale = int(schema.get("precision") or 0), int(schema.get("scale") or 0)
    return DecimalType(precision, scale) if 0 < precision <= _PRECISION_MAX and 0 <= scale <= precision else None
