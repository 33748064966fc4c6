"""The requests of an idempotent or transactional producer, and the handling of their responses.

Each request has its coordinator, its priority, and the effect of every error code on the producer: retry, look up the coordinator again, an
abortable error, or a fatal one. The TransactionManager creates and queues them; the sender sends one at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from barnabas.client.cluster import Node
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import CommitFailed, GroupAuthorization, Timeout, TopicAuthorization, error_for
from barnabas.client.network.connection_failures import NO_FAILURES, ConnectionFailures
from barnabas.client.producer.transactions.sequences import NONE, ProducerIdAndEpoch
from barnabas.errors import KafkaError
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.producer.transactions.transaction_manager import TransactionManager

logger = logging.getLogger(__name__)

# The priorities of requests. An epoch bump follows the end of the transaction that made it necessary.
FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_OR_OFFSETS, END_TXN, EPOCH_BUMP = range(5)

# While the previous transaction is still being completed, adding the first partition of the next one is retried soon.
ADD_PARTITIONS_RETRY_BACKOFF_MS: Final = 20
_INT_MAX: Final = 2**31 - 1


class CoordinatorType(Enum):
    GROUP = 0
    TRANSACTION = 1


class TransactionResult:
    """The result of a call of the application, which waits for it with a timeout and may wait again.

    `operation` is the method that was called; "" if the producer itself made the request and no call waits for it.
    """

    def __init__(self, operation: str = "") -> None:
        self.operation = operation
        self.acknowledged = False  # received by the application
        self.error: KafkaError | None = None
        self.completed = False
        self._lock = threading.Lock()
        self._waiters: list[Callable[[], None]] = []

    def done(self) -> None:
        self._complete(None)

    def fail(self, error: KafkaError) -> None:
        self._complete(error)

    def when_done(self, waiter: Callable[[], None]) -> None:
        with self._lock:
            if not self.completed:
                self._waiters.append(waiter)
                return
        waiter()

    def wait(self, timeout_ms: int, failures: ConnectionFailures = NO_FAILURES) -> None:
        """Blocks until completion; raises the error, or a Timeout with the last connection error."""
        event = threading.Event()
        self.when_done(event.set)
        if not event.wait(timeout_ms / 1000):
            raise self.timed_out(timeout_ms, failures)
        self.take()

    def take(self) -> None:
        """Marks the result as received by the application; raises the error, if there is one."""
        self.acknowledged = True
        if self.error is not None:
            raise self.error

    def timed_out(self, timeout_ms: int, failures: ConnectionFailures) -> Timeout:
        return failures.timeout(f"Timeout expired after {timeout_ms}ms while awaiting {self.operation}")

    def _complete(self, error: KafkaError | None) -> None:
        with self._lock:
            if self.completed:
                return
            self.error = error
            self.completed = True
            waiters = self._waiters
            self._waiters = []
        for waiter in waiters:
            waiter()


class TransactionRequest:
    """One request. `version_max` is the highest version it may be sent in; None for any. It is not sent before `not_before_ms`."""

    api_key: ClassVar[int]
    priority: int = ADD_PARTITIONS_OR_OFFSETS
    coordinator_type: CoordinatorType | None = CoordinatorType.TRANSACTION
    version_max: int | None = None
    is_end: ClassVar[bool] = False

    def __init__(self, manager: TransactionManager, result: TransactionResult) -> None:
        self.manager = manager
        self.result = result
        self.not_before_ms = 0

    @property
    def coordinator_key(self) -> str:
        return self.manager.transactional_id or ""

    @property
    def retry_backoff_ms(self) -> int:
        return self.manager.retry_backoff_ms

    def message(self, version: int) -> Message:
        raise NotImplementedError

    def handle(self, response: Message) -> None:
        """Handles a response. Called under the lock of the manager."""
        raise NotImplementedError

    def disconnected(self) -> None:
        if self.coordinator_type is not None:
            self.look_up_coordinator()
        self.retry()

    def fatal(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.fatal_error(error)

    def abortable(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.abortable_error(error)

    def abortable_if_possible(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.abortable_or_fatal(error, error)

    def fenced(self) -> None:
        """Older coordinators return INVALID_PRODUCER_EPOCH with the same meaning."""
        self.fatal(error_for(ErrorCode.PRODUCER_FENCED))

    def look_up_coordinator(self) -> None:
        assert self.coordinator_type is not None
        self.manager.look_up_coordinator(self.coordinator_type, self.coordinator_key)

    def retry(self) -> None:
        """Enqueues the request again, after its back-off."""
        self.not_before_ms = self.manager.now_ms() + self.retry_backoff_ms
        self.manager.enqueue(self)

    def retried(self, code: int) -> bool:
        """Whether the error is retriable; if so, enqueues a retry."""
        if code in _COORDINATOR_MOVED:
            self.look_up_coordinator()
        elif not error_for(code).retriable:
            return False
        self.retry()
        return True


class InitProducerId(TransactionRequest):
    """Requests the first producer id and epoch, or the next epoch of `current`."""

    api_key = api_keys.INIT_PRODUCER_ID
    version_max: int | None = 5  # the next version is for two-phase commit

    def __init__(self, manager: TransactionManager, current: ProducerIdAndEpoch) -> None:
        super().__init__(manager, TransactionResult())
        self.current = current
        self.is_epoch_bump = current != NONE
        self.priority = EPOCH_BUMP if self.is_epoch_bump else INIT_PRODUCER_ID
        if not manager.is_transactional:
            self.coordinator_type = None

    def message(self, version: int) -> Message:
        manager = self.manager
        endless = manager.two_phase_commit or not manager.is_transactional
        timeout_ms = _INT_MAX if endless else manager.transaction_timeout_ms
        current = self.current if version >= 3 else NONE
        return InitProducerIdRequest(manager.transactional_id, timeout_ms, current.producer_id, current.epoch, manager.two_phase_commit)

    def handle(self, response: Message) -> None:
        assert isinstance(response, InitProducerIdResponse)
        code = response.error_code
        if code == ErrorCode.NONE:
            self.manager.initialized(ProducerIdAndEpoch(response.producer_id, response.producer_epoch), self.is_epoch_bump)
            self.result.done()
        elif code in _COORDINATOR_MOVED and self.coordinator_type is None:
            self.retry()
        elif self.retried(code):
            return
        elif code in (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTION_ABORTABLE,
        ):
            self.abortable(error_for(code))
        elif code in _FENCED:
            self.fenced()
        else:
            self.fatal(KafkaError(f"Unexpected error in InitProducerIdResponse; {error_for(code)}"))


class AddPartitions(TransactionRequest):
    """Registers the partitions of the transaction with the coordinator before they are written to (transaction.version 1)."""

    api_key = api_keys.ADD_PARTITIONS_TO_TXN
    version_max: int | None = 3  # later versions are for brokers

    def __init__(self, manager: TransactionManager, partitions: list[TopicPartition]) -> None:
        super().__init__(manager, TransactionResult())
        self.partitions = partitions
        self.producer = manager.identity.producer
        self._backoff_ms = manager.retry_backoff_ms

    @property
    def retry_backoff_ms(self) -> int:
        return min(self.manager.retry_backoff_ms, self._backoff_ms)

    def message(self, version: int) -> Message:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.coordinator_key,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, partitions) for topic, partitions in _by_topic(self.partitions).items()],
        )

    def handle(self, response: Message) -> None:
        assert isinstance(response, AddPartitionsToTxnResponse)
        manager = self.manager
        self._backoff_ms = manager.retry_backoff_ms
        codes = {
            TopicPartition(topic.name, result.partition_index): result.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        failed = [code for code in codes.values() if code not in (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
        if any(self._settled(code) for code in failed):
            return
        manager.pending_partitions.difference_update(codes)
        unauthorized = {partition.topic for partition, code in codes.items() if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        if unauthorized:
            self.abortable(TopicAuthorization(unauthorized_topics=unauthorized))
        elif failed:
            details = ", ".join(f"{partition}={_name(code)}" for partition, code in codes.items())
            self.abortable(KafkaError(f"Could not add partitions to transaction due to errors: {{{details}}}"))
        else:
            manager.partitions.update(codes)
            manager.transaction_started = True
            self.result.done()

    def _settled(self, code: int) -> bool:
        """Whether this error of one partition settles the whole request."""
        if code == ErrorCode.CONCURRENT_TRANSACTIONS:
            if not self.manager.partitions:
                self._backoff_ms = ADD_PARTITIONS_RETRY_BACKOFF_MS
            self.retry()
        elif self.retried(code):
            pass
        elif code in _FENCED:
            self.fenced()
        elif code in _FATAL:
            self.fatal(error_for(code))
        elif code == ErrorCode.UNKNOWN_PRODUCER_ID:
            self.abortable_if_possible(error_for(code))
        elif code == ErrorCode.TRANSACTION_ABORTABLE:
            self.abortable(error_for(code))
        else:
            return False
        return True


class FindCoordinator(TransactionRequest):
    """May be sent to any broker."""

    api_key = api_keys.FIND_COORDINATOR
    priority = FIND_COORDINATOR
    coordinator_type: CoordinatorType | None = None

    def __init__(self, manager: TransactionManager, kind: CoordinatorType, key: str) -> None:
        super().__init__(manager, TransactionResult())
        self.kind = kind
        self.key = key

    def message(self, version: int) -> Message:
        if version >= 4:
            return FindCoordinatorRequest(key_type=self.kind.value, coordinator_keys=[self.key])
        return FindCoordinatorRequest(key=self.key, key_type=self.kind.value)

    def handle(self, response: Message) -> None:
        assert isinstance(response, FindCoordinatorResponse)
        coordinator = response.coordinators[0] if response.coordinators else response
        code = coordinator.error_code
        if code == ErrorCode.NONE:
            self.manager.coordinator_found(self.kind, Node(coordinator.node_id, coordinator.host, coordinator.port))
            self.result.done()
        elif error_for(code).retriable:
            self.retry()
        elif code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            self.fatal(error_for(code))
        elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            self.abortable(GroupAuthorization(group_id=self.key))
        elif code == ErrorCode.TRANSACTION_ABORTABLE:
            self.abortable(error_for(code))
        else:
            self.fatal(
                KafkaError(
                    f"Could not find a coordinator with type {self.kind.name} with key {self.key} due to unexpected error: "
                    f"{coordinator.error_message or error_for(code)}"
                )
            )


class EndTransaction(TransactionRequest):
    api_key = api_keys.END_TXN
    priority = END_TXN
    is_end = True

    def __init__(self, manager: TransactionManager, committed: bool) -> None:
        super().__init__(manager, TransactionResult())
        self.committed = committed
        self.producer = manager.identity.producer
        # In version 5 the response has the epoch of the next transaction.
        self.version_max = None if manager.is_version_2 else 4

    def message(self, version: int) -> Message:
        return EndTxnRequest(self.coordinator_key, self.producer.producer_id, self.producer.epoch, self.committed)

    def handle(self, response: Message) -> None:
        assert isinstance(response, EndTxnResponse)
        code = response.error_code
        if code == ErrorCode.NONE:
            if response.producer_id != -1:
                self.manager.identity.set_producer(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
                self.manager.identity.reset_sequences()
            self.manager.completed()
            self.result.done()
        elif self.retried(code):
            return
        elif code in _FENCED:
            self.fenced()
        elif code in _FATAL:
            self.fatal(error_for(code))
        elif code == ErrorCode.UNKNOWN_PRODUCER_ID:
            self.abortable_if_possible(error_for(code))
        elif code == ErrorCode.TRANSACTION_ABORTABLE:
            if self.committed:
                self.abortable(error_for(code))
            else:
                failure = KafkaError("Failed to abort transaction")
                failure.__cause__ = error_for(code)
                self.fatal(failure)
        else:
            self.fatal(KafkaError(f"Unhandled error in EndTxnResponse: {error_for(code)}"))


class AddOffsets(TransactionRequest):
    """Adds the offsets of a group to the transaction (transaction.version 1); then they are sent to the group's coordinator."""

    api_key = api_keys.ADD_OFFSETS_TO_TXN

    def __init__(
        self,
        manager: TransactionManager,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        result: TransactionResult,
    ) -> None:
        super().__init__(manager, result)
        self.offsets = offsets
        self.group = group
        self.producer = manager.identity.producer

    def message(self, version: int) -> Message:
        return AddOffsetsToTxnRequest(self.coordinator_key, self.producer.producer_id, self.producer.epoch, self.group.group_id)

    def handle(self, response: Message) -> None:
        assert isinstance(response, AddOffsetsToTxnResponse)
        code = response.error_code
        if code == ErrorCode.NONE:
            self.manager.pending_offsets.update(self.offsets)
            self.manager.enqueue(CommitOffsets(self.manager, self.group, self.result))
            self.manager.transaction_started = True
        elif self.retried(code):
            return
        elif code == ErrorCode.UNKNOWN_PRODUCER_ID:
            self.abortable_if_possible(error_for(code))
        elif code in _FENCED:
            self.fenced()
        elif code in _FATAL:
            self.fatal(error_for(code))
        elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            self.abortable(GroupAuthorization(group_id=self.group.group_id))
        elif code == ErrorCode.TRANSACTION_ABORTABLE:
            self.abortable(error_for(code))
        else:
            self.fatal(KafkaError(f"Unexpected error in AddOffsetsToTxnResponse: {error_for(code)}"))


