"""The committed offsets and the lag of the groups that this broker coordinates, as the families of all dialects read them.

The lag counts up to the high watermark, as kafka_exporter's does: records of open transactions are included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.coordinator.group.group import Group
from barnabas.metrics.registry import Series
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.exposition.observed import Observed

Rows = Iterator[tuple[str, str, int, float]]  # group, topic, partition, value


def groups(observed: Observed) -> Iterator[tuple[str, Group]]:
    for shard in observed.broker.groups.shards():
        yield from list(shard.groups.items())


def committed(observed: Observed) -> Iterator[tuple[str, str, int, int]]:
    """Group, topic, partition and committed offset. All partitions of a topic follow each other, and all topics of a group."""
    for shard in observed.broker.groups.shards():
        for group_id in list(shard.offsets.committed.by_group):
            for topic, index, offset in list(shard.offsets.committed.of_group(group_id)):
                yield group_id, topic, index, offset.offset


def lags(observed: Observed) -> Iterator[tuple[str, str, int, int]]:
    """Of the partitions whose high watermark is known here."""
    for group_id, topic, index, offset in committed(observed):
        end = observed.end_offset(TopicPartition(topic, index))
        if end is not None:
            yield group_id, topic, index, max(0, end - offset)


def lag_seconds(observed: Observed) -> Iterator[tuple[str, str, int, float]]:
    """Of the partitions whose high watermark is known here, and the timestamp of whose first unread record is known or not needed."""
    observed.unread_times.begin()
    yield from _ages(observed)


def lag_millis(observed: Observed) -> Iterator[tuple[str, str, int, float]]:
    """As `lag_seconds`, and read after it: the timestamps are known then."""
    for group_id, topic, index, seconds in _ages(observed):
        yield group_id, topic, index, round(seconds * 1000)


def _ages(observed: Observed) -> Iterator[tuple[str, str, int, float]]:
    now_ms = observed.broker.clock.now_ms()
    for group_id, topic, index, offset in committed(observed):
        seconds = observed.lag_seconds(TopicPartition(topic, index), offset, now_ms)
        if seconds is not None:
            yield group_id, topic, index, seconds


def each(rows: Callable[[], Rows]) -> Callable[[], Iterator[Series]]:
    """The `read` of a family with the labels group, topic and partition."""

    def read() -> Iterator[Series]:
        for group_id, topic, index, value in rows():
            yield (group_id, topic, str(index)), value

    return read


def by_topic(rows: Callable[[], Rows]) -> Callable[[], Iterator[Series]]:
    """The `read` of a family with the labels group and topic: sums over partitions."""

    def read() -> Iterator[Series]:
        of: tuple[str, str] | None = None
        total: float = 0
        for group_id, topic, _, value in rows():
            if of != (group_id, topic):
                if of is not None:
                    yield of, total
                of, total = (group_id, topic), 0
            total += value
        if of is not None:
            yield of, total

    return read


def by_group(rows: Callable[[], Rows], combine: Callable[[float, float], float]) -> Callable[[], Iterator[Series]]:
    """The `read` of a family with the label group."""

    def read() -> Iterator[Series]:
        of: str | None = None
        total: float = 0
        for group_id, _, _, value in rows():
            if of != group_id:
                if of is not None:
                    yield (of,), total
                of, total = group_id, 0
            total = combine(total, value)
        if of is not None:
            yield (of,), total

    return read
