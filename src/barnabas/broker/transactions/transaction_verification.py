# Compiled by mypyc: src/compiled.toml lists this module.
"""Asks the coordinator of a transaction before its first record goes into a partition (KIP-890).

Between a handler that has records, or offsets, of a transaction and the log that is to take them. The log hands out a guard, the
coordinator says that the partition belongs to the open transaction, or makes it a part of it, and the log takes the records with that
guard. A record that comes after its transaction has ended finds no way into the log, where it would open one that nobody ever ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.clock import Clock
from barnabas.broker.config import DynamicBrokerConfig
from barnabas.broker.replication.replica_manager import ReplicaManager
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.coordinator.runtime import Scheduler
from barnabas.errors import KafkaError, NotLeaderOrFollower
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.producers.verification import SENTINEL, VerificationGuard
from barnabas.topic_name import TRANSACTION_STATE
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator

Errors = dict[TopicPartition, int]
Guards = dict[TopicPartition, VerificationGuard]
OnVerified = Callable[[Errors, Guards], None]

_ADD_PARTITIONS_VERSION: Final = 5  # of AddPartitionsToTxn, as brokers ask each other: the client knows transaction version 2
_NO_LEADER: Final = -1

_COORDINATOR_NOT_AVAILABLE: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_PRODUCER_FENCED: Final = int(ErrorCode.PRODUCER_FENCED)
_INVALID_PRODUCER_EPOCH: Final = int(ErrorCode.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE: Final = int(ErrorCode.INVALID_TXN_STATE)
_TRANSACTION_ABORTABLE: Final = int(ErrorCode.TRANSACTION_ABORTABLE)
_CONCURRENT_TRANSACTIONS: Final = int(ErrorCode.CONCURRENT_TRANSACTIONS)


class Support(IntEnum):
    """What the client knows, as the version of its request tells."""

    DEFAULT_ERROR = 0  # has added the partition itself
    GENERIC_ERROR = 1  # likewise, and understands TRANSACTION_ABORTABLE
    ADD_PARTITION = 2  # transaction version 2: leaves the adding to the broker


def of_produce(version: int) -> Support:
    if version > 11:
        return Support.ADD_PARTITION
    return Support.GENERIC_ERROR if version > 10 else Support.DEFAULT_ERROR


def of_offset_commit(version: int) -> Support:
    """Of TxnOffsetCommit."""
    if version > 4:
        return Support.ADD_PARTITION
    return Support.GENERIC_ERROR if version > 3 else Support.DEFAULT_ERROR


class TransactionVerifier(Protocol):
    """The coordinators of transactions, wherever they are."""

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
        """Make the partitions part of the open transaction, or look whether they are. `on_done` gets the errors; those of 0 may be left
        out. It may be called before this returns."""


class LocalVerifier:
    """Where all coordinators are on this broker (`TransactionVerifier`)."""

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


class _Question:
    """Whether some partitions belong to a transaction. `sequences` are those of the first batch for each, -1 where there is none."""

    __slots__ = ("on_done", "producer_epoch", "producer_id", "retry_until_ms", "sequences", "support", "transactional_id")

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


class TransactionVerification:
    """One question of a transactional id at a time: what one producer sends stays in the order in which it was sent."""

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
        self._waiting: dict[str, deque[_Question]] = {}  # of transactional ids of which one question is being asked
        self.failures = 0  # partitions that a coordinator did not vouch for

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
        """`on_done` gets the partitions that may not be written to, with why, and the guards to give to the logs of the others; a
        partition that has the transaction open already needs none.

        With `retries`, the end of the producer's last transaction is waited for here, for a moment: it is all but written when a producer
        begins the next, and sending the records again would take longer.
        """
        if support is not Support.ADD_PARTITION and not self._producer_config.transaction_verification_enabled:
            on_done({}, {})
            return
        retry_until_ms = self._clock.monotonic_ms() + self._retry_ms() if retries and support is Support.ADD_PARTITION else 0
        question = _Question(support, transactional_id, producer_id, producer_epoch, sequences, retry_until_ms, on_done)
        waiting = self._waiting.get(transactional_id)
        if waiting is None:
            self._ask(question)
        else:
            waiting.append(question)

    def _retry_ms(self) -> int:
        current = self._config.current
        return min(current.number("add.partitions.to.txn.retry.backoff.max.ms"), current.number("request.timeout.ms"))

    def _ask(self, question: _Question) -> None:
        errors: Errors = {}
        guards: Guards = {}
        for partition, sequence in question.sequences.items():
            try:
                guard = self._guard(partition, sequence, question)
            except KafkaError as error:
                errors[partition] = error.code
            else:
                if guard is not SENTINEL:
                    guards[partition] = guard
        if not guards:
            self._done(question, errors, guards)
            return
        self._waiting.setdefault(question.transactional_id, deque())
        self._verifier.add_or_verify(
            question.transactional_id,
            question.producer_id,
            question.producer_epoch,
            list(guards),
            add=question.support is Support.ADD_PARTITION,
            on_done=lambda codes: self._answered(question, errors, guards, codes),
        )

    def _guard(self, partition: TopicPartition, sequence: int, question: _Question) -> VerificationGuard:
        log = self._replica_manager.partition_or_raise(partition).leader_log
        if log is None:
            raise NotLeaderOrFollower(f"Leader not local for partition {partition}")
        return log.producers.start_verification(
            question.producer_id,
            sequence,
            question.producer_epoch,
            question.support is Support.ADD_PARTITION,
            self._clock.monotonic_ms(),
        )

    def _answered(self, question: _Question, errors: Errors, guards: Guards, codes: Mapping[TopicPartition, int]) -> None:
        failed = {partition: _told(code, question.support) for partition, code in codes.items() if code != 0}
        if _CONCURRENT_TRANSACTIONS in failed.values() and self._clock.monotonic_ms() < question.retry_until_ms:
            backoff_ms = self._config.current.number("add.partitions.to.txn.retry.backoff.ms")
            self._scheduler.call_later(backoff_ms, lambda: self._ask(question))
            return
        if question.support is Support.ADD_PARTITION and self._is_stale(question, failed, guards):
            self._ask(question)
            return
        self.failures += len(failed)
        errors.update(failed)
        self._done(question, errors, guards)

    def _is_stale(self, question: _Question, failed: Errors, guards: Guards) -> bool:
        """Whether a log has cleared its guard since the question was asked: the marker of the producer's last transaction was appended.

        A producer of transaction version 2 begins its next transaction before that. The coordinator is asked again with a new guard;
        the epoch tells it the transactions apart. An older producer adds partitions only after the marker: its record is late, and the
        log refuses the guard.
        """
        return any(
            partition not in failed and not self._is_current(guard, partition, question.producer_id) for partition, guard in guards.items()
        )

    def _is_current(self, guard: VerificationGuard, partition: TopicPartition, producer_id: int) -> bool:
        found = self._replica_manager.partition(partition)
        log = None if found is None else found.leader_log
        entry = None if log is None else log.producers.verification_entry(producer_id)
        return entry is not None and entry.guard is guard

    def _done(self, question: _Question, errors: Errors, guards: Guards) -> None:
        try:
            question.on_done(errors, guards)
        finally:
            waiting = self._waiting.get(question.transactional_id)
            if waiting:  # in a turn of its own, and not in that of a question which may itself be the end of a long row
                following = waiting.popleft()
                self._scheduler.call_later(0, lambda: self._ask(following))
            elif waiting is not None:
                del self._waiting[question.transactional_id]


def _told(code: int, support: Support) -> int:
    """A coordinator's code as a producer knows it."""
    if code == _PRODUCER_FENCED:
        return _INVALID_PRODUCER_EPOCH
    if code == _TRANSACTION_ABORTABLE and support is Support.DEFAULT_ERROR:
        return _INVALID_TXN_STATE
    return code