class CommitOffsets(TransactionRequest):
    """Commits the pending offsets as part of the transaction; retries offsets that were rejected temporarily."""

    api_key = api_keys.TXN_OFFSET_COMMIT
    coordinator_type: CoordinatorType | None = CoordinatorType.GROUP

    def __init__(self, manager: TransactionManager, group: ConsumerGroupMetadata, result: TransactionResult) -> None:
        super().__init__(manager, result)
        self.group = group
        self.producer = manager.identity.producer
        # From version 5 on the broker adds the group to the transaction.
        self.version_max = None if manager.is_version_2 else 4

    @property
    def coordinator_key(self) -> str:
        return self.group.group_id

    def message(self, version: int) -> Message:
        group = self.group
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for partition, offset in self.manager.pending_offsets.items():
            epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
            entry = TxnOffsetCommitRequestPartition(partition.partition, offset.offset, epoch, offset.metadata)
            topics.setdefault(partition.topic, []).append(entry)
        return TxnOffsetCommitRequest(
            self.manager.transactional_id or "",
            group.group_id,
            self.producer.producer_id,
            self.producer.epoch,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
            [TxnOffsetCommitRequestTopic(topic, partitions) for topic, partitions in topics.items()],
        )

    def handle(self, response: Message) -> None:
        assert isinstance(response, TxnOffsetCommitResponse)
        pending = self.manager.pending_offsets
        codes = {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        for partition, code in codes.items():
            if code == ErrorCode.NONE:
                pending.pop(partition, None)
            elif self._ended_by(code):
                break
        if self.result.completed:
            pending.clear()
        elif not pending:
            self.result.done()
        else:
            if any(code in _GROUP_COORDINATOR_MOVED for code in codes.values()):
                self.look_up_coordinator()
            self.retry()

    def _ended_by(self, code: int) -> bool:
        if code in _GROUP_COORDINATOR_MOVED or error_for(code).retriable:
            return False
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            self.abortable(GroupAuthorization(group_id=self.group.group_id))
        elif code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.TRANSACTION_ABORTABLE):
            self.abortable(error_for(code))
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
            reason = error_for(code)
            self.abortable(CommitFailed(f"Transaction offset Commit failed due to consumer group metadata mismatch: {reason}"))
        elif code in _FENCED:
            self.fenced()
        elif code in (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
            self.fatal(error_for(code))
        else:
            self.fatal(KafkaError(f"Unexpected error in TxnOffsetCommitResponse: {error_for(code)}"))
        return True


def _name(code: int) -> str:
    return next((error.name for error in ErrorCode if error == code), str(code))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


_COORDINATOR_MOVED: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_GROUP_COORDINATOR_MOVED: Final = _COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT}
_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
_FATAL: Final = frozenset(
    {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
