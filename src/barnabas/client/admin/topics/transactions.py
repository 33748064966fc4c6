"""Transactions: list and describe them at their coordinators, abort hanging transactions, and fence producers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.locators import TRANSACTION, coordinators, leaders, settle
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.errors import ClusterAuthorization, TransactionalIdAuthorization, TransactionalIdNotFound, error_for
from barnabas.errors import InvalidProducerEpoch, KafkaError, TransactionCoordinatorFenced
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import describe_transactions_response as described
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from barnabas.topic_partition import TopicPartition

V = TypeVar("V")


class TransactionState(Enum):
    """The state of a transaction. The values are the names on the wire and in tools."""

    ONGOING = "Ongoing"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_ABORT = "CompleteAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    EMPTY = "Empty"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"

    @classmethod
    def parse(cls, text: str) -> TransactionState:
        """The state of a name as Kafka writes it; UNKNOWN for a name that this client does not know."""
        return next((state for state in cls if state.value == text), cls.UNKNOWN)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id with its producer id and state."""

    transactional_id: str
    producer_id: int
    state: TransactionState


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """`transaction_start_time_ms` is None while no transaction is open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class AbortTransactionSpec:
    """A hanging transaction in a partition; `describe_producers` returns these numbers."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    def __str__(self) -> str:
        return (
            f"AbortTransactionSpec(topicPartition={self.topic_partition}, producerId={self.producer_id}, "
            f"producerEpoch={self.producer_epoch}, coordinatorEpoch={self.coordinator_epoch})"
        )


class ProducerIdAndEpoch(NamedTuple):
    """The identity of an idempotent or transactional producer."""

    producer_id: int
    epoch: int


class TransactionCalls:
    """Lists, describes and aborts transactions, and fences producers."""

    _calls: Calls

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> Outcomes[int, list[TransactionListing]]:
        """The transactional ids that each broker coordinates, by broker; filtered by state, producer id, minimum duration of the
        transaction, and a regular expression (RE2/J's) on the id."""
        call = self._calls.begin("list_transactions", timeout_ms)
        request = ListTransactionsRequest(
            [str(state) for state in states], list(producer_ids), duration_ms, transactional_id_pattern or None
        )

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[int, list[TransactionListing]]:
            response: ListTransactionsResponse = await self._calls.send(call, node_id, request)
            if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ApiResult()
            if response.error_code:
                why = (
                    "because the coordinator is shutting down"
                    if response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                    else "with an unexpected exception"
                )
                error = error_for(response.error_code, f"ListTransactions request sent to broker {node_id} failed {why}")
                return ApiResult(failed={node_id: error})
            listed = [
                TransactionListing(
                    transaction.transactional_id, transaction.producer_id, TransactionState.parse(transaction.transaction_state)
                )
                for transaction in response.transaction_states
            ]
            return ApiResult({node_id: listed})

        return await self._calls.request_by_node(call, await self._calls.brokers(call), self._calls.locate_brokers, request_from_node)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, TransactionDescription]:
        """State, producer and partitions of transactional ids."""
        call = self._calls.begin("describe_transactions", timeout_ms)

        async def request_from_node(call: Call, node_id: int, ids: Sequence[str]) -> ApiResult[str, TransactionDescription]:
            response: described.DescribeTransactionsResponse = await self._calls.send(call, node_id, DescribeTransactionsRequest(list(ids)))
            answer: ApiResult[str, TransactionDescription] = ApiResult()
            for transaction in response.transaction_states:
                if transaction.error_code:
                    settle(answer, transaction.transactional_id, transaction.error_code)
                    _explain(answer, "DescribeTransactions", transaction.transactional_id)
                else:
                    answer.done[transaction.transactional_id] = _description(transaction, node_id)
            return answer

        return await self._calls.request_by_node(call, transactional_ids, coordinators(self._calls, TRANSACTION), request_from_node)

    async def abort_transaction(self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None) -> None:
        """Writes an abort marker for a hanging transaction that its coordinator does not know. Using it for another transaction is
        dangerous."""
        call = self._calls.begin("abort_transaction", timeout_ms)
        partition = spec.topic_partition
        marker = WritableTxnMarker(
            spec.producer_id,
            spec.producer_epoch,
            False,
            [WritableTxnMarkerTopic(partition.topic, [partition.partition])],
            spec.coordinator_epoch,
        )

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[TopicPartition, None]:
            response: WriteTxnMarkersResponse = await self._calls.send(call, node_id, WriteTxnMarkersRequest([marker]))
            codes = [
                row.error_code
                for marker_result in response.markers
                for topic in marker_result.topics
                for row in topic.partitions
                if marker_result.producer_id == spec.producer_id and TopicPartition(topic.name, row.partition_index) == partition
            ]
            if len(codes) != 1:
                return ApiResult(
                    failed={partition: KafkaError(f"WriteTxnMarkers response included unexpected entries: {response.markers}")}
                )
            if not codes[0]:
                return ApiResult({partition: None})
            return ApiResult(moved={partition}) if codes[0] in _MOVED else ApiResult(failed={partition: _abort_error(spec, codes[0])})

        (await self._calls.request_by_node(call, [partition], leaders(self._calls), request_from_node)).all()

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, ProducerIdAndEpoch]:
        """Fences the producers with these transactional ids, and aborts their open transactions."""
        call = self._calls.begin("fence_producers", timeout_ms)
        transaction_timeout_ms = self._calls.request_timeout_ms if timeout_ms is None else timeout_ms

        async def request_from_node(call: Call, node_id: int, ids: Sequence[str]) -> ApiResult[str, ProducerIdAndEpoch]:
            answer: ApiResult[str, ProducerIdAndEpoch] = ApiResult()
            for transactional_id in ids:
                request = InitProducerIdRequest(transactional_id, transaction_timeout_ms)
                response: InitProducerIdResponse = await self._calls.send(call, node_id, request)
                if not response.error_code:
                    answer.done[transactional_id] = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                elif response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                    settle(answer, transactional_id, response.error_code)
                    _explain(answer, "InitProducerId", transactional_id)
            return answer

        return await self._calls.request_by_node(call, transactional_ids, coordinators(self._calls, TRANSACTION), request_from_node)

    async def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: int | None = None) -> None:
        """Ends the open transaction of a transactional id, also one prepared for two-phase commit, by fencing its producer."""
        (await self.fence_producers([transactional_id], timeout_ms=timeout_ms)).all()


_MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def _description(transaction: described.TransactionState, node_id: int) -> TransactionDescription:
    return TransactionDescription(
        node_id,
        TransactionState.parse(transaction.transaction_state),
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.transaction_timeout_ms,
        None if transaction.transaction_start_time_ms < 0 else transaction.transaction_start_time_ms,
        frozenset(TopicPartition(topic.topic, partition) for topic in transaction.topics for partition in topic.partitions),
    )


def _explain(answer: ApiResult[str, V], request: str, transactional_id: str) -> None:
    """Adds the transactional id to an error, in Kafka's words."""
    error = answer.failed.get(transactional_id)
    start = f"{request} request for transactionalId `{transactional_id}` failed"
    if isinstance(error, TransactionalIdAuthorization):
        answer.failed[transactional_id] = TransactionalIdAuthorization(f"{start} due to authorization failure")
    elif isinstance(error, TransactionalIdNotFound):
        answer.failed[transactional_id] = TransactionalIdNotFound(f"{start} because the ID could not be found")
    elif error is not None:
        answer.failed[transactional_id] = error_for(error.code, f"{start} due to unexpected error")


def _abort_error(spec: AbortTransactionSpec, code: int) -> KafkaError:
    start = f"WriteTxnMarkers request with {spec} failed"
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return ClusterAuthorization(f"{start} due to cluster authorization error")
    if code == ErrorCode.INVALID_PRODUCER_EPOCH:
        return InvalidProducerEpoch(f"{start} due an invalid producer epoch")
    if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        return TransactionCoordinatorFenced(
            f"{start} since the provided coordinator epoch {spec.coordinator_epoch} has been fenced by the active coordinator"
        )
    return error_for(code, f"{start} due to unexpected error: {error_for(code)}")
