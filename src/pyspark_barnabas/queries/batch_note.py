"""The facts about a micro-batch from the planner of a stream, for the record that a task of this batch publishes.

The planner knows topics, offsets and lag, but Spark does not pass it the id of its query; tasks have the id. So the planner attaches a note
to the first range of each batch, and the task of that range publishes it. Notes are plain data, pickled with the range, and have a bound.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.topic_partition import TopicPartition

BATCHES_MAX: Final = 20  # earlier batches in a note
TOPICS_MAX: Final = 100  # topics that a note names, those with most rows first


@dataclass(frozen=True, slots=True)
class TopicSpan:
    """What a batch reads of one topic. Offsets are sums over its partitions; `latest` is None if the batch is planned again after a
    restart, because its latest offsets are not known."""

    name: str
    partitions: int
    start: int
    end: int
    latest: int | None

    @property
    def rows(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PastBatch:
    """An earlier batch of this run. `interval_ms` is the time until the next batch was planned."""

    planned_ms: int
    rows: int
    interval_ms: int


@dataclass(frozen=True, slots=True)
class BatchNote:
    """One micro-batch of one source. `key` is the same for this source in each run of the query; times are wall time in ms."""

    key: str
    source: str
    planned_ms: int
    topics: tuple[TopicSpan, ...]
    topics_left_out: int
    rows: int
    arrived_per_s: float | None
    batches: tuple[PastBatch, ...]


class BatchHistory:
    """The last batches of one planner: makes the note of the next one."""

    def __init__(self, key: str, source: str) -> None:
        self._key = key
        self._source = source
        self._batches: deque[PastBatch] = deque(maxlen=BATCHES_MAX)
        self._current: tuple[int, float, int] | None = None  # planned_ms, monotonic, rows

    def ended(self) -> None:
        """Records that Spark plans again: it does so only once the batch before is in the checkpoint."""
        if self._current is not None:
            planned_ms, began, rows = self._current
            self._current = None
            self._batches.appendleft(PastBatch(planned_ms, rows, int((time.monotonic() - began) * 1000)))

    def begins(
        self,
        start: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int] | None,
        arrived_per_s: float | None,
    ) -> BatchNote:
        """The note of a batch that is planned now."""
        self.ended()
        spans = sorted(spans_of(start, end, latest), key=lambda span: (-span.rows, span.name))
        rows = sum(span.rows for span in spans)
        now_ms = int(time.time() * 1000)
        self._current = (now_ms, time.monotonic(), rows)
        left_out = max(len(spans) - TOPICS_MAX, 0)
        return BatchNote(self._key, self._source, now_ms, tuple(spans[:TOPICS_MAX]), left_out, rows, arrived_per_s, tuple(self._batches))


def spans_of(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int] | None
) -> Iterable[TopicSpan]:
    """The spans of the partitions that have both a start and an end, by topic."""
    partitions: dict[str, list[TopicPartition]] = {}
    for partition in end:
        if partition in start:
            partitions.setdefault(partition.topic, []).append(partition)
    for topic, members in partitions.items():
        ends = sum(end[one] for one in members)
        newest = None if latest is None else sum(max(latest.get(one, end[one]), end[one]) for one in members)
        yield TopicSpan(topic, len(members), sum(start[one] for one in members), ends, newest)
