"""Connects the group coordinator to its broker: builds it with its log, timers and ids, and passes changes of partitions and topics to it.

CoordinatorPartitions passes the changes of the partitions of `__consumer_offsets`, as for every coordinator. This service also passes
changed topics and deleted partitions. Handlers call the coordinator itself, not this service.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.broker.clock import Clock
from barnabas.broker.config.config_manager import ConfigManager
from barnabas.broker.coordinators.coordinator_log import CoordinatorLog, LoopScheduler, SensorCounts, appended_offset, committed_offset
from barnabas.broker.coordinators.coordinator_partitions import CoordinatorPartitions
from barnabas.broker.groups.group_environment import CachedTopics, GroupOverrides, MemberIds
from barnabas.broker.replication.replica_manager import ACKS_LEADER, ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.coordinator.group.classic.classic_groups import ClassicGroups
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_groups import ConsumerGroups
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.group.group_metrics import MODERN, group_counts
from barnabas.coordinator.group.group_table import GroupTable
from barnabas.coordinator.group.regex_queue import RegexQueue
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard_timer import ShardTimer
from barnabas.topic_name import CONSUMER_OFFSETS


class GroupCoordinatorService:
    """Must be made on the event loop that it runs on. `coordinator` serves the handlers; `counts` holds its metrics."""

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
        self._topics = CachedTopics(metadata_cache)
        self._overrides = GroupOverrides(lambda: configs.groups)
        self._ids = MemberIds(random)
        self._known_topics: set[str] = set()
        self.counts = SensorCounts()
        self.memory = config.memory()
        scheduler = LoopScheduler(asyncio.get_running_loop())
        self._regexes = RegexQueue(scheduler.call_later, clock.monotonic_ms, self._topics.names)
        complete_offset = committed_offset if config.offsets_commit_required_acks < 0 else appended_offset  # -1: the whole ISR
        runtime = CoordinatorRuntime(
            CoordinatorLog(CONSUMER_OFFSETS, replica_manager, ACKS_LEADER, complete_offset),
            self._make_shard,
            clock,
            scheduler,
            load_buffer_size=config.offsets_load_buffer_size,
            codec=config.offsets_topic_compression_codec,
        )
        self.coordinator = GroupCoordinator(config, runtime)
        self._partitions = CoordinatorPartitions(
            CONSUMER_OFFSETS, config.offsets_topic_num_partitions, self.coordinator, replica_manager, metadata_cache, complete_offset
        )

    def start(self) -> None:
        """To be called before the controller starts, so that no change of leadership is missed."""
        self._partitions.start()
        self._replica_manager.on_partitions_deleted.append(self.coordinator.partitions_deleted)
        self._metadata_cache.on_topics_changed.append(self._topics_changed)

    def shutdown(self) -> None:
        """Completes waiting members with NOT_COORDINATOR. Nothing is written afterwards."""
        self._partitions.shutdown()

    def metrics(self) -> dict[str, int]:
        """The current values of Kafka's coordinator metrics, by name. `skipped-record-count` is not one of Kafka's."""
        loads = self._partitions.load_times
        skipped = {f"{MODERN}skipped-record-count": self.coordinator.skipped_records}
        load_times = {f"{MODERN}partition-load-time-max": loads.longest, f"{MODERN}partition-load-time-avg": loads.average}
        return {**self.coordinator.gauges(), **group_counts(self.counts.counts), **load_times, **skipped}

    def _make_shard(self, partition: int, timer: ShardTimer) -> GroupCoordinatorShard:
        config, clock, counts = self._config, self._clock, self.counts

        def make_consumer(groups: GroupTable, classic: ClassicGroups) -> ConsumerGroups:
            return ConsumerGroups(
                groups, config, clock, timer, counts, self._ids.consumer, self._topics, classic, self._regexes, self._overrides
            )

        return GroupCoordinatorShard(config, clock, timer, counts, self._ids.classic, self.memory, make_consumer)

    def _topics_changed(self, names: list[str]) -> None:
        created = False
        for name in names:
            if not self._metadata_cache.contains(name):
                self._known_topics.discard(name)
            elif name not in self._known_topics:
                self._known_topics.add(name)
                created = True
        self._regexes.topics_changed()
        self.coordinator.on_topics_changed(names, created=created)
