"""The columns of the source: those of Spark's own Kafka connector, by the same names, in the same order, of the same types.

A decoder of values replaces `value` by its columns. The schema of a query may select some of the columns; any other schema is an error.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_barnabas.errors import SchemaError

VALUE: Final = "value"
HEADERS: Final = "headers"

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_WITHOUT_HEADERS: Final = (
    StructField("key", BinaryType()),
    StructField(VALUE, BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)


def record_schema(include_headers: bool, decoded: StructType | None = None) -> StructType:
    """All columns; `decoded` are those that replace `value`."""
    fields: list[StructField] = []
    for field in _WITHOUT_HEADERS:
        fields.extend([field] if field.name != VALUE or decoded is None else decoded.fields)
    if include_headers:
        fields.append(StructField(HEADERS, ArrayType(_HEADER)))
    names = [field.name.lower() for field in fields]
    if twins := {name for name in names if names.count(name) > 1}:
        raise SchemaError(
            f"The decoded value has a column of the same name as the record: {', '.join(sorted(twins))}. Set the option 'value.flatten' "
            "to 'false' to have it in one column of its own."
        )
    return StructType(fields)


def wanted_columns(required: StructType, full: StructType) -> list[str]:
    """The column names of a query's schema; it may omit columns and change their order, but not their types."""
    types = {field.name: field.dataType for field in full.fields}
    for field in required.fields:
        if field.name not in types:
            hint = " Set the option 'includeHeaders' to 'true' to have it." if field.name == HEADERS else ""
            raise SchemaError(f"There is no column '{field.name}'; there are {', '.join(types)}.{hint}")
        if field.dataType != types[field.name]:
            raise SchemaError(
                f"The column '{field.name}' is of type {types[field.name].simpleString()}, not {field.dataType.simpleString()}. Leave the "
                "schema out and cast the column."
            )
    return [field.name for field in required.fields]
