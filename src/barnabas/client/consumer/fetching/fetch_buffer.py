# Compiled by mypyc: src/compiled.toml lists this module.
"""What has been fetched and not yet been returned by a poll, in the order it came.

The loop puts fetches in, the thread that polls takes records out of them; both hold the lock of the SubscriptionState while they touch
this. It is bounded: the fetcher asks `size_bytes` and `may_fetch` before it asks a broker for more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch
from barnabas.topic_partition import TopicPartition

# One fetch that is being read, and one behind it so that the next poll need not wait.
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
        """The next to be read; those to be passed over are of paused partitions."""
        for fetch in self._queue:
            if fetch not in passing_over:
                return fetch
        return None

    def to_end(self, fetches: Iterable[CompletedFetch]) -> None:
        """Those of them that are still here, in the order they were in."""
        for fetch in fetches:
            if fetch in self._queue:
                self._queue.remove(fetch)
                self._queue.append(fetch)

    def remove(self, partition: TopicPartition, fetch: CompletedFetch) -> None:
        """It is used up, or of no use; the partition may be gone already."""
        mine = self._of_partition.get(partition)
        if mine is None or fetch not in mine:
            return
        mine.remove(fetch)
        if not mine:
            del self._of_partition[partition]
        self._queue.remove(fetch)
        self.size_bytes -= fetch.size

    def is_full_for(self, partition: TopicPartition) -> bool:
        """Whether there is enough of a partition for now, or something in its way that a poll has to settle."""
        mine = self._of_partition.get(partition)
        return mine is not None and (len(mine) >= FETCHES_PER_PARTITION_MAX or mine[-1].error_code != 0 or mine[-1].is_damaged)

    def next_offset(self, partition: TopicPartition, position: int) -> int:
        """Where to fetch from, given the position: behind what is here already, if that goes on from the position."""
        mine = self._of_partition.get(partition)
        if mine is None or not mine[0].fetch_offset <= position <= mine[0].end_offset:
            return position
        expected = mine[0].fetch_offset
        for fetch in mine:
            if fetch.fetch_offset != expected:
                return position
            expected = fetch.end_offset
        return expected

    def has_any(self, wanted: Callable[[TopicPartition], bool]) -> bool:
        return any(wanted(partition) for partition in self._of_partition)

    def retain(self, partitions: Iterable[TopicPartition]) -> None:
        """Drops what is of other partitions."""
        kept = set(partitions)
        for partition in [partition for partition in self._of_partition if partition not in kept]:
            self.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        dropped = self._of_partition.pop(partition, None)
        if dropped:
            self.size_bytes -= sum(fetch.size for fetch in dropped)
            self._queue = deque(fetch for fetch in self._queue if fetch not in dropped)
