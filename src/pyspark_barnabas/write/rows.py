"""The rows to write as columns: validates the schema of a DataFrame, and converts each Arrow batch to one form.

This is the first step of a task that writes. Columns have the names, types and error messages of Spark's own connector, plus `timestamp`.
Other columns are ignored, as in Spark's connector. Single rows are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

COLUMNS: Final = ("topic", "key", "value", "headers", "partition", "timestamp")

_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the same length. `topics` is None if all rows go to the topic of the option."""

    keys: pa.Array | None
    values: pa.Array
    topics: pa.Array | None
    partitions: pa.Array | None
    timestamps: pa.Array | None
    headers: pa.Array | None

    def __len__(self) -> int:
        return len(self.values)


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raises an error if the DataFrame lacks a required column or has one of another type."""
    kinds = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if topic is None and "topic" not in kinds:
        raise SchemaError("topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.")
    if "value" not in kinds:
        raise SchemaError("Required attribute 'value' not found.")
    for name, allowed in _TYPES.items():
        if name == "topic" and topic is not None:
            continue
        kind = kinds.get(name)
        if kind is not None and kind not in allowed:
            raise SchemaError(f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(allowed)}.")


def rows_of(batch: pa.RecordBatch, topic: str | None) -> Rows:
    """The columns of one Arrow batch. The option `topic` has precedence over the column."""
    columns = {name.lower(): batch.column(index) for index, name in enumerate(batch.schema.names)}
    topics = None
    if topic is None:
        topics = columns["topic"]
        if topics.null_count:
            raise SchemaError(
                "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for setting a default topic."
            )
    return Rows(
        columns.get("key"),
        columns["value"],
        topics,
        columns.get("partition"),
        columns.get("timestamp"),
        columns.get("headers"),
    )
