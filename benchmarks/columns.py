"""Columns from batches and batches from columns: what the Spark source and sink and the clients do with every record.

Records of 200 bytes (8 B key, 184 B value, framing) in 16 KB batches, 1 MB of them at a time, as a consumer fetches them by default; rows
to encode come 10,000 at a time, as Spark hands them over. Each fetch is copied into place just before its turn, as the kernel does with
what comes from a socket; that copy is not counted. One core's time, checksums included. The limit is what nobody can leave out: the
checksum of the same bytes and one copy of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import google_crc32c
import pyarrow as pa

from barnabas.records.columns.columns import decode, encode
from benchmarks.report import Figure, by_turns, table

RECORDS = 100_000
PASSES = 10
KEY_BYTES = 8
VALUE_BYTES = 184
FETCH_BYTES = 1024 * 1024
ROWS_PER_ARROW_BATCH = 10_000
NOW = 1_700_000_000_000

LIMIT = "checksum and one copy"


def run() -> list[tuple[str, float, str]]:
    """(name, value, unit) of every figure."""
    return [(figure.name, figure.value, figure.unit) for figure in figures()]


def figures(turns: int = 3) -> list[Figure]:
    rows = _rows()
    fetches = _fetches(rows)
    assert sum(decode(fetch).records.num_rows for fetch in fetches) == RECORDS
    return [
        by_turns(
            Figure("decode 200 B records to Arrow", "M records/s", 10, limit_name=LIMIT),
            turns,
            lambda: _rate_of_fetches(fetches, decode),
            lambda: _rate_of_fetches(fetches, _check_and_copy),
        ),
        by_turns(
            Figure("decode 200 B records to Arrow views", "M records/s", 10, limit_name=LIMIT),
            turns,
            lambda: _rate_of_fetches(fetches, _decode_to_views),
            lambda: _rate_of_fetches(fetches, _check_and_copy),
        ),
        by_turns(
            Figure("encode 200 B records from Arrow", "M records/s", 5, limit_name=LIMIT),
            turns,
            lambda: _rate_of_rows(rows),
            lambda: _rate_of_fetches(fetches, _check_and_copy),
        ),
    ]


def _rows() -> list[pa.RecordBatch]:
    rows = []
    for first in range(0, RECORDS, ROWS_PER_ARROW_BATCH):
        numbers = range(first, first + ROWS_PER_ARROW_BATCH)
        keys = pa.array([number.to_bytes(KEY_BYTES, "big") for number in numbers], pa.binary())
        values = pa.array([os.urandom(VALUE_BYTES) for _ in numbers], pa.binary())
        timestamps = pa.array([NOW + number // 100 for number in numbers], pa.int64())
        rows.append(pa.RecordBatch.from_arrays([keys, values, timestamps], names=["key", "value", "timestamp"]))
    return rows


def _fetches(rows: list[pa.RecordBatch]) -> list[bytes]:
    """The rows as a log, cut into what one fetch brings."""
    table = pa.Table.from_batches(rows)
    fetches = [bytearray()]
    for batch in encode(table["key"], table["value"], table["timestamp"], base_offset=0):
        if len(fetches[-1]) + len(batch) > FETCH_BYTES:
            fetches.append(bytearray())
        fetches[-1] += batch
    return [bytes(fetch) for fetch in fetches]


def _rate_of_fetches(fetches: list[bytes], work: Callable[[bytes], object]) -> float:
    """Millions of records a second of this thread's time: what else runs on the machine does not count."""
    spent = 0.0
    for fetch in fetches * PASSES:
        received = bytes(bytearray(fetch))
        started = time.thread_time()
        work(received)
        spent += time.thread_time() - started
    return PASSES * RECORDS / spent / 1e6


def _rate_of_rows(rows: list[pa.RecordBatch]) -> float:
    started = time.thread_time()
    for batch in rows * PASSES:
        encode(batch["key"], batch["value"], batch["timestamp"])
    return PASSES * RECORDS / (time.thread_time() - started) / 1e6


def _decode_to_views(fetch: bytes) -> None:
    decode(fetch, views=True)


def _check_and_copy(fetch: bytes) -> None:
    google_crc32c.value(fetch)
    bytearray(fetch)


if __name__ == "__main__":
    print(table(figures()))
