"""The child process of `parquet.py`: reads one line of JSON for each record, writes a Parquet file. The line `null` is the end.

If the end does not come, it exits with an error: what was written is no whole file, and nobody must take it for one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.console.messages.export import COLUMNS

ROWS_A_GROUP: Final = 20_000
GROUP_BYTES: Final = 16 * 1024 * 1024

SCHEMA: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", pa.string(), nullable=False),
        pa.field("key", pa.large_string()),
        pa.field("key_form", pa.string(), nullable=False),
        pa.field("value", pa.large_string()),
        pa.field("value_form", pa.string(), nullable=False),
        pa.field("headers", pa.large_string(), nullable=False),
    ]
)


def main() -> int:
    """Writes until the end line."""
    os.nice(10)  # the console and the brokers come first
    if tuple(SCHEMA.names) != COLUMNS:
        raise AssertionError("the columns differ from those of the other formats")
    rows: list[Any] = []
    size = 0
    is_whole = False
    with pq.ParquetWriter(sys.stdout.buffer, SCHEMA, compression="zstd") as writer:
        for line in sys.stdin.buffer:
            row = json.loads(line)
            if row is None:
                is_whole = True
                break
            rows.append(row)
            size += len(line)
            if len(rows) >= ROWS_A_GROUP or size >= GROUP_BYTES:
                _write(writer, rows)
                rows, size = [], 0
        if rows:
            _write(writer, rows)
    sys.stdout.flush()
    return 0 if is_whole else 1


def _write(writer: pq.ParquetWriter, rows: list[Any]) -> None:
    columns = zip(*rows, strict=True)
    writer.write_table(pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA))


if __name__ == "__main__":
    sys.exit(main())
