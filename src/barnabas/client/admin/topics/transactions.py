"""Transactions: listed and described by their coordinators, aborted where they hang, and their producers fenced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from barnabas.client.admin.call import Answer, Call
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
    """The values are the names on the wire and in tools."""

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
    """`transaction_start_time_ms` is None while none is open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class AbortTransactionSpec:
    """A transaction that hangs in a partition; `describe_producers` tells the numbers."""

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
    """Lists, describes, aborts and fences."""

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
        """The transactional ids that each broker coordinates, by broker; filtered by state, producer id, for how long a transaction has
        been open, and by a regular expression (RE2/J's) on the id."""
        call = self._calls.begin("list_transactions", timeout_ms)
        request = ListTransactionsRequest(
            [str(state) for state in states], list(producer_ids), duration_ms, transactional_id_pattern or None
        )

        async def ask(call: Call, node_id: int, _: object) -> Answer[int, list[TransactionListing]]:
            response: ListTransactionsResponse = await self._calls.send(call, node_id, request)
            if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return Answer()
            if response.error_code:
                why = (
                    "because the coordinator is shutting down"
                    if response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                    else "with an unexpected exception"
                )
                error = error_for(response.error_code, f"ListTransactions request sent to broker {node_id} failed {why}")
                return Answer(failed={node_id: error})
            listed = [
                TransactionListing(one.transactional_id, one.producer_id, TransactionState.parse(one.transaction_state))
                for one in response.transaction_states
            ]
            return Answer({node_id: listed})

        return await self._calls.ask_each(call, await self._calls.brokers(call), self._calls.each_at_itself, ask)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, TransactionDescription]:
        """State, producer and partitions of transactional ids."""
        call = self._calls.begin("describe_transactions", timeout_ms)

        async def ask(call: Call, node_id: int, ids: Sequence[str]) -> Answer[str, TransactionDescription]:
            response: described.DescribeTransactionsResponse = await self._calls.send(call, node_id, DescribeTransactionsRequest(list(ids)))
            answer: Answer[str, TransactionDescription] = Answer()
            for one in response.transaction_states:
                if one.error_code:
                    settle(answer, one.transactional_id, one.error_code)
                    _explain(answer, "DescribeTransactions", one.transactional_id)
                else:
                    answer.done[one.transactional_id] = _description(one, node_id)
            return answer

        return await self._calls.ask_each(call, transactional_ids, coordinators(self._calls, TRANSACTION), ask)

    async def abort_transaction(self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None) -> None:
        """Writes an abort marker where a transaction hangs that its coordinator knows nothing of. Dangerous for any other."""
        call = self._calls.begin("abort_transaction", timeout_ms)
        partition = spec.topic_partition
        marker = WritableTxnMarker(
            spec.producer_id,
            spec.producer_epoch,
            False,
            [WritableTxnMarkerTopic(partition.topic, [partition.partition])],
            spec.coordinator_epoch,
        )

        async def ask(call: Call, node_id: int, _: object) -> Answer[TopicPartition, None]:
            response: WriteTxnMarkersResponse = await self._calls.send(call, node_id, WriteTxnMarkersRequest([marker]))
            codes = [
                row.error_code
                for told in response.markers
                for topic in told.topics
                for row in topic.partitions
                if told.producer_id == spec.producer_id and TopicPartition(topic.name, row.partition_index) == partition
            ]
            if len(codes) != 1:
                return Answer(failed={partition: KafkaError(f"WriteTxnMarkers response included unexpected entries: {response.markers}")})
            if not codes[0]:
                return Answer({partition: None})
            return Answer(moved={partition}) if codes[0] in _MOVED else Answer(failed={partition: _abort_error(spec, codes[0])})

        (await self._calls.ask_each(call, [partition], leaders(self._calls), ask)).all()

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, ProducerIdAndEpoch]:
        """Makes the producers with these transactional ids unable to go on, and aborts what they had open."""
        call = self._calls.begin("fence_producers", timeout_ms)
        transaction_timeout_ms = self._calls.request_timeout_ms if timeout_ms is None else timeout_ms

        async def ask(call: Call, node_id: int, ids: Sequence[str]) -> Answer[str, ProducerIdAndEpoch]:
            answer: Answer[str, ProducerIdAndEpoch] = Answer()
            for one in ids:
                request = InitProducerIdRequest(one, transaction_timeout_ms)
                response: InitProducerIdResponse = await self._calls.send(call, node_id, request)
                if not response.error_code:
                    answer.done[one] = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                elif response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                    settle(answer, one, response.error_code)
                    _explain(answer, "InitProducerId", one)
            return answer

        return await self._calls.ask_each(call, transactional_ids, coordinators(self._calls, TRANSACTION), ask)

    async def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: int | None = None) -> None:
        """Ends the open transaction of a transactional id, also one that was prepared for two-phase commit, by fencing its producer."""
        (await self.fence_producers([transactional_id], timeout_ms=timeout_ms)).all()


_MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def _description(one: described.TransactionState, node_id: int) -> TransactionDescription:
    return TransactionDescription(
        node_id,
        TransactionState.parse(one.transaction_state),
        one.producer_id,
        one.producer_epoch,
        one.transaction_timeout_ms,
        None if one.transaction_start_time_ms < 0 else one.transaction_start_time_ms,
        frozenset(TopicPartition(topic.topic, partition) for topic in one.topics for partition in topic.partitions),
    )


def _explain(answer: Answer[str, V], request: str, transactional_id: str) -> None:
    """Says of which id an error is, in Kafka's words."""
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
