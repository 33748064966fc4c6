# Compiled by mypyc: src/compiled.toml lists this module.
"""Verifies with the transaction coordinator that a partition belongs to a transaction, before its first record is appended (KIP-890).

Produce and TxnOffsetCommit call it before they append. The log gives out a guard; the coordinator verifies that the partition belongs to
the open transaction, or adds it; the log then accepts the records together with that guard. A record that arrives after the end of its
transaction is rejected: in the log it would begin a transaction that never ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import IntEnum
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Protocol

from mypy_extensions import i64

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.coordinator.shard_timer import Scheduler
from barnabas.errors import KafkaError, NotLeaderOrFollower
from barnabas.metrics.histogram import Histogram
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.producers.verification import SENTINEL, VerificationGuard
from barnabas.topic_name import TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator

Errors = dict[TopicPartition, int]
Guards = dict[TopicPartition, VerificationGuard]
OnVerified = Callable[[Errors, Guards], None]

_ADD_PARTITIONS_VERSION: Final = 5  # of AddPartitionsToTxn between brokers, where the client supports transaction version 2
_NO_LEADER: Final = -1

_COORDINATOR_NOT_AVAILABLE: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_PRODUCER_FENCED: Final = int(ErrorCode.PRODUCER_FENCED)
_INVALID_PRODUCER_EPOCH: Final = int(ErrorCode.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE: Final = int(ErrorCode.INVALID_TXN_STATE)
_TRANSACTION_ABORTABLE: Final = int(ErrorCode.TRANSACTION_ABORTABLE)
_CONCURRENT_TRANSACTIONS: Final = int(ErrorCode.CONCURRENT_TRANSACTIONS)


class Support(IntEnum):
    """What the client supports, which follows from the version of its request."""

    DEFAULT_ERROR = 0  # the client has added the partition itself
    GENERIC_ERROR = 1  # as above, and the client understands TRANSACTION_ABORTABLE
    ADD_PARTITION = 2  # transaction version 2: the broker adds the partition


def of_produce(version: int) -> Support:
    if version > 11:
        return Support.ADD_PARTITION
    return Support.GENERIC_ERROR if version > 10 else Support.DEFAULT_ERROR


def of_offset_commit(version: int) -> Support:
    """The support of a client that sends TxnOffsetCommit in this version."""
    if version > 4:
        return Support.ADD_PARTITION
    return Support.GENERIC_ERROR if version > 3 else Support.DEFAULT_ERROR


class TransactionVerifier(Protocol):
    """The transaction coordinators of the cluster."""

    def add_or_verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        *,
        add: bool,
        on_done: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        """Adds the partitions to the open transaction, or verifies that they belong to it. `on_done` gets the error codes; a code of 0 may
        be left out. `on_done` may be called before this method returns."""


class LocalVerifier:
    """Verifies with the transaction coordinator of this broker (implements `TransactionVerifier`)."""

    def __init__(self, coordinator: TransactionCoordinator, metadata_cache: MetadataCache) -> None:
        self._coordinator = coordinator
        self._metadata_cache = metadata_cache

    def add_or_verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
        *,
        add: bool,
        on_done: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        if not self._has_coordinator(transactional_id):
            on_done(dict.fromkeys(partitions, _COORDINATOR_NOT_AVAILABLE))
        elif add:
            self._coordinator.add_partitions(
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                _ADD_PARTITIONS_VERSION,
                lambda code: on_done(dict.fromkeys(partitions, code)),
            )
        else:
            self._coordinator.verify_partitions(transactional_id, producer_id, producer_epoch, partitions, on_done)

    def _has_coordinator(self, transactional_id: str) -> bool:
        try:
            partition = self._coordinator.partition_for(transactional_id)
        except KafkaError:
            return False
        state = self._metadata_cache.partition_info(TRANSACTION_STATE, partition)
        return state is not None and state.leader != _NO_LEADER


class _PendingVerification:
    """A verification that was requested. `sequences` has the base sequence of the first batch of each partition, -1 if there is none."""

    __slots__ = ("began_ns", "on_done", "producer_epoch", "producer_id", "retry_until_ms", "sequences", "support", "transactional_id")

    def __init__(
        self,
        support: Support,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        sequences: dict[TopicPartition, int],
        retry_until_ms: int,
        on_done: OnVerified,
    ) -> None:
        self.support = support
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequences = sequences
        self.retry_until_ms = retry_until_ms
        self.on_done = on_done
        self.began_ns: i64 = 0  # of the question to the coordinator


class TransactionVerification:
    """Runs one verification of a transactional id at a time, so that the requests of a producer stay in order."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        verifier: TransactionVerifier,
        config: DynamicBrokerConfig,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self._replica_manager = replica_manager
        self._producer_config = replica_manager.log_manager.config.producers
        self._verifier = verifier
        self._config = config
        self._clock = clock
        self._scheduler = scheduler
        self._waiting: dict[str, deque[_PendingVerification]] = {}  # by transactional id, while a verification of that id runs
        self.times_us = Histogram()  # of questions to a coordinator, in microseconds
        self.failures = 0  # partitions that a coordinator did not verify

    def verify(
        self,
        support: Support,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        sequences: dict[TopicPartition, int],
        on_done: OnVerified,
        *,
        retries: bool = False,
    ) -> None:
        """`on_done` gets the error codes of the rejected partitions, and the guards to append to the others with. A partition in which the
        transaction is already open needs no guard.

        With `retries`, CONCURRENT_TRANSACTIONS is retried here for up to add.partitions.to.txn.retry.backoff.max.ms: the markers of the
        producer's last transaction are nearly written when it begins the next one, and a retry by the client would take longer.
        """
        if support is not Support.ADD_PARTITION and not self._producer_config.transaction_verification_enabled:
            on_done({}, {})
            return
        retry_until_ms = self._clock.monotonic_ms() + self._retry_ms() if retries and support is Support.ADD_PARTITION else 0
        pending = _PendingVerification(support, transactional_id, producer_id, producer_epoch, sequences, retry_until_ms, on_done)
        waiting = self._waiting.get(transactional_id)
        if waiting is None:
            self._start(pending)
        else:
            waiting.append(pending)

    def _retry_ms(self) -> int:
        current = self._config.current
        return min(current.number("add.partitions.to.txn.retry.backoff.max.ms"), current.number("request.timeout.ms"))

    def _start(self, pending: _PendingVerification) -> None:
        errors: Errors = {}
        guards: Guards = {}
        for partition, sequence in pending.sequences.items():
            try:
                guard = self._guard(partition, sequence, pending)
            except KafkaError as error:
                errors[partition] = error.code
            else:
                if guard is not SENTINEL:
                    guards[partition] = guard
        if not guards:
            self._done(pending, errors, guards)
            return
        self._waiting.setdefault(pending.transactional_id, deque())
        pending.began_ns = perf_counter_ns()
        self._verifier.add_or_verify(
            pending.transactional_id,
            pending.producer_id,
            pending.producer_epoch,
            list(guards),
            add=pending.support is Support.ADD_PARTITION,
            on_done=lambda codes: self._answered(pending, errors, guards, codes),
        )

    def _guard(self, partition: TopicPartition, sequence: int, pending: _PendingVerification) -> VerificationGuard:
        log = self._replica_manager.partition_or_raise(partition).leader_log
        if log is None:
            raise NotLeaderOrFollower(f"Leader not local for partition {partition}")
        return log.producers.start_verification(
            pending.producer_id,
            sequence,
            pending.producer_epoch,
            pending.support is Support.ADD_PARTITION,
            self._clock.monotonic_ms(),
        )

    def _answered(self, pending: _PendingVerification, errors: Errors, guards: Guards, codes: Mapping[TopicPartition, int]) -> None:
        self.times_us.record((perf_counter_ns() - pending.began_ns) // 1000)
        failed = {partition: _producer_code(code, pending.support) for partition, code in codes.items() if code != 0}
        if _CONCURRENT_TRANSACTIONS in failed.values() and self._clock.monotonic_ms() < pending.retry_until_ms:
            backoff_ms = self._config.current.number("add.partitions.to.txn.retry.backoff.ms")
            self._scheduler.call_later(backoff_ms, lambda: self._start(pending))
            return
        if pending.support is Support.ADD_PARTITION and self._is_stale(pending, failed, guards):
            self._start(pending)
            return
        self.failures += len(failed)
        errors.update(failed)
        self._done(pending, errors, guards)

    def _is_stale(self, pending: _PendingVerification, failed: Errors, guards: Guards) -> bool:
        """Whether a log has cleared its guard during the verification, because the marker of the producer's last transaction was appended.

        A producer of transaction version 2 may begin its next transaction before that marker. The verification is then repeated with a new
        guard; the coordinator distinguishes the two transactions by the producer epoch. An older producer adds partitions only after the
        marker, so its record is late, and the log rejects the guard.
        """
        return any(
            partition not in failed and not self._is_current(guard, partition, pending.producer_id) for partition, guard in guards.items()
        )

    def _is_current(self, guard: VerificationGuard, partition: TopicPartition, producer_id: int) -> bool:
        online = self._replica_manager.partition(partition)
        log = None if online is None else online.leader_log
        entry = None if log is None else log.producers.verification_entry(producer_id)
        return entry is not None and entry.guard is guard

    def _done(self, pending: _PendingVerification, errors: Errors, guards: Guards) -> None:
        try:
            pending.on_done(errors, guards)
        finally:
            waiting = self._waiting.get(pending.transactional_id)
            if waiting:  # in a new loop iteration, so that a long queue does not recurse
                following = waiting.popleft()
                self._scheduler.call_later(0, lambda: self._start(following))
            elif waiting is not None:
                del self._waiting[pending.transactional_id]


def _producer_code(code: int, support: Support) -> int:
    """The error code for the producer that corresponds to one of the coordinator."""
    if code == _PRODUCER_FENCED:
        return _INVALID_PRODUCER_EPOCH
    if code == _TRANSACTION_ABORTABLE and support is Support.DEFAULT_ERROR:
        return _INVALID_TXN_STATE
    return code
