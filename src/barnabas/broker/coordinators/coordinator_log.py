# Compiled by mypyc: src/compiled.toml lists this module.
"""What every coordinator stands on in a broker: the partitions of its topic, the loop's timers, and where it counts.

A coordinator decides and knows none of these; here its questions are passed on to the replica manager and the loop. Everything is answered
at once: nothing in here may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.replication.replica_manager import ACKS_LEADER, ReplicaManager
from barnabas.coordinator.runtime import NO_TRANSACTION, TransactionProducer
from barnabas.errors import NotLeaderOrFollower
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition

_NO_LEADER: Final = -1


def committed_offset(log: Log) -> int:
    """Up to where nothing can be lost: replicated to all in sync and, where flush.messages asks for it, on disk."""
    if log.acks_wait_below > log.recovery_point:
        return min(log.high_watermark, log.recovery_point)
    return log.high_watermark


class CoordinatorLog:
    """The partitions of a coordinator's topic that this broker leads (`PartitionLog`). `required_acks` are those of its writes."""

    def __init__(self, topic: str, replica_manager: ReplicaManager, required_acks: int = ACKS_LEADER) -> None:
        self._topic = topic
        self._replica_manager = replica_manager
        self._required_acks = required_acks
        self._keys: dict[int, TopicPartition] = {}  # of the partitions that were asked for, none of which is made twice

    def append(self, partition: int, batch: bytes, producer: TransactionProducer = NO_TRANSACTION) -> int:
        key = self._key(partition)
        return self._replica_manager.append_as_coordinator(key, batch, producer.guard, producer.transaction_version, self._required_acks)

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

    def next_segment(self, partition: int, offset: int) -> int:
        log = self._leader_log(partition)
        following = log.segments.higher(offset)
        return log.log_end_offset if following is None else following.base_offset

    def _log(self, partition: int) -> Log | None:
        found: Partition | None = self._replica_manager.partition(self._key(partition))
        return None if found is None else found.leader_log

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
    """Timers in milliseconds (`Scheduler`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, action)


class SensorCounts:
    """How often things have happened, under Kafka's names, since the broker was started (`Metrics`)."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def record(self, sensor: str, count: int) -> None:
        self.counts[sensor] = self.counts.get(sensor, 0) + count
