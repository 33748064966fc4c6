# Compiled by mypyc: src/compiled.toml lists this module.
"""Fetched data that no poll has returned yet, in arrival order.

The event loop adds fetches, and the polling thread takes records out of them; both hold the lock of the SubscriptionState meanwhile. The
buffer is bounded: the fetcher checks `size_bytes` and `is_full_for` before it sends another fetch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch
from barnabas.topic_partition import TopicPartition

# One fetch that is being read, and one after it so that the next poll does not wait.
FETCHES_PER_PARTITION_MAX: Final = 2


class FetchBuffer:
    def __init__(self) -> None:
        self.size_bytes = 0
        self._queue: deque[CompletedFetch] = deque()
        self._of_partition: dict[TopicPartition, deque[CompletedFetch]] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, partition: TopicPartition, fetch: CompletedFetch) -> None:
        self._queue.append(fetch)
        self._of_partition.setdefault(partition, deque()).append(fetch)
        self.size_bytes += fetch.size

    def first(self, passing_over: Collection[CompletedFetch] = ()) -> CompletedFetch | None:
        """The next fetch to read; `passing_over` are fetches of paused partitions."""
        for fetch in self._queue:
            if fetch not in passing_over:
                return fetch
        return None

    def to_end(self, fetches: Iterable[CompletedFetch]) -> None:
        """Moves the given fetches that are still buffered to the end, in their order."""
        for fetch in fetches:
            if fetch in self._queue:
                self._queue.remove(fetch)
                self._queue.append(fetch)

    def remove(self, partition: TopicPartition, fetch: CompletedFetch) -> None:
        """Removes a fetch that is consumed or useless. The partition may be removed already."""
        fetches = self._of_partition.get(partition)
        if fetches is None or fetch not in fetches:
            return
        fetches.remove(fetch)
        if not fetches:
            del self._of_partition[partition]
        self._queue.remove(fetch)
        self.size_bytes -= fetch.size

    def is_full_for(self, partition: TopicPartition) -> bool:
        """Whether enough is buffered of a partition, or its last fetch has an error that a poll must handle first."""
        fetches = self._of_partition.get(partition)
        return fetches is not None and (len(fetches) >= FETCHES_PER_PARTITION_MAX or fetches[-1].error_code != 0 or fetches[-1].is_damaged)

    def next_offset(self, partition: TopicPartition, position: int) -> int:
        """The offset of the next fetch: after the buffered data if that continues from the position, otherwise the position."""
        fetches = self._of_partition.get(partition)
        if fetches is None or not fetches[0].fetch_offset <= position <= fetches[0].end_offset:
            return position
        expected = fetches[0].fetch_offset
        for fetch in fetches:
            if fetch.fetch_offset != expected:
                return position
            expected = fetch.end_offset
        return expected

    def has_any(self, predicate: Callable[[TopicPartition], bool]) -> bool:
        return any(predicate(partition) for partition in self._of_partition)

    def retain(self, partitions: Iterable[TopicPartition]) -> None:
        """Drops the fetches of all other partitions."""
        retained = set(partitions)
        for partition in [partition for partition in self._of_partition if partition not in retained]:
            self.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        dropped = self._of_partition.pop(partition, None)
        if dropped:
            self.size_bytes -= sum(fetch.size for fetch in dropped)
            self._queue = deque(fetch for fetch in self._queue if fetch not in dropped)
