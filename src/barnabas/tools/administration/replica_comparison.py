"""Compares the batches of the replicas of partitions, for kafka-replica-verification. This module sends nothing and prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from barnabas.topic_partition import TopicPartition

_NOTHING: Final = -1


@dataclass(frozen=True)
class FetchedBatch:
    last_offset: int
    checksum: int


@dataclass(frozen=True)
class ReplicaFetch:
    """The Fetch result of one replica."""

    high_watermark: int = _NOTHING
    batches: Sequence[FetchedBatch] = ()


class OffsetsDiffer(Exception):
    """The replicas do not agree on the offsets of batches, so that the comparison ends."""


class ReplicaBuffer:
    """Compares the fetched batches of the replicas up to their high watermarks, and keeps the offset that was reached."""

    def __init__(self, initial_offsets: Mapping[TopicPartition, int], report_interval_ms: int, now_ms: int) -> None:
        self.offsets = dict(initial_offsets)
        self.mismatches = 0
        self._fetched: dict[TopicPartition, dict[int, ReplicaFetch]] = {partition: {} for partition in initial_offsets}
        self._report_interval_ms = report_interval_ms
        self._last_report_ms = now_ms

    def add(self, partition: TopicPartition, replica: int, fetched: ReplicaFetch) -> None:
        self._fetched[partition][replica] = fetched

    def verify(self, now_ms: int) -> Iterator[str]:
        """The lines to print. Raises OffsetsDiffer, with the line that says so."""
        lag_max, at, where = -1, -1, None
        for partition, replicas in self._fetched.items():
            yield from self._compare(partition, replicas, now_ms)
            high_watermark = max((fetched.high_watermark for fetched in replicas.values()), default=_NOTHING)
            lag = high_watermark - self.offsets[partition]
            if lag > lag_max:
                lag_max, at, where = lag, self.offsets[partition], partition
            replicas.clear()
        if now_ms - self._last_report_ms > self._report_interval_ms:
            self._last_report_ms = now_ms
            yield (
                f"{timestamp(now_ms)}: max lag is {lag_max} for partition {'null' if where is None else where} at offset {at} "
                f"among {len(self._fetched)} partitions"
            )

    def _compare(self, partition: TopicPartition, replicas: Mapping[int, ReplicaFetch], now_ms: int) -> Iterator[str]:
        for row in _rows(replicas):
            first, expected = row[0]
            for replica, batch in row[1:]:
                if batch.last_offset != expected.last_offset:
                    self.mismatches += 1
                    raise OffsetsDiffer(
                        f"{timestamp(now_ms)}: partition {partition}: replica {first}'s offset {expected.last_offset} "
                        f"doesn't match replica {replica}'s offset {batch.last_offset}"
                    )
                if batch.checksum != expected.checksum:
                    self.mismatches += 1
                    yield (
                        f"{timestamp(now_ms)}: partition {partition} has unmatched checksum at offset {batch.last_offset}; "
                        f"replica {first}'s checksum {expected.checksum}; replica {replica}'s checksum {batch.checksum}"
                    )
            self.offsets[partition] = expected.last_offset + 1


def _rows(replicas: Mapping[int, ReplicaFetch]) -> Iterator[list[tuple[int, FetchedBatch]]]:
    """The batches of all replicas in rows, as long as each replica has one below its high watermark."""
    visible = {
        replica: [batch for batch in fetched.batches if batch.last_offset < fetched.high_watermark]
        for replica, fetched in sorted(replicas.items())
    }
    for number in range(min(map(len, visible.values()), default=0)):
        yield [(replica, batches[number]) for replica, batches in visible.items()]


def timestamp(now_ms: int) -> str:
    moment = datetime.fromtimestamp(now_ms / 1000)
    return f"{moment:%Y-%m-%d %H:%M:%S},{now_ms % 1000:03d}"
