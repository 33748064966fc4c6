"""Delayed admin requests: they complete when partitions have leaders in this broker's metadata cache, or when topics are deleted.

The AdminManager puts them into the "topic" purgatory, and every update of the metadata cache checks them. They only read the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from barnabas.broker.topics.metadata_cache import NO_LEADER, MetadataCache
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.topic_partition import TopicPartition

Key = TypeVar("Key", bound=Hashable)


class DelayedAdmin(DelayedOperation, Generic[Key]):
    """`done` gets the keys that were not ready at the timeout, an empty set if all are ready."""

    def __init__(self, delay_ms: int, done: asyncio.Future[frozenset[Key]]) -> None:
        super().__init__(delay_ms)
        self._done = done

    def pending(self) -> frozenset[Key]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def try_complete(self) -> bool:
        return self.is_ready() and self.force_complete()

    def on_complete(self) -> None:
        if not self._done.done():  # the waiting caller may have been cancelled
            self._done.set_result(self.pending())


class DelayedCreatePartitions(DelayedAdmin[str]):
    """Kafka's DelayedCreatePartitions, for CreateTopics and CreatePartitions: waits until each partition has a leader."""

    def __init__(
        self, delay_ms: int, partitions: Mapping[str, Iterable[int]], cache: MetadataCache, done: asyncio.Future[frozenset[str]]
    ) -> None:
        super().__init__(delay_ms, done)
        # A partition that has a leader is removed from the end and not checked again: a request may create ten thousand partitions.
        self._leaderless = [(topic, partition) for topic, numbers in partitions.items() for partition in numbers]
        self._cache = cache

    def is_ready(self) -> bool:
        while self._leaderless and self._has_leader(*self._leaderless[-1]):
            self._leaderless.pop()
        return not self._leaderless

    def pending(self) -> frozenset[str]:
        return frozenset(topic for topic, partition in self._leaderless if not self._has_leader(topic, partition))

    def _has_leader(self, topic: str, partition: int) -> bool:
        info = self._cache.partition_info(topic, partition)
        return info is not None and info.leader != NO_LEADER


class DelayedElectLeaders(DelayedAdmin[TopicPartition]):
    """Kafka's DelayedElectLeader: waits until the metadata cache shows the leader that the controller elected for each partition."""

    def __init__(
        self, delay_ms: int, leaders: Mapping[TopicPartition, int], cache: MetadataCache, done: asyncio.Future[frozenset[TopicPartition]]
    ) -> None:
        super().__init__(delay_ms, done)
        self._expected = list(leaders.items())
        self._cache = cache

    def is_ready(self) -> bool:
        while self._expected and self._leads(*self._expected[-1]):
            self._expected.pop()
        return not self._expected

    def pending(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, leader in self._expected if not self._leads(partition, leader))

    def _leads(self, partition: TopicPartition, leader: int) -> bool:
        info = self._cache.partition_info(partition.topic, partition.partition)
        return info is not None and info.leader == leader


class DeletionMark:
    """Watches the znode that marks a topic for deletion. The controller deletes it last; after that the topic name is free."""

    def __init__(self, path: str, on_gone: Callable[[], None]) -> None:
        self._path = path
        self._on_gone = on_gone
        self.is_gone = False

    @property
    def path(self) -> str:
        return self._path

    def handle_creation(self) -> None: ...

    def handle_deletion(self) -> None:
        self.is_gone = True
        self._on_gone()

    def handle_data_change(self) -> None: ...


class DelayedDeleteTopics(DelayedAdmin[str]):
    """Waits until the topics are gone from the metadata cache and their names are free."""

    def __init__(
        self, delay_ms: int, marks: Mapping[str, DeletionMark], cache: MetadataCache, done: asyncio.Future[frozenset[str]]
    ) -> None:
        super().__init__(delay_ms, done)
        self._remaining = list(marks.items())
        self._cache = cache

    def is_ready(self) -> bool:
        while self._remaining and not self._exists(*self._remaining[-1]):
            self._remaining.pop()
        return not self._remaining

    def pending(self) -> frozenset[str]:
        return frozenset(topic for topic, mark in self._remaining if self._exists(topic, mark))

    def _exists(self, topic: str, mark: DeletionMark) -> bool:
        return not mark.is_gone or self._cache.contains(topic)
