"""The group coordinator in its broker: made here with all it stands on, and told here what happens to its partitions and to topics.

What happens to the partitions of `__consumer_offsets` it hears as every coordinator does; besides, which topics have changed and which
partitions are gone. Handlers ask the coordinator itself, not this.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.broker.clock import Clock
from barnabas.broker.config.config_manager import ConfigManager
from barnabas.broker.coordinators.coordinator_log import CoordinatorLog, LoopScheduler, SensorCounts
from barnabas.broker.coordinators.coordinator_partitions import CoordinatorPartitions
from barnabas.broker.groups.group_environment import CachedTopics, GroupOverrides, MemberIds
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_groups import ConsumerGroups
from barnabas.coordinator.group.coordinator import GroupCoordinator
from barnabas.coordinator.group.group_metrics import MODERN, group_counts
from barnabas.coordinator.group.regex_queue import RegexQueue
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.runtime import CoordinatorRuntime, ShardTimer
from barnabas.topic_name import CONSUMER_OFFSETS


class GroupCoordinatorService:
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
        self._topics = CachedTopics(metadata_cache)
        self._overrides = GroupOverrides(lambda: configs.groups)
        self._ids = MemberIds(random)
        self._known_topics: set[str] = set()
        self.counts = SensorCounts()
        self.memory = config.memory()
        scheduler = LoopScheduler(asyncio.get_running_loop())
        self._regexes = RegexQueue(scheduler.call_later, clock.monotonic_ms, self._topics.names)
        runtime = CoordinatorRuntime(
            CoordinatorLog(CONSUMER_OFFSETS, replica_manager),
            self._make_shard,
            clock,
            scheduler,
            load_buffer_size=config.offsets_load_buffer_size,
            codec=config.offsets_topic_compression_codec,
        )
        self.coordinator = GroupCoordinator(config, runtime)
        self._partitions = CoordinatorPartitions(
            CONSUMER_OFFSETS, config.offsets_topic_num_partitions, self.coordinator, replica_manager, metadata_cache
        )

    def start(self) -> None:
        """Before the controller is heard: nothing that it says may be missed."""
        self._partitions.start()
        self._replica_manager.on_partitions_deleted.append(self.coordinator.partitions_deleted)
        self._metadata_cache.on_topics_changed.append(self._topics_changed)

    def shutdown(self) -> None:
        """Everybody who waits for a group is sent to another coordinator. Nothing is written after it."""
        self._partitions.shutdown()

    def metrics(self) -> dict[str, int]:
        """Kafka's metrics of the coordinator as they are now, by name; `skipped-record-count` is ours."""
        loads = self._partitions.load_times
        skipped = {f"{MODERN}skipped-record-count": self.coordinator.skipped_records}
        load_times = {f"{MODERN}partition-load-time-max": loads.longest, f"{MODERN}partition-load-time-avg": loads.average}
        return {**self.coordinator.gauges(), **group_counts(self.counts.counts), **load_times, **skipped}

    def _make_shard(self, partition: int, timer: ShardTimer) -> GroupCoordinatorShard:
        config, clock, counts = self._config, self._clock, self.counts
        shard = GroupCoordinatorShard(config, clock, timer, counts, self._ids.classic, self.memory)
        shard.consumer = ConsumerGroups(
            shard.groups, config, clock, timer, counts, self._ids.consumer, self._topics, shard.classic, self._regexes, self._overrides
        )
        return shard

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
