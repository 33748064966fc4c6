# Compiled by mypyc: src/compiled.toml lists this module.
"""The choice of a partition for records without one.

Serialized keys are hashed with Kafka's murmur2, so that every Kafka client sends a key to the same partition. Records without a key stay in
one partition until a batch is full, then move to another one (KIP-794): any with a leader, or, once every partition has a queue, preferably
one with a short queue. `partitioner.class` replaces all of this. Nothing here waits or reads a clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from mypy_extensions import i64

from barnabas.client.cluster import Cluster

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


class Partitioner(Protocol):
    """The interface of `partitioner.class`. It may also have `configure(configs)` and `close()`."""

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster, /) -> int:
        """The number of the partition that the record goes to, from 0 on. `cluster` has the partitions of the topic."""


def murmur2(data: bytes) -> i64:
    """Kafka's 32-bit MurmurHash2 as an unsigned number."""
    length: i64 = len(data)
    h: i64 = (_SEED ^ length) & _MASK
    at: i64 = 0
    whole: i64 = length & ~3
    while at < whole:
        k: i64 = i64(data[at]) | (i64(data[at + 1]) << 8) | (i64(data[at + 2]) << 16) | (i64(data[at + 3]) << 24)
        k = (k * _M) & _MASK
        k ^= k >> 24
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
        at += 4
    left: i64 = length - whole
    if left == 3:
        h ^= i64(data[whole + 2]) << 16
    if left >= 2:
        h ^= i64(data[whole + 1]) << 8
    if left >= 1:
        h ^= i64(data[whole])
        h = (h * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    return h ^ (h >> 15)


def partition_for_key(key: bytes, partition_count: i64) -> i64:
    """The partition of a key, among all partitions with or without a leader: a key never moves because a broker is down."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class RoundRobinPartitioner:
    """Partitions in turn, regardless of the key; those without a leader are skipped while there are others."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Does nothing: it has no settings."""
        return

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Cluster, /) -> int:
        """The next partition of the topic in turn, of those that have a leader."""
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        available = cluster.available_partitions_for_topic(topic)
        if available:
            return available[turn % len(available)].partition
        return turn % (cluster.partition_count(topic) or 1)

    def close(self) -> None:
        """Does nothing."""
        return


class StickyPartitioner:
    """The partition of records without a key, for one topic: Kafka's BuiltInPartitioner.

    `random` returns an integer from 0 to 2**31 - 1.
    """

    def __init__(self, topic: str, sticky_bytes: int, random: Callable[[], int]) -> None:
        self._topic = topic
        self._sticky_bytes: i64 = sticky_bytes
        self._random = random
        self._current: i64 = -1
        self._produced: i64 = 0
        # Running sums of the weight of each partition, and the partitions; empty while all have equal weight.
        self._frequencies: list[int] = []
        self._partitions: list[int] = []

    def current(self, cluster: Cluster) -> i64:
        """The current partition."""
        if self._current < 0:
            self._current = self._next(cluster)
        return self._current

    def switch(self, cluster: Cluster) -> i64:
        """Moves to another partition with a leader, if there is one, for a new batch (KIP-480)."""
        available = [info.partition for info in cluster.available_partitions_for_topic(self._topic)]
        others = [partition for partition in available if partition != self._current]
        if others:
            self._current = others[self._random() % len(others)]
        elif not available:
            self._current = self._random() % (cluster.partition_count(self._topic) or 1)
        return self._current

    def appended(self, size: i64, cluster: Cluster, may_switch: bool) -> None:
        """Counts appended bytes. A switch waits for a full batch (`may_switch`), but not beyond twice the batch size."""
        self._produced += size
        if (self._produced >= self._sticky_bytes and may_switch) or self._produced >= self._sticky_bytes * 2:
            self._produced = 0
            self._current = self._next(cluster)

    def update_load(self, queue_sizes: Sequence[int] | None, partitions: Sequence[int], excluded: bool = False) -> None:
        """Sets the number of waiting batches of each partition that may be chosen. None, or equal sizes with none `excluded`, means equal
        weights.

        With the queues 0, 3, 1 the sums are 4, 5, 8: a random number below 8 selects them with the weights 4 : 1 : 3.
        """
        self._frequencies = []
        self._partitions = []
        if not queue_sizes or (len(queue_sizes) < 2 and not excluded):
            return
        longest = max(queue_sizes)
        if not excluded and min(queue_sizes) == longest:
            return
        total = 0
        for size in queue_sizes:
            total += longest + 1 - size
            self._frequencies.append(total)
        self._partitions = list(partitions)

    def _next(self, cluster: Cluster) -> int:
        random = self._random()
        if self._frequencies:
            return self._partitions[bisect_right(self._frequencies, random % self._frequencies[-1])]
        available = cluster.available_partitions_for_topic(self._topic)
        if available:
            return available[random % len(available)].partition
        return random % (cluster.partition_count(self._topic) or 1)
