"""Records that failed and whose result the application has not looked at, counted by partition and kind of error.

A result is looked at when `result()`, `exception()` or `await` has given it to the application, or when a callback receives it. The counts
are reported by `flush` and `close`. Memory is bounded: GROUPS_MAX partitions and kinds of errors are told apart, each with its first error;
records beyond that are only counted.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import FailedSends, SendFailed
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

GROUPS_MAX: Final = 100


class UnseenFailures:
    """Not safe for threads: callers hold the accumulator's lock."""

    def __init__(self) -> None:
        # Counts belong to a report: once `take` has reported them, a late look at one of those records changes nothing.
        self.report = 0
        self._groups: dict[tuple[TopicPartition, type[KafkaError]], FailedSends] = {}
        self._ungrouped = 0

    def add(self, partition: TopicPartition, error: KafkaError, count: int) -> None:
        """`count` records failed and nobody has looked at them."""
        if count == 0:
            return
        group = self._groups.get((partition, type(error)))
        if group is not None:
            group.count += count
        elif len(self._groups) < GROUPS_MAX:
            self._groups[partition, type(error)] = FailedSends(partition, error, count)
        else:
            self._ungrouped += count

    def seen(self, report: int, partition: TopicPartition, error: KafkaError) -> None:
        """The application looked at a record that was added while `report` was the number of the next report."""
        if report != self.report:
            return
        group = self._groups.get((partition, type(error)))
        if group is None:
            self._ungrouped -= 1
            return
        group.count -= 1
        if group.count == 0:
            del self._groups[partition, type(error)]

    def take(self) -> SendFailed | None:
        """The error that reports all of them, once; None if there are none."""
        groups, ungrouped = list(self._groups.values()), self._ungrouped
        self.report += 1
        self._groups = {}
        self._ungrouped = 0
        return SendFailed(groups, ungrouped) if groups or ungrouped else None
