"""What the tests of reading share: records to read, and our source without a Spark around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader

from pyspark_barnabas import DefaultSource
from pyspark_barnabas.read.ranges import OffsetRange

FIRST_MS = 1_700_000_000_000  # the time of a topic's first record; the next ones come a second later each


def fill(bootstrap: str, topic: str, counts: Iterable[int], first: int = 0) -> None:
    """So many records for each partition from 0 on; record n of a partition has the time FIRST_MS + n seconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for partition, count in enumerate(counts):
        for number in range(first, first + count):
            producer.produce(topic, f"v{number}", f"k{number}", partition, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0


def source(bootstrap: str, options: dict[str, Any]) -> DefaultSource:
    texts = {name: str(value) for name, value in options.items()}
    return DefaultSource({"kafka.bootstrap.servers": bootstrap, "fetchOffset.retryIntervalMs": "10", **texts})


def batch_reader(bootstrap: str, options: dict[str, Any]) -> DataSourceReader:
    made = source(bootstrap, options)
    return made.reader(made.schema())


def stream_reader(bootstrap: str, options: dict[str, Any]) -> DataSourceStreamReader:
    made = source(bootstrap, options)
    return made.streamReader(made.schema())


def planned(bootstrap: str, options: dict[str, Any]) -> list[tuple[int, int, int]]:
    """The partitions and offsets of the tasks of a batch."""
    return places(part.value for part in batch_reader(bootstrap, options).partitions())


def places(ranges: Iterable[OffsetRange]) -> list[tuple[int, int, int]]:
    return [(one.partition, one.start, one.end) for one in ranges]


def offsets_read(reader: DataSourceReader | DataSourceStreamReader, parts: Iterable[Any]) -> list[tuple[int, int]]:
    """Partition and offset of each record that tasks read."""
    pairs: list[tuple[int, int]] = []
    for part in parts:
        batch: Any
        for batch in reader.read(part):
            pairs += zip(batch.column("partition").to_pylist(), batch.column("offset").to_pylist(), strict=True)
    return pairs
