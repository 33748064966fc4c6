"""The rows to be written as columns: what Spark's DataFrame must have, and each Arrow batch brought into one form.

The first step of a task that writes. Columns have the names and types of Spark's own connector, with its messages where they do not fit,
and one more: `timestamp`. Other columns are left out of account, as there. Nothing here looks at single rows.
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
    """Columns of the same length. `topics` is None where all rows go to the topic of the option."""

    keys: pa.Array | None
    values: pa.Array
    topics: pa.Array | None
    partitions: pa.Array | None
    timestamps: pa.Array | None
    headers: pa.Array | None

    def __len__(self) -> int:
        return len(self.values)


def check_schema(schema: StructType, topic: str | None) -> None:
    """Refuses a DataFrame that has not the columns to be written, or has them with other types."""
    found = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if topic is None and "topic" not in found:
        raise SchemaError("topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.")
    if "value" not in found:
        raise SchemaError("Required attribute 'value' not found.")
    for name, allowed in _TYPES.items():
        if name == "topic" and topic is not None:
            continue
        kind = found.get(name)
        if kind is not None and kind not in allowed:
            raise SchemaError(f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(allowed)}.")


def rows_of(batch: pa.RecordBatch, topic: str | None) -> Rows:
    """The columns of one Arrow batch. The topic of the option goes before the column."""
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
