# Compiled by mypyc: src/compiled.toml lists this module.
"""AddPartitionsToTxn: adds partitions to a transaction, before any record of the transaction is written to them.

Versions 0 to 5.
Behaviour
- up to version 3 a producer sends it, for one transaction. From version 4 on brokers send it that received records or offsets of
  transactions: it names many transactions, each with partitions to add, or only to verify (KIP-890).
- a partition that does not exist, or an internal topic in a client's request, fails its transaction: the other partitions of the
  transaction get OPERATION_NOT_ATTEMPTED. An error of one transaction does not affect the others.
Authorization
- up to version 3: WRITE on the transactional id, else every partition has the error TRANSACTIONAL_ID_AUTHORIZATION_FAILED; WRITE on each
  topic, else TOPIC_AUTHORIZATION_FAILED.
- from version 4 on: CLUSTER_ACTION on the cluster, else CLUSTER_AUTHORIZATION_FAILED for the whole.
Version notes: 2 has PRODUCER_FENCED, earlier versions INVALID_PRODUCER_EPOCH. 5 has the errors of transaction version 2.
Errors: per partition: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, OPERATION_NOT_ATTEMPTED, and those of the coordinator:
  INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, TRANSACTION_ABORTABLE,
  NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.coordinator.gather import Gather
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from barnabas.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_FROM_BROKERS: Final = 4

_UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_TOPIC_AUTHORIZATION_FAILED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
_CLUSTER_AUTHORIZATION_FAILED: Final = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_OPERATION_NOT_ATTEMPTED: Final = int(ErrorCode.OPERATION_NOT_ATTEMPTED)

Errors = Mapping[TopicPartition, int]

PARTS: Final = Parts(("transactions",), ("results_by_transaction",))  # the partitions of a transaction are added together or not at all


def handle(broker: Broker, request: Request[AddPartitionsToTxnRequest]) -> Reply[AddPartitionsToTxnResponse]:
    reply: Reply[AddPartitionsToTxnResponse] = Reply(request)
    message, version = request.message, request.version
    if version >= _FROM_BROKERS:
        if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
            return Reply.now(request, AddPartitionsToTxnResponse(error_code=_CLUSTER_AUTHORIZATION_FAILED))
        transactions = message.transactions
    else:
        transactions = [
            AddPartitionsToTxnTransaction(
                message.v3_and_below_transactional_id,
                message.v3_and_below_producer_id,
                message.v3_and_below_producer_epoch,
                False,
                message.v3_and_below_topics,
            )
        ]

    def respond(results: list[Errors]) -> None:
        reply.complete(_response(version, transactions, results))

    gather: Gather[Errors] = Gather(len(transactions), respond)
    for index, transaction in enumerate(transactions):
        _add_or_verify(broker, request, transaction, gather.slot(index))
    gather.all_asked()
    return reply


def _add_or_verify(
    broker: Broker,
    request: Request[AddPartitionsToTxnRequest],
    transaction: AddPartitionsToTxnTransaction,
    respond: Callable[[Errors], None],
) -> None:
    partitions = [TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    refused = _refusal(broker, request, transaction.transactional_id, partitions)
    if refused is not None:
        respond(refused)
    elif transaction.verify_only:
        broker.transactions.verify_partitions(
            transaction.transactional_id, transaction.producer_id, transaction.producer_epoch, partitions, respond
        )
    else:
        broker.transactions.add_partitions(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            request.version,
            lambda error: respond(dict.fromkeys(partitions, error)),
        )


def _refusal(
    broker: Broker, request: Request[AddPartitionsToTxnRequest], transactional_id: str, partitions: list[TopicPartition]
) -> Errors | None:
    allowed: set[str] | None = None  # the topics that the client may write to; None if it may write to all
    access = broker.access
    if request.version < _FROM_BROKERS and not access.is_open:
        if not access.allows(request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return dict.fromkeys(partitions, _TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        names = [partition.topic for partition in partitions if not is_internal(partition.topic)]
        allowed = access.allowed(request, AclOperation.WRITE, ResourceType.TOPIC, names)
    errors = {partition: _error_of(broker, request.version, partition, allowed) for partition in partitions}
    if not any(errors.values()):
        return None
    return {partition: error or _OPERATION_NOT_ATTEMPTED for partition, error in errors.items()}


def _error_of(broker: Broker, version: int, partition: TopicPartition, allowed: set[str] | None) -> int:
    if version < _FROM_BROKERS and is_internal(partition.topic):
        return _TOPIC_AUTHORIZATION_FAILED  # clients write offsets with other requests
    if allowed is not None and partition.topic not in allowed:
        return _TOPIC_AUTHORIZATION_FAILED
    return 0 if broker.metadata_cache.contains(partition.topic, partition.partition) else _UNKNOWN_TOPIC_OR_PARTITION


def _response(version: int, transactions: list[AddPartitionsToTxnTransaction], results: list[Errors]) -> AddPartitionsToTxnResponse:
    transaction_results = [
        AddPartitionsToTxnResult(transaction.transactional_id, _topic_results(transaction, errors))
        for transaction, errors in zip(transactions, results, strict=True)
    ]
    if version >= _FROM_BROKERS:
        return AddPartitionsToTxnResponse(results_by_transaction=transaction_results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=transaction_results[0].topic_results)


def _topic_results(transaction: AddPartitionsToTxnTransaction, errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(index, errors[TopicPartition(topic.name, index)]) for index in topic.partitions]
        )
        for topic in transaction.topics
    ]
