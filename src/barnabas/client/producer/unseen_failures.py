"""Failed records whose result the application has not read, counted by partition and kind of error.

A result is read when `result()`, `exception()` or `await` has returned it to the application, or when a callback receives it. `flush` and
`close` report the counts. Memory is bounded: GROUPS_MAX partitions and kinds of errors are distinguished, each with its first error;
further records are only counted.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import FailedSends, SendFailed
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

GROUPS_MAX: Final = 100


class UnseenFailures:
    """Not thread-safe: callers hold the accumulator's lock."""

    def __init__(self) -> None:
        # Counts belong to a report: after `take` has reported them, reading one of these records changes nothing.
        self.report = 0
        self._groups: dict[tuple[TopicPartition, type[KafkaError]], FailedSends] = {}
        self._ungrouped = 0

    def add(self, partition: TopicPartition, error: KafkaError, count: int) -> None:
        """`count` records failed, and their results were not read."""
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
        """The application read a record that was added while `report` was the number of the next report."""
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
