# Compiled by mypyc: src/compiled.toml lists this module.
"""A partition on this broker: whether it leads, who is in sync, and what follows from that for its log.

Produce and fetch come here from the replica manager and go on to the `Log`. The leader's two promises are kept here: what is acknowledged
is on every in-sync replica, and nobody reads past the high watermark, the least of what those replicas have. It never waits: what has to,
it wakes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

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
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState
from barnabas.records.validation.long_validation import LongValidation
from barnabas.records.validation.validation import Validated
from barnabas.storage.log.append import LogAppendInfo
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.clock import Clock
    from barnabas.broker.topics.metadata_cache import MetadataCache

_log = logging.getLogger(__name__)

ACKS_ALL: Final = -1
HIGH_WATERMARK: Final = -1  # as the offset to delete up to
NO_LEADER: Final = -1

# What `check_replicated` says besides an error code.
REPLICATED: Final = 0
NOT_YET: Final = -2

_NOT_LEADER_OR_FOLLOWER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class PartitionHost:
    """What all partitions of a broker share. `wake` tells those who wait for a partition that it has changed."""

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


class Partition:
    def __init__(self, partition: TopicPartition, host: PartitionHost) -> None:
        self.partition = partition
        self.is_internal = is_internal(partition.topic)
        self.host = host
        self.log: Log | None = None
        self.leader_log: Log | None = None  # the same while this broker leads
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

    # -- becoming

    def make_leader(self, state: LeaderAndIsrPartitionState, log: Log, monotonic_ms: int) -> bool:
        """Takes over the lead, or what the controller says anew about a lead it has. True if it did not lead before."""
        if state.partition_epoch < self.partition_epoch:
            _log.info("Skipped becoming leader of %s: partition epoch %d is older than ours", self.partition, state.partition_epoch)
            return False
        is_new_leader = not self.is_leader
        self._take_assignment(state)
        followers = [broker_id for broker_id in state.replicas if broker_id != self.host.broker_id]
        self.remote_replicas = {broker_id: self.remote_replicas.get(broker_id) or Replica(broker_id) for broker_id in followers}
        self.isr.commit(state.isr)
        self.log = self.leader_log = log
        if state.leader_epoch > self.leader_epoch:
            self._begin_epoch(log, state, is_new_leader, monotonic_ms)
        self.partition_epoch = state.partition_epoch
        self.leader_id = self.host.broker_id
        if self.maybe_increment_leader_high_watermark(log):
            self.host.wake(self.partition)
        return is_new_leader

    def _begin_epoch(self, log: Log, state: LeaderAndIsrPartitionState, is_new_leader: bool, monotonic_ms: int) -> None:
        start_offset = log.log_end_offset
        _log.info(
            "Leader of %s starts at leader epoch %d from offset %d with partition epoch %d, high watermark %d, ISR %s",
            self.partition,
            state.leader_epoch,
            start_offset,
            state.partition_epoch,
            log.high_watermark,
            state.isr,
        )
        # At once and not with the first record: a follower that asks must learn that this epoch has begun.
        log.epochs.assign(state.leader_epoch, start_offset)
        for replica in self.remote_replicas.values():
            replica.reset(start_offset, is_new_leader, replica.broker_id in state.isr, monotonic_ms)
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = start_offset

    def make_follower(self, state: LeaderAndIsrPartitionState, log: Log) -> bool:
        """Follows another broker. True if that one's epoch is new."""
        if state.partition_epoch < self.partition_epoch:
            _log.info("Skipped becoming follower of %s: partition epoch %d is older than ours", self.partition, state.partition_epoch)
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._take_assignment(state)
        self.remote_replicas = {}
        self.isr.commit([])
        self.log = log
        self.leader_log = None
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = None
        self.partition_epoch = state.partition_epoch
        _log.info("Follower of %s starts at leader epoch %d from offset %d", self.partition, state.leader_epoch, log.log_end_offset)
        return is_new_epoch

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
        """This broker has the partition no more: deleted, or on a disk that failed."""
        self.log = self.leader_log = None
        self.leader_epoch_start_offset = None
        self.remote_replicas = {}
        self.isr.commit([])

    # -- the leader's log

    def append_records_to_leader(
        self,
        data: bytes,
        start: int,
        end: int,
        required_acks: int,
        now_ms: int,
        origin: int,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
        at_once: int = -1,
    ) -> PartitionAppend:
        """With `at_once`, raises TakesTurns where more than so many bytes of records would be looked at."""
        log = self._log_to_append_to(required_acks)
        info = log.append_as_leader(
            data,
            self.leader_epoch,
            now_ms,
            origin=origin,
            start=start,
            end=end,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
            at_once=at_once,
        )
        return self._appended(log, info)

    def long_validation(self, data: bytes, start: int, end: int, now_ms: int, origin: int) -> LongValidation:
        """The validation of records that TakesTurns was raised for."""
        if self.leader_log is None:
            raise self._not_leader()
        return self.leader_log.long_validation(data, start, end, self.leader_epoch, now_ms, origin)

    def append_validated_to_leader(
        self,
        validated: Validated,
        required_acks: int,
        now_ms: int,
        origin: int,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
    ) -> PartitionAppend:
        """As `append_records_to_leader`, for the outcome of a long validation."""
        log = self._log_to_append_to(required_acks)
        info = log.append_validated(validated, self.leader_epoch, now_ms, origin, verification_guard, transaction_version)
        return self._appended(log, info)

    def _log_to_append_to(self, required_acks: int) -> Log:
        log = self.leader_log
        if log is None:
            raise self._not_leader()
        if required_acks == ACKS_ALL and self.remote_replicas:
            self._require_enough_replicas(log)
        return log

    def _appended(self, log: Log, info: LogAppendInfo) -> PartitionAppend:
        # With nobody else in sync this very append is replicated enough.
        moved = self.maybe_increment_leader_high_watermark(log)
        must_flush = info.last_offset < log.acks_wait_below and info.last_offset >= log.recovery_point
        return PartitionAppend(
            self.partition,
            0,
            info.first_offset,
            info.last_offset,
            info.log_append_time,
            info.log_start_offset,
            high_watermark_moved=moved,
            must_flush=must_flush,
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
        """No more can be asked for than there are replicas."""
        return min(log.config.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        log = self.leader_log
        return log is not None and len(self.isr.committed) < self._effective_min_isr(log)

    def check_flushed(self, required_offset: int) -> int:
        """Whether everything below an offset is on disk: REPLICATED, NOT_YET, or the error to answer with."""
        log = self.leader_log
        if log is None:
            return _NOT_LEADER_OR_FOLLOWER
        return REPLICATED if log.recovery_point >= required_offset else NOT_YET

    def check_replicated(self, required_offset: int) -> int:
        """Whether everything below an offset is on the in-sync replicas: REPLICATED, NOT_YET, or the error to answer with."""
        log = self.leader_log
        if log is None:
            return _NOT_LEADER_OR_FOLLOWER
        if log.high_watermark < required_offset:
            return NOT_YET
        if not self.remote_replicas:
            return REPLICATED
        # The set may have shrunk while the records were on their way.
        return REPLICATED if self._effective_min_isr(log) <= len(self.isr.maximal) else _NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def maybe_increment_leader_high_watermark(self, log: Log) -> bool:
        """To the least of what the in-sync replicas have, those on their way into the set included. True if it moved.

        One that is caught up but not in the set yet is waited for too: else it could join a set whose high watermark is past its end.
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
        """Fewer to wait for may mean that the high watermark can move."""
        log = self.leader_log
        if log is not None and self.maybe_increment_leader_high_watermark(log):
            self.host.wake(self.partition)

    @property
    def low_watermark(self) -> int:
        """The least log start offset of all live replicas: records below are deleted everywhere."""
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
        """Raises the log start offset, to the high watermark if asked for -1; gives the offset meant."""
        log = self.leader_log
        if log is None:
            raise self._not_leader()
        if not log.config.delete:
            raise PolicyViolation(f"Records of partition {self.partition} can not be deleted due to the configured policy")
        wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
        if wanted < 0:
            raise OffsetOutOfRange(f"The offset {wanted} for partition {self.partition} is not valid")
        log.increment_log_start_offset(wanted, "client delete records request")
        return wanted

    # -- reading

    def local_log(self, current_leader_epoch: int, require_leader: bool) -> Log:
        """The log, for a client that knows this leader epoch (-1: none) and may read from a follower or not."""
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
        wanted: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        monotonic_ms: int,
        update_fetch_state: bool,
    ) -> PartitionRead:
        """Reads, and on a fetch of a follower notes how far it has come."""
        log = self.local_log(wanted.current_leader_epoch, params.fetch_only_leader)
        if not params.is_from_follower:
            return read_records(self, log, wanted, params.isolation, max_bytes, min_one_message)
        replica = self._follower(params.replica_id, wanted)
        read = read_records(self, log, wanted, params.isolation, max_bytes, min_one_message)
        if update_fetch_state and read.diverging_epoch is None:
            self._follower_fetched(replica, read, wanted.log_start_offset, params.replica_epoch, monotonic_ms)
        return read

    def last_offset_for_leader_epoch(self, current_leader_epoch: int, epoch: int, require_leader: bool) -> tuple[int, int]:
        """The largest epoch up to the one asked for and where it ended, (-1, -1) where nothing can be said."""
        log = self.local_log(current_leader_epoch, require_leader)
        return log.epochs.end_offset_for(epoch, log.log_end_offset)

    def _follower(self, replica_id: int, wanted: PartitionFetch) -> Replica:
        replica = self.remote_replicas.get(replica_id)
        if replica is not None:
            return replica
        message = f"Replica {replica_id} is not recognized as a valid replica of {self.partition} in leader epoch {self.leader_epoch}"
        if wanted.current_leader_epoch != NO_EPOCH:
            raise UnknownLeaderEpoch(message)  # it knows of a reassignment that we do not know of yet
        raise NotLeaderOrFollower(message)

    def _follower_fetched(
        self, replica: Replica, read: PartitionRead, follower_start_offset: int, broker_epoch: int, monotonic_ms: int
    ) -> None:
        end_before, start_before = replica.end.offset, replica.log_start_offset
        replica.fetched(read.fetched.offset, follower_start_offset, read.log_end_offset, broker_epoch, monotonic_ms)
        self.isr.maybe_expand(replica)
        log = self.leader_log
        moved = log is not None and end_before != replica.end.offset and self.maybe_increment_leader_high_watermark(log)
        if moved or replica.log_start_offset > start_before:  # the low watermark may have moved with it
            self.host.wake(self.partition)

    def _not_leader(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"Leader not local for partition {self.partition} on broker {self.host.broker_id}")

    def _no_log_message(self, current_leader_epoch: int, require_leader: bool) -> str:
        return (
            f"Failed to find {'leader' if require_leader else ''} log for partition {self.partition} with leader epoch "
            f"{current_leader_epoch}. The current leader is {self.leader_id} and the current epoch {self.leader_epoch}"
        )
