# Compiled by mypyc: src/compiled.toml lists this module.
"""A partition on this broker: leader or follower, its in-sync replicas, and its log.

The replica manager calls it for Produce and Fetch, and it calls the `Log`. It keeps the two promises of a leader: acknowledged records are
on every in-sync replica, and no consumer reads past the high watermark, the least log end offset of those replicas. It never waits; after a
change it calls `wake`, which checks the delayed operations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas import loggers
from barnabas.broker.metrics.topic_metrics import BrokerTopicMetrics
from barnabas.broker.partitions.ack_status import ACKNOWLEDGED, NOT_LEADER, PENDING, TOO_FEW_IN_SYNC, AckStatus
from barnabas.broker.partitions.fetch_params import NO_EPOCH, FetchParams, PartitionFetch
from barnabas.broker.partitions.isr import InSyncReplicas, IsrUpdates
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.partitions.partition_read import PartitionRead, read_records
from barnabas.broker.partitions.replica import Replica
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    UnknownLeaderEpoch,
)
from barnabas.protocol.message_text import kafka_text
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState
from barnabas.records.validation.long_validation import LongValidation
from barnabas.records.validation.validation import Validated
from barnabas.storage.log.append import LogAppend, LogAppendInfo
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.log_offset import LogOffset
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.topics.metadata_cache import MetadataCache

_state_changes: Final = logging.getLogger(loggers.STATE_CHANGE)

ACKS_ALL: Final = -1
HIGH_WATERMARK: Final = -1  # as the offset to delete up to
NO_LEADER: Final = -1


class PartitionHost:
    """What all partitions of a broker share. `wake` checks the delayed operations of a partition that has changed. The counters of the
    ISR are of decided changes, and of proposals that the controller refused."""

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        clock: Clock,
        replica_lag_time_max_ms: int,
        wake: Callable[[TopicPartition], None],
        isr_updates: IsrUpdates | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.log_manager = log_manager
        self.metadata_cache = metadata_cache
        self.clock = clock
        self.replica_lag_time_max_ms = replica_lag_time_max_ms
        self.wake = wake
        self.isr_updates = isr_updates
        self.topic_metrics = BrokerTopicMetrics()
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0


class Partition:
    def __init__(self, partition: TopicPartition, host: PartitionHost) -> None:
        self.partition = partition
        self.is_internal = is_internal(partition.topic)
        self.host = host
        self.topic_metrics = host.topic_metrics.replica_added(partition.topic)
        self.is_closed = False
        self.log: Log | None = None
        self.leader_log: Log | None = None  # `log` while this broker leads, else None
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.controller_epoch = 0
        self.replicas: list[int] = []
        self.adding_replicas: list[int] = []
        self.removing_replicas: list[int] = []
        self.remote_replicas: dict[int, Replica] = {}
        self.isr = InSyncReplicas(self)

    @property
    def is_leader(self) -> bool:
        return self.leader_log is not None

    @property
    def topic_id(self) -> Uuid | None:
        log = self.log or self.host.log_manager.get(self.partition)
        return None if log is None else log.topic_id

    @property
    def log_start_offset(self) -> int:
        return -1 if self.leader_log is None else self.leader_log.log_start_offset

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return f"Partition({self.partition}, {role}, epoch={self.leader_epoch}, isr={sorted(self.isr.committed)})"

    # -- leading and following

    def make_leader(self, state: LeaderAndIsrPartitionState, log: Log, monotonic_ms: int) -> bool:
        """Becomes the leader, or updates the state of a partition that it leads. True if it did not lead before."""
        if state.partition_epoch < self.partition_epoch:
            self._log_skipped("become-leader", state, f"the leader is already at a newer partition epoch {self.partition_epoch}")
            return False
        is_new_leader = not self.is_leader
        self._take_assignment(state)
        followers = [broker_id for broker_id in state.replicas if broker_id != self.host.broker_id]
        self.remote_replicas = {broker_id: self.remote_replicas.get(broker_id) or Replica(broker_id) for broker_id in followers}
        self.isr.commit(state.isr)
        self.log = self.leader_log = log
        if state.leader_epoch > self.leader_epoch:
            self._begin_epoch(log, state, is_new_leader, monotonic_ms)
        else:
            self._log_skipped("become-leader", state, f"it is already the leader with leader epoch {self.leader_epoch}")
        self.partition_epoch = state.partition_epoch
        self.leader_id = self.host.broker_id
        if self.maybe_increment_leader_high_watermark(log):
            self.host.wake(self.partition)
        return is_new_leader

    def _begin_epoch(self, log: Log, state: LeaderAndIsrPartitionState, is_new_leader: bool, monotonic_ms: int) -> None:
        start_offset = log.log_end_offset
        if _state_changes.isEnabledFor(logging.INFO):
            _state_changes.info(
                "[Broker id=%d] Leader %s with topic id %s starts at leader epoch %d from offset %d with partition epoch %d, "
                "high watermark %d, ISR %s, adding replicas %s and removing replicas %s %s. "
                "Previous leader %s and previous leader epoch was %d.",
                self.host.broker_id,
                self.partition,
                _option(log.topic_id),
                state.leader_epoch,
                start_offset,
                state.partition_epoch,
                log.high_watermark,
                _ids(state.isr),
                _ids(state.adding_replicas),
                _ids(state.removing_replicas),
                "(under-min-isr)" if self.is_under_min_isr else "",
                _option(None if self.leader_id == NO_LEADER else self.leader_id),
                self.leader_epoch,
            )
        # Now and not with the first record: a follower that compares epochs must see that this epoch has begun.
        log.epochs.assign(state.leader_epoch, start_offset)
        for replica in self.remote_replicas.values():
            replica.reset(start_offset, is_new_leader, replica.broker_id in state.isr, monotonic_ms)
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = start_offset

    def make_follower(self, state: LeaderAndIsrPartitionState, log: Log) -> bool:
        """Follows another broker. True if the leader epoch is new."""
        if state.partition_epoch < self.partition_epoch:
            self._log_skipped("become-follower", state, f"the follower is already at a newer partition epoch {self.partition_epoch}")
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        if not is_new_epoch:
            self._log_skipped("become-follower", state, f"it is already a follower with leader epoch {self.leader_epoch}")
        elif _state_changes.isEnabledFor(logging.INFO):
            _state_changes.info(
                "[Broker id=%d] Follower %s starts at leader epoch %d from offset %d with partition epoch %d and high watermark %d. "
                "Current leader is %d. Previous leader %s and previous leader epoch was %d.",
                self.host.broker_id,
                self.partition,
                state.leader_epoch,
                log.log_end_offset,
                state.partition_epoch,
                log.high_watermark,
                state.leader,
                _option(None if self.leader_id == NO_LEADER else self.leader_id),
                self.leader_epoch,
            )
        self._take_assignment(state)
        self.remote_replicas = {}
        self.isr.commit([])
        self.log = log
        self.leader_log = None
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = None
        self.partition_epoch = state.partition_epoch
        return is_new_epoch

    def _log_skipped(self, change: str, state: LeaderAndIsrPartitionState, reason: str) -> None:
        if _state_changes.isEnabledFor(logging.INFO):
            _state_changes.info(
                "[Broker id=%d] Skipped the %s state change for %s with topic id %s and partition state %s since %s.",
                self.host.broker_id,
                change,
                self.partition,
                _option(self.topic_id),
                kafka_text(state),
                reason,
            )

    def _take_assignment(self, state: LeaderAndIsrPartitionState) -> None:
        self.controller_epoch = state.controller_epoch
        self.replicas = list(state.replicas)
        self.adding_replicas = list(state.adding_replicas)
        self.removing_replicas = list(state.removing_replicas)

    def replace_log(self, log: Log) -> None:
        """The replica has moved to another log directory."""
        self.log = log
        if self.leader_log is not None:
            self.leader_log = log

    def close(self) -> None:
        """The replica is deleted, or its disk failed."""
        if not self.is_closed:
            self.is_closed = True
            self.host.topic_metrics.replica_removed(self.partition.topic)
        self.log = self.leader_log = None
        self.leader_epoch_start_offset = None
        self.remote_replicas = {}
        self.isr.commit([])

    # -- the leader's log

    def append_records_to_leader(self, append: LogAppend, required_acks: int) -> PartitionAppend:
        """Raises TakesTurns if more than `append.at_once` bytes of records have to be validated."""
        log = self._log_to_append_to(required_acks)
        return self._appended(log, append, log.append_as_leader(append, self.leader_epoch))

    def long_validation(self, append: LogAppend) -> LongValidation:
        """The validation of records that TakesTurns was raised for."""
        if self.leader_log is None:
            raise self._not_leader()
        return self.leader_log.long_validation(append, self.leader_epoch)

    def append_validated_to_leader(self, validated: Validated, append: LogAppend, required_acks: int) -> PartitionAppend:
        """As `append_records_to_leader`, for the outcome of a long validation."""
        log = self._log_to_append_to(required_acks)
        return self._appended(log, append, log.append_validated(validated, append, self.leader_epoch))

    def _log_to_append_to(self, required_acks: int) -> Log:
        log = self.leader_log
        if log is None:
            raise self._not_leader()
        if required_acks == ACKS_ALL and self.remote_replicas:
            self._require_enough_replicas(log)
        return log

    def _appended(self, log: Log, append: LogAppend, info: LogAppendInfo) -> PartitionAppend:
        metrics = self.topic_metrics
        metrics.total_produces += 1
        metrics.bytes_in += append.end - append.start
        if info.first_offset >= 0:
            metrics.messages_in += info.last_offset - info.first_offset + 1
        if info.converted_records != 0:
            metrics.produce_conversions += info.converted_records
            self.host.topic_metrics.converted_produces.record(info.conversion_ns, info.temporary_bytes)
        # If no other replica is in sync, the append itself moves the high watermark.
        moved = self.maybe_increment_leader_high_watermark(log)
        return PartitionAppend(
            self.partition,
            0,
            info.first_offset,
            info.last_offset,
            info.log_append_time,
            info.log_start_offset,
            high_watermark_moved=moved,
            must_flush=info.must_flush,
            looked_at=info.looked_at,
        )

    def _require_enough_replicas(self, log: Log) -> None:
        in_sync = self.isr.committed
        min_isr = self._effective_min_isr(log)
        if len(in_sync) < min_isr:
            raise NotEnoughReplicas(
                f"The size of the current ISR {sorted(in_sync)} is insufficient to satisfy the min.isr requirement of {min_isr} "
                f"for partition {self.partition}"
            )

    def _effective_min_isr(self, log: Log) -> int:
        """min.insync.replicas, but at most the number of replicas."""
        return min(log.config.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        log = self.leader_log
        return log is not None and len(self.isr.committed) < self._effective_min_isr(log)

    def check_flushed(self, required_offset: int) -> AckStatus:
        """Whether everything below an offset is on the leader's disk."""
        log = self.leader_log
        if log is None:
            return NOT_LEADER
        return ACKNOWLEDGED if log.recovery_point >= required_offset else PENDING

    def check_replicated(self, required_offset: int) -> AckStatus:
        """Whether everything below an offset is on the in-sync replicas."""
        log = self.leader_log
        if log is None:
            return NOT_LEADER
        if log.high_watermark < required_offset:
            return PENDING
        if not self.remote_replicas:
            return ACKNOWLEDGED
        # The ISR may have shrunk since the append.
        return ACKNOWLEDGED if self._effective_min_isr(log) <= len(self.isr.maximal) else TOO_FEW_IN_SYNC

    def maybe_increment_leader_high_watermark(self, log: Log) -> bool:
        """Moves the high watermark to the least log end offset of the maximal ISR. True if it moved.

        A replica that is caught up but not in the ISR yet counts too: else it could join an ISR whose high watermark is past its log end.
        """
        end = log.end
        if not self.remote_replicas:
            return log.maybe_increment_high_watermark(end) is not None
        if len(self.isr.committed) < self._effective_min_isr(log):
            return False
        new = end
        for replica in self.remote_replicas.values():
            if replica.end.offset < new.offset and (replica.broker_id in self.isr.maximal or self._may_join(replica, end)):
                new = replica.end
        return log.maybe_increment_high_watermark(new) is not None

    def _may_join(self, replica: Replica, leader_end: LogOffset) -> bool:
        caught_up = replica.is_caught_up(leader_end.offset, self.host.clock.monotonic_ms(), self.host.replica_lag_time_max_ms)
        return caught_up and self.host.metadata_cache.has_alive_broker(replica.broker_id)

    def isr_changed(self) -> None:
        """A smaller ISR may let the high watermark move."""
        log = self.leader_log
        if log is not None and self.maybe_increment_leader_high_watermark(log):
            self.host.wake(self.partition)

    @property
    def low_watermark(self) -> int:
        """The least log start offset of all live replicas: records below it are deleted on all of them."""
        log = self.leader_log
        if log is None:
            raise self._not_leader()
        low = log.log_start_offset
        for replica in self.remote_replicas.values():
            if replica.log_start_offset < low and self.host.metadata_cache.has_alive_broker(replica.broker_id):
                low = replica.log_start_offset
        future = self.host.log_manager.get(self.partition, is_future=True)
        return low if future is None else min(low, future.log_start_offset)

    def delete_records_on_leader(self, offset: int) -> int:
        """Raises the log start offset, for -1 to the high watermark; returns the new log start offset."""
        log = self.leader_log
        if log is None:
            raise self._not_leader()
        if not log.config.delete:
            raise PolicyViolation(f"Records of partition {self.partition} can not be deleted due to the configured policy")
        start_offset = log.high_watermark if offset == HIGH_WATERMARK else offset
        if start_offset < 0:
            raise OffsetOutOfRange(f"The offset {start_offset} for partition {self.partition} is not valid")
        log.increment_log_start_offset(start_offset, "client delete records request")
        return start_offset

    # -- reading

    def local_log(self, current_leader_epoch: int, require_leader: bool) -> Log:
        """The log, for a client with this leader epoch (-1: unknown). Raises KafkaError if the epoch or the role does not match."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            error: type[KafkaError] = FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch
            raise error(self._no_log_message(current_leader_epoch, require_leader))
        log = self.leader_log if require_leader else self.log
        if log is None:
            raise NotLeaderOrFollower(self._no_log_message(current_leader_epoch, require_leader))
        return log

    def fetch_records(
        self,
        params: FetchParams,
        request: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        monotonic_ms: int,
        update_fetch_state: bool,
    ) -> PartitionRead:
        """Reads, and updates the state of the follower if a follower fetches."""
        log = self.local_log(request.current_leader_epoch, params.fetch_only_leader)
        if not params.is_from_follower:
            return read_records(self, log, request, params.isolation, max_bytes, min_one_message)
        replica = self._follower(params.replica_id, request)
        read = read_records(self, log, request, params.isolation, max_bytes, min_one_message)
        if update_fetch_state and read.diverging_epoch is None:
            self._follower_fetched(replica, read, request.log_start_offset, params.replica_epoch, monotonic_ms)
        return read

    def last_offset_for_leader_epoch(self, current_leader_epoch: int, epoch: int, require_leader: bool) -> tuple[int, int]:
        """The largest epoch up to the given one and its end offset; (-1, -1) if there is none."""
        log = self.local_log(current_leader_epoch, require_leader)
        return log.epochs.end_offset_for(epoch, log.log_end_offset)

    def _follower(self, replica_id: int, request: PartitionFetch) -> Replica:
        replica = self.remote_replicas.get(replica_id)
        if replica is not None:
            return replica
        message = f"Replica {replica_id} is not recognized as a valid replica of {self.partition} in leader epoch {self.leader_epoch}"
        if request.current_leader_epoch != NO_EPOCH:
            raise UnknownLeaderEpoch(message)  # the replica was added by a reassignment that has not reached this broker yet
        raise NotLeaderOrFollower(message)

    def _follower_fetched(
        self, replica: Replica, read: PartitionRead, follower_start_offset: int, broker_epoch: int, monotonic_ms: int
    ) -> None:
        end_before, start_before = replica.end.offset, replica.log_start_offset
        replica.fetched(read.fetched.offset, follower_start_offset, read.log_end_offset, broker_epoch, monotonic_ms)
        self.isr.maybe_expand(replica)
        log = self.leader_log
        moved = log is not None and end_before != replica.end.offset and self.maybe_increment_leader_high_watermark(log)
        if moved or replica.log_start_offset > start_before:  # the low watermark may have moved too
            self.host.wake(self.partition)

    def _not_leader(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"Leader not local for partition {self.partition} on broker {self.host.broker_id}")

    def _no_log_message(self, current_leader_epoch: int, require_leader: bool) -> str:
        return (
            f"Failed to find {'leader' if require_leader else ''} log for partition {self.partition} with leader epoch "
            f"{current_leader_epoch}. The current leader is {self.leader_id} and the current epoch {self.leader_epoch}"
        )


def _option(value: object) -> str:
    """As Scala prints an Option."""
    return "None" if value is None else f"Some({value})"


def _ids(broker_ids: list[int]) -> str:
    return f"[{','.join(map(str, broker_ids))}]"
