"""The decoder of a query's values: one format, and the handling of malformed records.

Created on the driver and pickled to the executors, where `decode` is called with every fetched batch, between the broker's bytes and
Spark's rows. It holds plain data; a format creates other objects, such as a registry's client, at its first use in a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pyspark_barnabas.values.arrow_types import arrow_type
from pyspark_barnabas.values.corrupt import corrupt_column, failure, without
from pyspark_barnabas.values.dead_letters import send_dead_letters
from pyspark_barnabas.values.settings import FAILFAST, VALUE, ValueSettings

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

CORRUPT_SPARK_TYPE = StructType([StructField("value", BinaryType()), StructField("reason", StringType())])


class Parsed:
    """A decoded column, and the reason for each malformed row. Such rows have the fields that could be read, as in Spark, or null."""

    __slots__ = ("column", "faults")

    def __init__(self, column: pa.Array, faults: dict[int, str]) -> None:
        self.column = column
        self.faults = faults


class ValueFormat(Protocol):
    @property
    def data_type(self) -> DataType:
        """The type of the decoded value."""

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        """The values, a binary column of the batch, as a column of the Arrow type of `data_type`."""


class ValueDecoder:
    """Replaces `value` by decoded columns."""

    def __init__(self, settings: ValueSettings, form: ValueFormat) -> None:
        self.settings = settings
        self.format = form
        self.flattens = settings.flatten and isinstance(form.data_type, StructType)

    def schema(self) -> StructType:
        """The columns that replace `value`, in order."""
        kind = self.format.data_type
        if self.flattens and isinstance(kind, StructType):
            fields = list(kind.fields)
        else:
            fields = [StructField(self.settings.column, kind)]
        if self.settings.keeps_bytes:
            fields.insert(0, StructField(VALUE, BinaryType()))
        if self.settings.has_corrupt_column:
            fields.append(StructField(self.settings.corrupt_column, CORRUPT_SPARK_TYPE))
        return StructType(fields)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the decoded columns instead of `value`; malformed records may be dropped."""
        at = batch.schema.get_field_index(VALUE)
        if at < 0:
            return batch
        values = batch.column(at)
        parsed = self.format.parse(values, batch)
        columns, fields = self._columns(parsed, values)
        decoded = _replaced(batch, at, columns, fields)
        if not parsed.faults or self.settings.has_corrupt_column:
            return decoded
        if self.settings.mode == FAILFAST:
            raise failure(batch, parsed.faults, self.settings.format)
        if self.settings.dead_letter_topic is not None:
            send_dead_letters(self.settings, batch, parsed.faults)
        return without(decoded, parsed.faults)

    def _columns(self, parsed: Parsed, values: pa.Array) -> tuple[list[pa.Array], list[pa.Field]]:
        kind = self.format.data_type
        fields = [pa.field(field.name, arrow_type(field.dataType)) for field in self.schema().fields]
        columns: list[pa.Array] = parsed.column.flatten() if self.flattens and isinstance(kind, StructType) else [parsed.column]
        if self.settings.keeps_bytes:
            columns.insert(0, values)
        if self.settings.has_corrupt_column:
            columns.append(corrupt_column(values, parsed.faults))
        return columns, fields


def _replaced(batch: pa.RecordBatch, at: int, columns: list[pa.Array], fields: list[pa.Field]) -> pa.RecordBatch:
    arrays, schema = batch.columns, list(batch.schema)
    arrays[at : at + 1] = columns
    schema[at : at + 1] = fields
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(schema))
