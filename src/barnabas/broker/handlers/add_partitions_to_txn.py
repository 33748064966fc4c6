# Compiled by mypyc: src/compiled.toml lists this module.
"""AddPartitionsToTxn: partitions that a transaction is about to write to, for its coordinator to remember before they get anything.

Versions 0 to 5.
Behaviour
- up to 3 it comes from a producer: one transaction. From 4 on it comes from brokers that got records or offsets of transactions: many
  transactions, each with partitions to add, or only to be looked for (KIP-890).
- a partition that does not exist, or an internal topic in a client's request, fails its transaction: the others of it are
  OPERATION_NOT_ATTEMPTED. One transaction's errors are none of the others' business.
Version notes: 2 knows PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH. 5 has the errors of transaction version 2.
Errors: per partition: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, OPERATION_NOT_ATTEMPTED, and those of the coordinator:
  INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, TRANSACTION_ABORTABLE,
  NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.gather import Gather
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from barnabas.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_FROM_BROKERS: Final = 4

_UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_TOPIC_AUTHORIZATION_FAILED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_OPERATION_NOT_ATTEMPTED: Final = int(ErrorCode.OPERATION_NOT_ATTEMPTED)

Errors = Mapping[TopicPartition, int]

PARTS: Final = Parts(("transactions",), ("results_by_transaction",))  # a transaction is added to as a whole or not at all


def handle(broker: Broker, request: Request[AddPartitionsToTxnRequest]) -> AddPartitionsToTxnResponse | None:
    answer: Answer[AddPartitionsToTxnResponse] = Answer(request)
    message, version = request.message, request.version
    if version >= _FROM_BROKERS:
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

    def give(results: list[Errors]) -> None:
        answer.give(_response(version, transactions, results))

    gather: Gather[Errors] = Gather(len(transactions), give)
    for index, transaction in enumerate(transactions):
        _ask(broker, version, transaction, gather.slot(index))
    gather.all_asked()
    return answer.now()


def _ask(broker: Broker, version: int, transaction: AddPartitionsToTxnTransaction, respond: Callable[[Errors], None]) -> None:
    partitions = [TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    refused = _refused(broker, version, partitions)
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
            version,
            lambda error: respond(dict.fromkeys(partitions, error)),
        )


def _refused(broker: Broker, version: int, partitions: list[TopicPartition]) -> Errors | None:
    errors = {partition: _fault_of(broker, version, partition) for partition in partitions}
    if not any(errors.values()):
        return None
    return {partition: error or _OPERATION_NOT_ATTEMPTED for partition, error in errors.items()}


def _fault_of(broker: Broker, version: int, partition: TopicPartition) -> int:
    if version < _FROM_BROKERS and is_internal(partition.topic):
        return _TOPIC_AUTHORIZATION_FAILED  # clients write offsets by other requests
    return 0 if broker.metadata_cache.contains(partition.topic, partition.partition) else _UNKNOWN_TOPIC_OR_PARTITION


def _response(version: int, transactions: list[AddPartitionsToTxnTransaction], results: list[Errors]) -> AddPartitionsToTxnResponse:
    answered = [
        AddPartitionsToTxnResult(transaction.transactional_id, _topic_results(transaction, errors))
        for transaction, errors in zip(transactions, results, strict=True)
    ]
    if version >= _FROM_BROKERS:
        return AddPartitionsToTxnResponse(results_by_transaction=answered)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=answered[0].topic_results)


def _topic_results(transaction: AddPartitionsToTxnTransaction, errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(index, errors[TopicPartition(topic.name, index)]) for index in topic.partitions]
        )
        for topic in transaction.topics
    ]
