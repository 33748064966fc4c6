# Compiled by mypyc: src/compiled.toml lists this module.
"""What a coordinator uses of its broker: the partitions of its topic, the timers of the event loop, and counters.

Coordinators only know protocols; these classes implement them with the replica manager and the event loop. Every call returns at once;
nothing in this module may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.replication.replica_manager import ACKS_LEADER, ReplicaManager
from barnabas.coordinator.partition_log import NO_TRANSACTION, TransactionProducer
from barnabas.errors import NotLeaderOrFollower
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition

_NO_LEADER: Final = -1


def committed_offset(log: Log) -> int:
    """The offset below which no record can be lost: replicated to the whole ISR and, where flush.messages requires it, on disk."""
    if log.acks_wait_below > log.recovery_point:
        return min(log.high_watermark, log.recovery_point)
    return log.high_watermark


def appended_offset(log: Log) -> int:
    """The offset below which this leader has written all records and, where flush.messages requires it, flushed them."""
    return log.recovery_point if log.acks_wait_below > log.recovery_point else log.log_end_offset


class CoordinatorLog:
    """The partitions of a coordinator's topic that this broker leads (implements `PartitionLog`). `required_acks` applies to its writes.
    A write is complete below the offset that `complete_offset` returns."""

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        required_acks: int = ACKS_LEADER,
        complete_offset: Callable[[Log], int] = committed_offset,
    ) -> None:
        self._topic = topic
        self._replica_manager = replica_manager
        self._required_acks = required_acks
        self._complete_offset = complete_offset
        self._keys: dict[int, TopicPartition] = {}  # by partition index, so that each TopicPartition is made once

    def append(self, partition: int, batch: bytes, producer: TransactionProducer = NO_TRANSACTION) -> int:
        key = self._key(partition)
        return self._replica_manager.append_as_coordinator(key, batch, producer.guard, producer.transaction_version, self._required_acks)

    def high_watermark(self, partition: int) -> int:
        log = self._log(partition)
        return _NO_LEADER if log is None else self._complete_offset(log)

    def max_batch_size(self, partition: int) -> int:
        return self._leader_log(partition).config.max_message_bytes

    def log_start_offset(self, partition: int) -> int:
        return self._leader_log(partition).log_start_offset

    def log_end_offset(self, partition: int) -> int:
        log = self._log(partition)
        return _NO_LEADER if log is None else log.log_end_offset

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """The last batch may be incomplete; readers of batches skip it, and the next read starts with it."""
        fetched = self._leader_log(partition).read(offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True)
        return b"" if fetched.records is None else fetched.records.read()

    def next_segment(self, partition: int, offset: int) -> int:
        log = self._leader_log(partition)
        following = log.segments.higher(offset)
        return log.log_end_offset if following is None else following.base_offset

    def _log(self, partition: int) -> Log | None:
        online: Partition | None = self._replica_manager.partition(self._key(partition))
        return None if online is None else online.leader_log

    def _key(self, partition: int) -> TopicPartition:
        key = self._keys.get(partition)
        if key is None:
            key = self._keys[partition] = TopicPartition(self._topic, partition)
        return key

    def _leader_log(self, partition: int) -> Log:
        log = self._log(partition)
        if log is None:
            raise NotLeaderOrFollower(f"This broker does not lead {self._topic}-{partition}")
        return log


class LoopScheduler:
    """Timers in milliseconds (implements `Scheduler`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, action)


class SensorCounts:
    """Counts since the start of the broker, by the names of Kafka's sensors (implements `Metrics`)."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def record(self, sensor: str, count: int) -> None:
        self.counts[sensor] = self.counts.get(sensor, 0) + count
