"""Protobuf's types as Spark types, by the table of Spark's from_protobuf, and messages as rows.

A field that is not set is null, unless it has an explicit default or value.emitDefaultValues is set. Unsigned numbers are read into signed
columns of the same width, as in Spark. A recursive message is rejected, because a table cannot represent it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_barnabas.errors import SchemaError

try:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
except ImportError as missing:
    raise ImportError("value.format=protobuf needs the package protobuf: pip install protobuf") from missing

TIMESTAMP: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
_SCALARS: Final[dict[int, DataType]] = {
    FieldDescriptor.CPPTYPE_INT32: IntegerType(),
    FieldDescriptor.CPPTYPE_UINT32: IntegerType(),
    FieldDescriptor.CPPTYPE_INT64: LongType(),
    FieldDescriptor.CPPTYPE_UINT64: LongType(),
    FieldDescriptor.CPPTYPE_FLOAT: FloatType(),
    FieldDescriptor.CPPTYPE_DOUBLE: DoubleType(),
    FieldDescriptor.CPPTYPE_BOOL: BooleanType(),
}
_UNSIGNED: Final = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}

Read = Callable[[Any], Any]


@dataclass(frozen=True)
class ReadingRules:
    emit_defaults: bool = False
    enums_as_ints: bool = False


def struct_of_message(message: Descriptor, rules: ReadingRules, above: tuple[str, ...] = ()) -> StructType:
    """The columns of a message. Raises SchemaError."""
    if message.full_name in above:
        raise SchemaError(f"the Protobuf message {message.full_name} contains itself, which a table cannot")
    path = (*above, message.full_name)
    fields = [StructField(field.name, _field_type(field, rules, path)) for field in message.fields]
    if not fields:
        raise SchemaError(f"the Protobuf message {message.full_name} has no fields")
    return StructType(fields)


def _field_type(field: FieldDescriptor, rules: ReadingRules, path: tuple[str, ...]) -> DataType:
    if _is_map(field):
        parts = field.message_type.fields_by_name
        return MapType(_single_type(parts["key"], rules, path), _single_type(parts["value"], rules, path))
    kind = _single_type(field, rules, path)
    return ArrayType(kind) if is_repeated(field) else kind


def _single_type(field: FieldDescriptor, rules: ReadingRules, path: tuple[str, ...]) -> DataType:
    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return TimestampType()
        if field.message_type.full_name == DURATION:
            return DayTimeIntervalType(0, 3)
        return struct_of_message(field.message_type, rules, path)
    if field.enum_type is not None:
        return IntegerType() if rules.enums_as_ints else StringType()
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return BinaryType() if field.type == FieldDescriptor.TYPE_BYTES else StringType()
    return _SCALARS[field.cpp_type]


def message_reader(message: Descriptor, rules: ReadingRules) -> Read:
    """Returns a function that converts a message to a dict."""
    parts = [(field.name, _field_reader(field, rules)) for field in message.fields]

    def read(value: Any) -> dict[str, Any]:
        return {name: part(value) for name, part in parts}

    return read


def _field_reader(field: FieldDescriptor, rules: ReadingRules) -> Read:
    name, of_value = field.name, _value_reader(field, rules)
    if _is_map(field):
        parts = field.message_type.fields_by_name
        of_key, of_item = _value_reader(parts["key"], rules), _value_reader(parts["value"], rules)
        return lambda message: [(of_key(key), of_item(item)) for key, item in getattr(message, name).items()]
    if is_repeated(field):
        return lambda message: [of_value(item) for item in getattr(message, name)]
    if field.has_presence:
        if field.has_default_value:
            return lambda message: of_value(getattr(message, name))
        return lambda message: of_value(getattr(message, name)) if message.HasField(name) else None
    if rules.emit_defaults:
        return lambda message: of_value(getattr(message, name))
    default = field.default_value

    def unless_default(message: Any) -> Any:
        value = getattr(message, name)
        return None if value == default else of_value(value)

    return unless_default


def _value_reader(field: FieldDescriptor, rules: ReadingRules) -> Read:
    if field.message_type is not None:
        if field.message_type.full_name in (TIMESTAMP, DURATION):
            return lambda value: value.seconds * 1_000_000 + value.nanos // 1000
        return message_reader(field.message_type, rules) if not _is_map(field) else _itself
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        if rules.enums_as_ints:
            return _itself
        return lambda value: names[value].name if value in names else str(value)
    bits = _UNSIGNED.get(field.cpp_type)
    if bits is not None:
        return lambda value: value if value < 1 << (bits - 1) else value - (1 << bits)
    return _itself


def _itself(value: Any) -> Any:
    return value


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field is repeated: newer versions of the library have a property for it and deprecate the label."""
    flag = getattr(field, "is_repeated", None)
    return bool(flag) if flag is not None else field.label == FieldDescriptor.LABEL_REPEATED


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
