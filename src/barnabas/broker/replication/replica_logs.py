# Compiled by mypyc: src/compiled.toml lists this module.
"""The logs of this broker as its replica fetchers use them (`follower_fetch.ReplicaLogs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.errors import KafkaStorageError, UnexpectedAppendOffset
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager


class LocalReplicaLogs:
    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._log_manager = replicas.log_manager
        self._clock = replicas.clock

    def end_offset(self, partition: TopicPartition) -> int:
        return self._log(partition).log_end_offset

    def start_offset(self, partition: TopicPartition) -> int:
        return self._log(partition).log_start_offset

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._log(partition).high_watermark

    def latest_epoch(self, partition: TopicPartition) -> int | None:
        latest = self._log(partition).epochs.latest_entry
        return None if latest is None else latest.epoch

    def end_of_epoch(self, partition: TopicPartition, epoch: int) -> tuple[int, int]:
        log = self._log(partition)
        return log.epochs.end_offset_for(epoch, log.log_end_offset)

    def append(self, partition: TopicPartition, data: bytes, leader_epoch: int) -> int:
        log = self._log(partition)
        try:
            log.append_as_follower(data, self._clock.now_ms(), leader_epoch)
        except UnexpectedAppendOffset as error:
            self._begin_with_whole_batch(log, error)
            log.append_as_follower(data, self._clock.now_ms(), leader_epoch)
        hosted = self._replicas.online.get(partition)
        if hosted is not None:
            hosted.topic_metrics.replication_bytes_in += len(data)
            if hosted.adding_replicas and self._replicas.broker_id in hosted.adding_replicas:
                hosted.topic_metrics.reassignment_bytes_in += len(data)
        return log.log_end_offset

    def _begin_with_whole_batch(self, log: Log, error: UnexpectedAppendOffset) -> None:
        """The leader's log may start in the middle of a batch whose first records were deleted. An empty log here then starts with the
        whole batch, and takes over the leader's log start offset afterwards. Raises the error in any other case."""
        end = log.log_end_offset
        if not (end == log.log_start_offset and error.first_offset < end <= error.last_offset):
            raise error
        self.start_anew_at(log.partition, error.first_offset)

    def update_offsets(self, partition: TopicPartition, high_watermark: int, start_offset: int) -> None:
        """Completes delayed fetches of consumers that read from this follower."""
        log = self._log(partition)
        before = log.high_watermark
        log.update_high_watermark(min(high_watermark, log.log_end_offset))
        if log.log_start_offset < start_offset <= log.high_watermark:
            log.increment_log_start_offset(start_offset, "leader offset increment")
        if log.high_watermark != before:
            self._replicas.wake(partition)

    def truncate_to(self, partition: TopicPartition, offset: int) -> None:
        self._log_manager.truncate_to(partition, offset, self._clock.now_ms())

    def start_anew_at(self, partition: TopicPartition, offset: int) -> None:
        self._log_manager.truncate_fully_and_start_at(partition, offset, self._clock.now_ms())

    def _log(self, partition: TopicPartition) -> Log:
        log = self._log_manager.get(partition)
        if log is None:
            raise KafkaStorageError(f"There is no log of {partition} on this broker, or its disk has failed")
        return log
