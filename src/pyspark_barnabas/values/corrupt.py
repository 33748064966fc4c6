"""The handling of malformed records: a column that contains them, dropped rows, or an error that names the record.

It works on whole batches; a batch without a malformed record, which is the usual case, is not processed row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_barnabas.errors import DataSourceError

CORRUPT_TYPE: Final = pa.struct([pa.field("value", pa.binary()), pa.field("reason", pa.string())])
REASON_MAX: Final = 500
SHOWN_MAX: Final = 200


class MalformedRecordError(DataSourceError):
    """A record whose value cannot be decoded, with value.mode=failfast."""


def corrupt_column(values: pa.Array, faults: Mapping[int, str]) -> pa.Array:
    """The original bytes and the reason for each malformed row; null for all others."""
    count = len(values)
    if not faults:
        return pa.nulls(count, CORRUPT_TYPE)
    at_fault = np.zeros(count, dtype=bool)
    at_fault[list(faults)] = True
    reasons: list[str | None] = [None] * count
    for row, reason in faults.items():
        reasons[row] = reason[:REASON_MAX]
    bad = pa.array(at_fault)
    return pa.StructArray.from_arrays(
        [pc.if_else(bad, values, pa.scalar(None, pa.binary())), pa.array(reasons, pa.string())],
        fields=list(CORRUPT_TYPE),
        mask=pa.array(~at_fault),
    )


def without(batch: pa.RecordBatch, faults: Mapping[int, str]) -> pa.RecordBatch:
    """The batch without the malformed rows."""
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[list(faults)] = False
    return batch.filter(pa.array(keep))


def failure(batch: pa.RecordBatch, faults: Mapping[int, str], form: str) -> MalformedRecordError:
    """The error for the first malformed record of a batch: its position, the fault, and what to do."""
    row = min(faults)
    value = batch.column("value")[row].as_py() or b""
    shown = value[:SHOWN_MAX].decode("utf-8", "backslashreplace") + ("…" if len(value) > SHOWN_MAX else "")
    return MalformedRecordError(
        f"The value of {place(batch, row)} is no {form} of this schema: {faults[row][:REASON_MAX]}. It is {shown!r}. Set the option "
        "'value.mode' to 'permissive' to have such records in a column, or 'value.deadLetterTopic' to have them in a topic."
    )


def place(batch: pa.RecordBatch, row: int) -> str:
    names = set(batch.schema.names)
    if not {"topic", "partition", "offset"} <= names:
        return f"record {row} of a batch"
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return f"the record at offset {offset} of {topic}-{partition}"
