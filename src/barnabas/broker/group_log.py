"""What the group coordinator stands on in a broker: the partitions of `__consumer_offsets`, the topics of the cluster, the loop's timers.

The coordinator decides and knows none of these; here its questions are passed on to the replica manager, the metadata cache and the
configs. Everything is answered at once: nothing in here may wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Final
from uuid import UUID

from barnabas.broker.metadata_cache import MetadataCache
from barnabas.broker.partition import Partition
from barnabas.broker.replica_manager import ReplicaManager
from barnabas.errors import NotLeaderOrFollower
from barnabas.storage.fetch import FetchIsolation
from barnabas.storage.log import Log
from barnabas.topic_name import CONSUMER_OFFSETS
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import UUID_SIZE, Uuid

_NO_LEADER: Final = -1


def committed_offset(log: Log) -> int:
    """Up to where nothing can be lost: replicated to all in sync and, where flush.messages asks for it, on disk."""
    if log.acks_wait_below > log.recovery_point:
        return min(log.high_watermark, log.recovery_point)
    return log.high_watermark


class OffsetsLog:
    """The partitions of `__consumer_offsets` that this broker leads (`PartitionLog`)."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replica_manager = replica_manager

    def append(self, partition: int, batch: bytes) -> int:
        return self._replica_manager.append_as_coordinator(TopicPartition(CONSUMER_OFFSETS, partition), batch)

    def high_watermark(self, partition: int) -> int:
        log = self._log(partition)
        return _NO_LEADER if log is None else committed_offset(log)

    def max_batch_size(self, partition: int) -> int:
        return self._leader_log(partition).config.max_message_bytes

    def log_start_offset(self, partition: int) -> int:
        return self._leader_log(partition).log_start_offset

    def log_end_offset(self, partition: int) -> int:
        log = self._log(partition)
        return _NO_LEADER if log is None else log.log_end_offset

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """The last batch may be cut short; what reads batches passes over it, and it is the first of the next read."""
        found = self._leader_log(partition).read(offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True)
        return b"" if found.records is None else found.records.read()

    def _log(self, partition: int) -> Log | None:
        found: Partition | None = self._replica_manager.partition(TopicPartition(CONSUMER_OFFSETS, partition))
        return None if found is None else found.leader_log

    def _leader_log(self, partition: int) -> Log:
        log = self._log(partition)
        if log is None:
            raise NotLeaderOrFollower(f"This broker does not lead {CONSUMER_OFFSETS}-{partition}")
        return log


class LoopScheduler:
    """Timers in milliseconds (`Scheduler`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, action)


class CachedTopics:
    """The topics of the cluster as the metadata cache has them (`TopicsImage`)."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache

    def topic_id(self, name: str, /) -> Uuid | None:
        return self._cache.topic_id(name)

    def topic_name(self, topic_id: Uuid, /) -> str | None:
        return self._cache.topic_name(topic_id)

    def partition_count(self, name: str, /) -> int | None:
        return self._cache.partition_count(name)

    def partition_racks(self, name: str, partition: int, /) -> Collection[str]:
        state = self._cache.partition_info(name, partition)
        if state is None:
            return ()
        racks = (self._cache.rack(broker_id) for broker_id in state.replicas)
        return [rack for rack in racks if rack is not None]

    def names(self) -> Collection[str]:
        return self._cache.topics()


class GroupOverrides:
    """What GROUP resources set for themselves (`GroupConfigs`). The values were checked when they were set."""

    def __init__(self, groups: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._groups = groups

    def consumer_session_timeout_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.session.timeout.ms")

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int | None:
        return self._number(group_id, "consumer.heartbeat.interval.ms")

    def _number(self, group_id: str, name: str) -> int | None:
        found = self._groups().get(group_id, {}).get(name)
        return None if found is None else int(found)


class GroupCounts:
    """How often things have happened, under Kafka's names, since the broker was started (`Metrics`)."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def record(self, sensor: str, count: int) -> None:
        self.counts[sensor] += count


class MemberIds:
    """Ids for members that have none. Both protocols have their own form of the same 128 random bits."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def classic(self) -> str:
        return str(UUID(bytes=self._random.randbytes(UUID_SIZE), version=4))

    def consumer(self) -> str:
        return str(Uuid.random(self._random))
