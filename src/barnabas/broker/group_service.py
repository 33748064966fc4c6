"""The group coordinator in its broker: made here with all it stands on, and told here what happens to its partitions and to topics.

The replica manager tells which partitions of `__consumer_offsets` this broker leads and how far they are replicated, the metadata cache
which topics have changed; each becomes a call of the coordinator. Handlers ask the coordinator itself, not this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from barnabas.broker.clock import Clock
from barnabas.broker.config_manager import ConfigManager
from barnabas.broker.group_log import CachedTopics, GroupCounts, GroupOverrides, LoopScheduler, MemberIds, OffsetsLog, committed_offset
from barnabas.broker.metadata_cache import MetadataCache
from barnabas.broker.partition import Partition
from barnabas.broker.replica_manager import ReplicaManager
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer_groups import ConsumerGroups
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.group.shard import GroupShard
from barnabas.coordinator.runtime import CoordinatorRuntime, ShardTimer
from barnabas.topic_name import CONSUMER_OFFSETS
from barnabas.topic_partition import TopicPartition


class GroupService:
    """To be made on the loop it will run on. `coordinator` is what handlers use, `counts` what it has counted."""

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        configs: ConfigManager,
        clock: Clock,
        random: Random,
    ) -> None:
        self._config = config
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._topics = CachedTopics(metadata_cache)
        self._overrides = GroupOverrides(lambda: configs.groups)
        self._ids = MemberIds(random)
        self._known_topics: set[str] = set()
        self._is_running = False
        self.counts = GroupCounts()
        runtime = CoordinatorRuntime(
            OffsetsLog(replica_manager),
            self._make_shard,
            clock,
            LoopScheduler(self._loop),
            load_buffer_size=config.offsets_load_buffer_size,
            codec=config.offsets_topic_compression_codec,
        )
        self.coordinator = GroupCoordinator(config, runtime)

    def start(self) -> None:
        """Before the controller is heard: nothing that it says may be missed."""
        self._is_running = True
        self.coordinator.start(self._config.offsets_topic_num_partitions)
        self._replica_manager.on_leadership_change = self._leadership_changed
        self._replica_manager.on_partitions_deleted = self._partitions_deleted
        self._replica_manager.on_change_of[CONSUMER_OFFSETS] = self._offsets_changed
        self._metadata_cache.on_topics_changed.append(self._topics_changed)

    def shutdown(self) -> None:
        """Everybody who waits for a group is sent to another coordinator. Nothing is written after it."""
        self._is_running = False
        self.coordinator.shutdown()

    def _make_shard(self, partition: int, timer: ShardTimer) -> GroupShard:
        config, clock, counts = self._config, self._clock, self.counts
        shard = GroupShard(config, clock, timer, counts, self._ids.classic)
        shard.consumer = ConsumerGroups(
            shard.groups, config, clock, timer, counts, self._ids.consumer, self._topics, shard.classic, self._overrides
        )
        return shard

    # -- the partitions of __consumer_offsets

    def _leadership_changed(self, leaders: list[Partition], followers: list[Partition]) -> None:
        for led in leaders:
            if led.partition.topic == CONSUMER_OFFSETS and self._is_running:
                self._go_on_loading(self.coordinator.on_election(led.partition.partition, led.leader_epoch))
        for followed in followers:
            if followed.partition.topic == CONSUMER_OFFSETS:
                self.coordinator.on_resignation(followed.partition.partition, followed.leader_epoch)

    def _go_on_loading(self, slices: Iterator[None]) -> None:
        """One slice in each turn of the loop, so that everybody else gets theirs."""
        self._loop.call_soon(self._load_slice, slices)

    def _load_slice(self, slices: Iterator[None]) -> None:
        if next(slices, self) is None:
            self._go_on_loading(slices)

    def _offsets_changed(self, partition: TopicPartition) -> None:
        """The high watermark has moved, more is on disk, or the partition is not led here any more."""
        found = self._replica_manager.partition(partition)
        if found is None or found.leader_log is None:
            self.coordinator.on_resignation(partition.partition, None)
        else:
            self.coordinator.high_watermark_updated(partition.partition, committed_offset(found.leader_log))

    # -- topics

    def _topics_changed(self, names: list[str]) -> None:
        if CONSUMER_OFFSETS in names and self._is_running:
            count = self._metadata_cache.partition_count(CONSUMER_OFFSETS)
            self.coordinator.start(count or self._config.offsets_topic_num_partitions)
        created = False
        for name in names:
            if not self._metadata_cache.contains(name):
                self._known_topics.discard(name)
            elif name not in self._known_topics:
                self._known_topics.add(name)
                created = True
        self.coordinator.on_topics_changed(names, created=created)

    def _partitions_deleted(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            if partition.topic == CONSUMER_OFFSETS:
                self.coordinator.on_resignation(partition.partition, None)
        self.coordinator.partitions_deleted(partitions)
