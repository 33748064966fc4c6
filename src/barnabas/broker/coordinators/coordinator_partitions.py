# Compiled by mypyc: src/compiled.toml lists this module.
"""Notifies a coordinator of changes in the partitions of its topic: which of them this broker leads, and their high watermarks.

The replica manager and the metadata cache notify all listeners of all topics. CoordinatorPartitions filters the changes of one topic and
calls one coordinator; the group and the transaction coordinator have one each. It makes no decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from barnabas.broker.coordinators.coordinator_log import committed_offset
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition


class PartitionedCoordinator(Protocol):
    """The part of its interface that the group and the transaction coordinator share."""

    def start(self, partition_count: int) -> None:
        """May be called again when the number of partitions of the topic changes."""

    def shutdown(self) -> None: ...

    def on_election(self, partition: int, leader_epoch: int) -> Iterator[None]: ...

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None: ...

    def high_watermark_updated(self, partition: int, high_watermark: int) -> None: ...


class LoadTimes:
    """Load times of partitions, in milliseconds, since the start of the broker."""

    def __init__(self) -> None:
        self.longest = 0
        self._sum = 0
        self._count = 0

    @property
    def average(self) -> int:
        return self._sum // self._count if self._count else 0

    def record(self, took_ms: int) -> None:
        self.longest = max(self.longest, took_ms)
        self._sum += took_ms
        self._count += 1


class CoordinatorPartitions:
    """Must be made on the event loop that it runs on. `default_count` is the partition count of the topic when it is created. The
    coordinator gets the offset that `complete_offset` returns as the high watermark."""

    def __init__(
        self,
        topic: str,
        default_count: int,
        coordinator: PartitionedCoordinator,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        complete_offset: Callable[[Log], int] = committed_offset,
    ) -> None:
        self._topic = topic
        self._complete_offset = complete_offset
        self._default_count = default_count
        self._coordinator = coordinator
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._loop = asyncio.get_running_loop()
        self._is_running = False
        self.load_times = LoadTimes()

    def start(self) -> None:
        """To be called before the controller starts, so that no change of leadership is missed."""
        self._is_running = True
        self._coordinator.start(self._default_count)
        self._replica_manager.on_leadership_change.append(self._leadership_changed)
        self._replica_manager.on_partitions_deleted.append(self._partitions_deleted)
        self._replica_manager.on_change_of[self._topic] = self._changed
        self._metadata_cache.on_topics_changed.append(self._topics_changed)

    def shutdown(self) -> None:
        """Completes waiting requests with NOT_COORDINATOR. Nothing is written afterwards."""
        self._is_running = False
        self._coordinator.shutdown()

    def _leadership_changed(self, leaders: list[Partition], followers: list[Partition]) -> None:
        for led in leaders:
            if led.partition.topic == self._topic and self._is_running:
                slices = self._coordinator.on_election(led.partition.partition, led.leader_epoch)
                self._loop.call_soon(self._load_slice, slices, self._loop.time())
        for followed in followers:
            if followed.partition.topic == self._topic:
                self._coordinator.on_resignation(followed.partition.partition, followed.leader_epoch)

    def _load_slice(self, slices: Iterator[None], began: float) -> None:
        """Loads one slice per iteration of the event loop, so that other work runs in between."""
        if next(slices, self) is None:
            self._loop.call_soon(self._load_slice, slices, began)
        else:
            self.load_times.record(round((self._loop.time() - began) * 1000))

    def _changed(self, partition: TopicPartition) -> None:
        """The high watermark or the recovery point has moved, or this broker no longer leads the partition."""
        online = self._replica_manager.partition(partition)
        if online is None or online.leader_log is None:
            self._coordinator.on_resignation(partition.partition, None)
        else:
            self._coordinator.high_watermark_updated(partition.partition, self._complete_offset(online.leader_log))

    def _topics_changed(self, names: list[str]) -> None:
        if self._topic in names and self._is_running:
            self._coordinator.start(self._metadata_cache.partition_count(self._topic) or self._default_count)

    def _partitions_deleted(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            if partition.topic == self._topic:
                self._coordinator.on_resignation(partition.partition, None)
