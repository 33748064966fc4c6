"""Reads one range of offsets of a partition into Arrow batches, in a task of a batch or a stream.

`read_range` decodes in the task's thread what `range_fetcher` fetches ahead on the client's thread. It yields exactly the records of
[start, end) that the isolation level allows, in order, each once, or raises an error. Control records and gaps from compaction have no
rows.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from barnabas.records.columns.columns import decode
from pyspark_barnabas.connections import Client, shared_client
from pyspark_barnabas.errors import DataLossError
from pyspark_barnabas.read.arrow_rows import COLUMNS, HEADERS, RowMaker
from pyspark_barnabas.read.range_fetcher import Fetched, RangeFetcher

if TYPE_CHECKING:
    from pyspark_barnabas.read.ranges import OffsetRange

_log: Final = logging.getLogger(__name__)

POLL_TIMEOUT_MS_DEFAULT: Final = 120_000  # the default of Spark's connector: spark.network.timeout
FETCH_BYTES_DEFAULT: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """The options of reading a range; plain data, pickled to workers with the reader."""

    columns: tuple[str, ...] = COLUMNS  # the columns to return, in this order
    read_committed: bool = True
    fail_on_data_loss: bool = True
    timeout_ms: int = POLL_TIMEOUT_MS_DEFAULT  # without progress; kafkaConsumer.pollTimeoutMs
    check_crc: bool = True  # kafka.check.crcs
    fetch_bytes: int = FETCH_BYTES_DEFAULT  # unless kafka.max.partition.fetch.bytes is set


def read_range(offset_range: OffsetRange, settings: Mapping[str, str], options: FetchOptions) -> Iterator[pa.RecordBatch]:
    """The rows of the range, in the schema of `arrow_rows`. `settings` are those of the client, without `kafka.`."""
    with shared_client(settings) as client:
        try:
            yield from _read(client, offset_range, options)
        except DataLossError as error:
            if options.fail_on_data_loss:
                raise
            _log.warning("What is left of %s is skipped: %s", offset_range, error)


def _read(client: Client, offset_range: OffsetRange, options: FetchOptions) -> Iterator[pa.RecordBatch]:
    maker = RowMaker(offset_range.topic, offset_range.partition, options.columns)
    answers: queue.SimpleQueue[Fetched | None] = queue.SimpleQueue()
    fetcher = RangeFetcher(client, offset_range, options, answers.put)
    run = client.submit(fetcher.run())
    run.add_done_callback(lambda _: answers.put(None))
    try:
        while (fetched := answers.get()) is not None:
            client.call_soon(fetcher.taken)
            for records in _decoded(fetched, offset_range, options):
                if records.num_rows:
                    yield maker.rows(records)
        run.result()  # raises the error that ended the fetcher
    finally:
        run.cancel()


def _decoded(fetched: Fetched, offset_range: OffsetRange, options: FetchOptions) -> Iterator[pa.RecordBatch]:
    # Aborted transactions are known from their first batch to their marker, so that the answer is decoded in one piece.
    cuts = [(fetched.cuts[0][0], fetched.cuts[-1][1])] if fetched.aborted and fetched.cuts else fetched.cuts
    for start, end in cuts:
        data = fetched.data if end - start == len(fetched.data) else fetched.data[start:end]
        yield decode(
            data,
            first_offset=fetched.first_offset,
            end_offset=offset_range.end,
            headers=HEADERS in options.columns,
            check_crc=options.check_crc,
            aborted=fetched.aborted,
        ).records
