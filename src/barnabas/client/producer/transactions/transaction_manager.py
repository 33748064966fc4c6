# Compiled by mypyc: src/compiled.toml lists this module.
"""The state machine of Kafka's TransactionManager: what an idempotent or transactional producer may do now, and which request is next.

Applications begin, commit and abort. The sender takes the `next_request`, sends it, and passes the response to it (`transaction_requests`).
Producer id, epoch and sequences are in `identity`. Both protocols are supported: transaction.version 1, where partitions and groups are
added to a transaction before they are written to, and 2 (KIP-890), where brokers do that and every transaction has an epoch of its own. An
error is *abortable* (abort and continue) or *fatal* (close the producer). The class only decides and does no I/O. Calls come from the
application's threads and from the sender; each holds the given lock.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.client.cluster import Node
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import (
    AuthenticationError,
    ClusterAuthorization,
    IllegalState,
    InvalidPidMapping,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdAuthorization,
)
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.transactions.identity import ProducerIdentity
from barnabas.client.producer.transactions.sequences import NONE, ProducerIdAndEpoch
from barnabas.client.producer.transactions.transaction_requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    CoordinatorType,
    EndTransaction,
    FindCoordinator,
    InitProducerId,
    TransactionRequest,
    TransactionResult,
)
from barnabas.client.producer.transactions.transaction_states import PREVIOUS, TransactionManagerState
from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

TRANSACTION_VERSION_FEATURE: Final = "transaction.version"


class _PendingTransition:
    """A call whose result the application may not have received: it can be repeated, and other calls must wait."""

    def __init__(self, result: TransactionResult, state: TransactionManagerState, operation: str) -> None:
        self.result = result
        self.state = state
        self.operation = operation


class TransactionManager:
    """`transactional_id` is None for a producer that is only idempotent."""

    def __init__(
        self,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = 60000,
        two_phase_commit: bool = False,
        retry_backoff_ms: int = 100,
        lock: threading.RLock | None = None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`now_ms` is a monotonic clock, used for the back-off of retried requests."""
        self.now_ms = now_ms
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.two_phase_commit = two_phase_commit
        self.retry_backoff_ms = retry_backoff_ms
        self.lock = lock or threading.RLock()
        self.state = TransactionManagerState.UNINITIALIZED
        self.failed = False  # by a fatal error
        self.last_error: KafkaError | None = None
        self.identity = ProducerIdentity(transactional_id is not None, self.lock)
        # Partitions of the transaction, partitions with a request in flight, and partitions that are not requested yet.
        self.partitions: set[TopicPartition] = set()
        self.pending_partitions: set[TopicPartition] = set()
        self.new_partitions: set[TopicPartition] = set()
        self.pending_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.transaction_started = False
        self.is_version_2 = False
        self.coordinator_bumps_epoch = False
        self.in_flight: TransactionRequest | None = None
        self._newest_version_2 = False  # the cluster's current version; it applies from the next transaction on
        self._features_epoch = -1
        self._coordinators: dict[CoordinatorType, Node | None] = {}
        self._requests: list[tuple[int, int, TransactionRequest]] = []
        self._request_count = 0
        self._init_not_before_ms = 0
        self._pending: _PendingTransition | None = None

    # Calls of the application

    def initialize(self) -> TransactionResult:
        with self.lock:
            self._fail_if_in_error()
            return self._once(self._begin_initialize, TransactionManagerState.INITIALIZING, "init_transactions")

    def begin(self) -> None:
        with self.lock:
            self._ensure_transactional()
            self._refuse_while_pending("begin_transaction")
            self._fail_if_in_error()
            self._transition(TransactionManagerState.IN_TRANSACTION)

    def begin_commit(self) -> TransactionResult:
        with self.lock:
            return self._once(self._begin_commit, TransactionManagerState.COMMITTING_TRANSACTION, "commit_transaction")

    def begin_abort(self) -> TransactionResult:
        with self.lock:
            return self._once(self._begin_abort, TransactionManagerState.ABORTING_TRANSACTION, "abort_transaction")

    def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata) -> TransactionResult:
        with self.lock:
            self._ensure_transactional()
            self._refuse_while_pending("send_offsets_to_transaction")
            self._fail_if_in_error()
            if self.state is not TransactionManagerState.IN_TRANSACTION:
                raise IllegalState(f"Cannot send offsets if a transaction is not in progress (state {self.state.name})")
            result = TransactionResult("send_offsets_to_transaction")
            request: TransactionRequest
            if self.is_version_2:
                self.pending_offsets.update(offsets)
                request = CommitOffsets(self, group, result)
                self.transaction_started = True
            else:
                request = AddOffsets(self, dict(offsets), group, result)
            self.enqueue(request)
            return result

    def check_send(self, topic: str, partition: int) -> None:
        """Checks before a record is appended whether sending is possible now; without transactions, only whether the producer has
        `failed`."""
        if self.transactional_id is None:
            self._fail_if_in_error()
            return
        if self.state is TransactionManagerState.IN_TRANSACTION and self._pending is None:
            return
        with self.lock:
            self._fail_if_in_error()
            self._refuse_while_pending("send")
            name = f"topic {topic}" if partition < 0 else f"partition {TopicPartition(topic, partition)}"
            if not self.has_producer_id:
                raise IllegalState(f"Cannot add {name} to transaction before completing a call to init_transactions")
            if self.state is not TransactionManagerState.IN_TRANSACTION:
                raise IllegalState(f"Cannot add {name} to transaction while in state {self.state.name}: call begin_transaction first")

    def maybe_add_partition(self, partition: TopicPartition) -> None:
        """Adds the partition of an appended record to the transaction."""
        if partition in self.partitions:
            return
        with self.lock:
            self.check_send(partition.topic, partition.partition)
            if self.is_version_2:
                self.identity.sequences.of(partition)
                self.partitions.add(partition)
                self.transaction_started = True
            elif partition not in self.partitions and partition not in self.pending_partitions:
                self.identity.sequences.of(partition)
                self.new_partitions.add(partition)

    def _begin_initialize(self) -> TransactionResult:
        self._transition(TransactionManagerState.INITIALIZING)
        return self.enqueue(InitProducerId(self, NONE))

    def _begin_commit(self) -> TransactionResult:
        self._fail_if_in_error()
        self._transition(TransactionManagerState.COMMITTING_TRANSACTION)
        return self._begin_completing(committed=True)

    def _begin_abort(self) -> TransactionResult:
        if self.state is not TransactionManagerState.ABORTABLE_ERROR:
            self._fail_if_in_error()
        self._transition(TransactionManagerState.ABORTING_TRANSACTION)
        self.new_partitions.clear()
        return self._begin_completing(committed=False)

    def _begin_completing(self, committed: bool) -> TransactionResult:
        if self.new_partitions:
            self.enqueue(self._add_partitions())
        # The transaction ends with the version it began with; the next one may begin with another.
        result = self.enqueue(EndTransaction(self, committed))
        if not self.is_version_2 and self._newest_version_2:
            self.is_version_2 = True
            self.identity.epoch_bump_required = True
        return self.enqueue(InitProducerId(self, self.identity.producer)) if self.identity.epoch_bump_required else result

    def features_seen(self, features: Mapping[str, int], features_epoch: int) -> None:
        """Records the finalized features of the cluster, which brokers report when they are connected."""
        with self.lock:
            if features_epoch <= self._features_epoch:
                return
            self._features_epoch = features_epoch
            self._newest_version_2 = features.get(TRANSACTION_VERSION_FEATURE, 0) >= 2

    def _once(self, operation: Callable[[], TransactionResult], state: TransactionManagerState, name: str) -> TransactionResult:
        """Starts a call, or returns the pending result of an earlier call that timed out."""
        self._ensure_transactional()
        pending = self._pending
        if pending is not None and not pending.result.acknowledged:
            if pending.state is not state:
                raise _must_be_retried(name, pending)
            return pending.result
        self._pending = None
        result = operation()
        result.operation = name
        self._pending = _PendingTransition(result, state, name)
        return result

    def _refuse_while_pending(self, name: str) -> None:
        pending = self._pending
        if pending is not None:
            if not pending.result.acknowledged:
                raise _must_be_retried(name, pending)
            self._pending = None

    def _ensure_transactional(self) -> None:
        if self.transactional_id is None:
            raise IllegalState("Transactional method invoked on a non-transactional producer.")

    # States

    @property
    def is_transactional(self) -> bool:
        return self.transactional_id is not None

    @property
    def has_producer_id(self) -> bool:
        return self.identity.producer.is_valid

    @property
    def has_fatal_error(self) -> bool:
        return self.state is TransactionManagerState.FATAL_ERROR

    @property
    def has_abortable_error(self) -> bool:
        return self.state is TransactionManagerState.ABORTABLE_ERROR

    @property
    def has_error(self) -> bool:
        return self.has_fatal_error or self.has_abortable_error

    @property
    def is_aborting(self) -> bool:
        return self.state is TransactionManagerState.ABORTING_TRANSACTION

    @property
    def is_completing(self) -> bool:
        return self.state is TransactionManagerState.COMMITTING_TRANSACTION or self.state is TransactionManagerState.ABORTING_TRANSACTION

    @property
    def has_ongoing_transaction(self) -> bool:
        return self.state is TransactionManagerState.IN_TRANSACTION or self.is_completing or self.has_abortable_error

    def is_send_to_partition_allowed(self, partition: TopicPartition) -> bool:
        return not self.has_fatal_error and (self.transactional_id is None or partition in self.partitions)

    @property
    def must_bump_epoch(self) -> bool:
        """Whether the client must request a new epoch after an error; with version 2 the end of the transaction does it."""
        return self.coordinator_bumps_epoch and not self.is_version_2

    @property
    def can_handle_abortable_error(self) -> bool:
        return self.coordinator_bumps_epoch or self.is_version_2

    def abortable_error(self, error: KafkaError, *, poison: bool = True) -> None:
        if self.state is TransactionManagerState.ABORTING_TRANSACTION:
            logger.debug("Already aborting the transaction: %s", error)
            return
        logger.info("Transiting to abortable error state due to %r", error)
        self._transition(TransactionManagerState.ABORTABLE_ERROR, error, poison=poison)

    def fatal_error(self, error: KafkaError) -> None:
        logger.info("Transiting to fatal error state due to %r", error)
        self._transition(TransactionManagerState.FATAL_ERROR, error)
        if self._pending is not None:
            self._pending.result.fail(error)

    def abortable_or_fatal(self, abortable: KafkaError, fatal: KafkaError) -> None:
        """Moves to the abortable error if the epoch can be bumped after it, otherwise to the fatal error."""
        if not self.can_handle_abortable_error:
            self.fatal_error(fatal)
            return
        if self.must_bump_epoch:
            self.identity.epoch_bump_required = True
        self.abortable_error(abortable)

    def error_seen(self, error: KafkaError, *, poison: bool = True) -> None:
        """Handles the error of a record, before or after it was sent: sets the state of the producer and its transaction."""
        with self.lock:
            if isinstance(
                error, ClusterAuthorization | TransactionalIdAuthorization | ProducerFenced | UnsupportedVersion | InvalidPidMapping
            ):
                self.fatal_error(error)
            elif self.is_transactional:
                if error.retriable or isinstance(error, InvalidTxnState):
                    cause = error
                    error = TransactionAbortable("Transaction Request was aborted after exhausting retries.")
                    error.__cause__ = cause
                if self.must_bump_epoch and not self.is_completing:
                    self.identity.epoch_bump_required = True
                self.abortable_error(error, poison=poison)

    def uninitialize(self, error: KafkaError) -> None:
        """Handles missing authorization: init_transactions may be tried again later."""
        with self.lock:
            self._transition(TransactionManagerState.UNINITIALIZED, poison=True)
            if self._pending is not None:
                self._pending.result.fail(error)
            self.last_error = None
            self._init_not_before_ms = self.now_ms() + self.retry_backoff_ms

    def completed(self) -> None:
        """The transaction has ended with commit or abort."""
        self._transition(
            TransactionManagerState.INITIALIZING if self.identity.epoch_bump_required else TransactionManagerState.READY, poison=True
        )
        self.identity.epoch_bump_required = False
        self.transaction_started = False
        self.new_partitions.clear()
        self.pending_partitions.clear()
        self.partitions.clear()

    def initialized(self, producer: ProducerIdAndEpoch, is_epoch_bump: bool) -> None:
        self.identity.set_producer(producer)
        self._transition(TransactionManagerState.READY, poison=True)
        if is_epoch_bump:
            self.identity.reset_sequences()
        elif self.is_transactional:
            self.is_version_2 = self._newest_version_2

    def _transition(self, target: TransactionManagerState, error: KafkaError | None = None, *, poison: bool = False) -> None:
        if self.state not in PREVIOUS[target]:
            prefix = "" if self.transactional_id is None else f"TransactionalId {self.transactional_id}: "
            refusal = IllegalState(f"{prefix}Invalid transition attempted from state {self.state.name} to state {target.name}")
            if poison:
                self.state = TransactionManagerState.FATAL_ERROR
                self.failed = True
                self.last_error = refusal
            raise refusal
        self.last_error = error
        self.state = target
        self.failed = target is TransactionManagerState.FATAL_ERROR

    def _fail_if_in_error(self) -> None:
        if not self.has_error:
            return
        error = self.last_error
        producer = f"Producer with transactional.id '{self.transactional_id}' and {self.identity.producer}"
        if isinstance(error, ProducerFenced):
            raise ProducerFenced(f"{producer} has been fenced by another producer with the same transactional.id")
        if isinstance(error, InvalidProducerEpoch):
            raise InvalidProducerEpoch(f"{producer} attempted to produce with an old epoch")
        if isinstance(error, IllegalState):
            failure: KafkaError = IllegalState(
                f"{producer} cannot execute transactional method because of previous invalid state transition attempt"
            )
        else:
            failure = KafkaError(f"Cannot execute transactional method because we are in an error state: {error}")
        failure.__cause__ = error  # compiled code does not keep the cause of `raise … from`
        raise failure

    # Requests

    def next_request(self, has_incomplete_batches: bool, now_ms: int) -> TransactionRequest | None:
        """The request to send to a coordinator now. The end of a transaction waits until its batches have completed, a retry for its
        back-off."""
        with self.lock:
            if self.new_partitions:
                self.enqueue(self._add_partitions())
            if not self._requests:
                return None
            request = self._requests[0][2]
            if (request.is_end and has_incomplete_batches) or request.not_before_ms > now_ms:
                return None
            heapq.heappop(self._requests)
            if self._ends_with_error(request):
                return None
            if request.is_end and not self.transaction_started:
                # The transaction is empty, so the coordinator need not be informed.
                request.result.done()
                if self.state is not TransactionManagerState.FATAL_ERROR:
                    self.completed()
                return heapq.heappop(self._requests)[2] if self._requests else None
            return request

    def _ends_with_error(self, request: TransactionRequest) -> bool:
        if not self.has_error or (self.has_abortable_error and isinstance(request, FindCoordinator)):
            return False
        assert self.last_error is not None
        request.result.fail(self.last_error)
        return True

    def enqueue(self, request: TransactionRequest) -> TransactionResult:
        self._request_count += 1
        heapq.heappush(self._requests, (request.priority, self._request_count, request))
        return request.result

    @property
    def next_request_at_ms(self) -> int | None:
        """The time until which the next request backs off; None if it does not."""
        return self._requests[0][2].not_before_ms or None if self._requests else None

    @property
    def pending_request_count(self) -> int:
        return len(self._requests)

    def coordinator(self, kind: CoordinatorType) -> Node | None:
        return self._coordinators.get(kind)

    def coordinator_found(self, kind: CoordinatorType, node: Node) -> None:
        self._coordinators[kind] = node

    def look_up_coordinator(self, kind: CoordinatorType, key: str) -> None:
        with self.lock:
            self._coordinators[kind] = None
            self.enqueue(FindCoordinator(self, kind, key))

    def coordinator_ready(self, init_producer_id_version: int | None) -> None:
        """The transaction coordinator is connected: it can bump the epoch if it supports version 3 of InitProducerId."""
        self.coordinator_bumps_epoch = init_producer_id_version is not None and init_producer_id_version >= 3

    def authentication_failed(self, error: AuthenticationError) -> None:
        with self.lock:
            for _, _, request in list(self._requests):
                request.fatal(error)

    def fail_pending_requests(self, error: KafkaError) -> None:
        with self.lock:
            for _, _, request in list(self._requests):
                request.result.fail(error)
                self.abortable_error(error)
            self._requests.clear()

    def close(self) -> None:
        """Fails all requests: nothing will be sent any more."""
        with self.lock:
            error = KafkaError("The producer closed forcefully")
            for _, _, request in list(self._requests):
                request.fatal(error)
            if self.in_flight is not None:
                self.in_flight.result.fail(error)
            if self._pending is not None:
                self._pending.result.fail(error)

    def _add_partitions(self) -> TransactionRequest:
        self.pending_partitions |= self.new_partitions
        self.new_partitions.clear()
        return AddPartitions(self, sorted(self.pending_partitions))

    # Producer id, epoch and batches

    def ensure_producer_id(self) -> None:
        """For a producer that is only idempotent: bumps the epoch if required, and requests a producer id if it has none."""
        with self.lock:
            if self.is_transactional:
                return
            if self.identity.epoch_bump_required:
                self.identity.bump_epoch()
                if not self.has_producer_id:
                    self._transition(TransactionManagerState.UNINITIALIZED, poison=True)
            if self.state is not TransactionManagerState.INITIALIZING and not self.has_producer_id:
                self._transition(TransactionManagerState.INITIALIZING, poison=True)
                request = InitProducerId(self, NONE)
                request.not_before_ms = self._init_not_before_ms
                self.enqueue(request)

    def resolve_sequences(self) -> None:
        """Checks expired batches; a transaction that may have lost one cannot be committed."""
        with self.lock:
            if not self.identity.resolve():
                return
            lost = "The client hasn't received acknowledgment for some previously sent messages and can no longer retry them. "
            self.abortable_or_fatal(
                KafkaError(f"{lost}It is safe to abort the transaction and continue."), KafkaError(f"{lost}It isn't safe to continue.")
            )

    def batch_failed(self, batch: ProducerBatch, error: KafkaError, adjust_sequences: bool) -> None:
        """`adjust_sequences` means that the broker has certainly not written the batch."""
        with self.lock:
            self.error_seen(error)
            self.identity.remove_in_flight(batch)
            if not self.has_fatal_error:
                self.identity.batch_failed(batch, error, adjust_sequences)


def _must_be_retried(operation: str, pending: _PendingTransition) -> IllegalState:
    return IllegalState(
        f"Cannot attempt operation `{operation}` because the previous call to `{pending.operation}` timed out and must be retried"
    )
