"""Administration that waits: until partitions have leaders that this broker knows of, or until topics are gone.

The admin manager leaves these in the "topic" purgatory; every update of the metadata cache looks at them. They only look and answer.
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
    """`done` gets its result once, those that were not ready in time: none of them if all is well."""

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
        if not self._done.done():  # whoever waited may have been cancelled
            self._done.set_result(self.pending())


class DelayedCreatePartitions(DelayedAdmin[str]):
    """Kafka's: for CreateTopics and CreatePartitions, until each partition has a leader."""

    def __init__(
        self, delay_ms: int, partitions: Mapping[str, Iterable[int]], cache: MetadataCache, done: asyncio.Future[frozenset[str]]
    ) -> None:
        super().__init__(delay_ms, done)
        # What is seen to have a leader is taken off the end and not looked at again: a request may make ten thousand partitions.
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
    """Kafka's DelayedElectLeader: until each partition is led, as far as this broker knows, by whom the controller elected."""

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
    """Hears when the controller takes away the mark of a topic to be deleted, its last act: from then on the name is free."""

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
    """Until no broker is told of the topics any more and their names are free."""

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
