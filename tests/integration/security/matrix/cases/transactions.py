"""Producer ids and transactions."""

from __future__ import annotations

from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from barnabas.security.operations import AclOperation
from tests.integration.security.matrix.case import Case, Cell, on_cluster, on_group, on_topic, on_transactional_id
from tests.integration.security.matrix.names import (
    GROUP,
    MISSING,
    MISSING_TRANSACTION,
    OTHER,
    OTHER_TRANSACTION,
    TOPIC,
    TRANSACTION,
)

_TOPICS = (TOPIC, OTHER, MISSING)
_BY_BROKERS = 4  # of AddPartitionsToTxn
_TIMEOUT_MS = 60_000
_UNKNOWN_PRODUCER = 77_777  # the coordinator has another for the id, so that nothing changes
_MARKED_PRODUCER = 88_888


def _add_partitions(cell: Cell, names: tuple[str, ...]) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name, [0]) for name in names]
    if cell.version >= _BY_BROKERS:
        return AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(TRANSACTION, _UNKNOWN_PRODUCER, 0, True, topics)])
    return AddPartitionsToTxnRequest([], TRANSACTION, _UNKNOWN_PRODUCER, 0, topics)


def _offset_commit(cell: Cell) -> TxnOffsetCommitRequest:
    topics = [TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition()]) for name in _TOPICS]
    return TxnOffsetCommitRequest(TRANSACTION, GROUP, _UNKNOWN_PRODUCER, 0, topics=topics)


def _write_markers(cell: Cell) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name, [0]) for name in (TOPIC, MISSING)]
    return WriteTxnMarkersRequest([WritableTxnMarker(_MARKED_PRODUCER, 0, False, topics)])


CASES = (
    Case(
        "InitProducerId transactional",
        (0, 3, 5),
        lambda cell: InitProducerIdRequest(cell.own, _TIMEOUT_MS),
        lambda cell: [on_transactional_id(AclOperation.WRITE, cell.own)],
    ),
    Case(
        "InitProducerId idempotent by a permission of the cluster",
        (0, 5),
        lambda cell: InitProducerIdRequest(None, _TIMEOUT_MS),
        lambda cell: [on_cluster(AclOperation.IDEMPOTENT_WRITE)],
    ),
    Case(
        "InitProducerId idempotent by a permission of any topic",
        (0, 5),
        lambda cell: InitProducerIdRequest(None, _TIMEOUT_MS),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "AddPartitionsToTxn",
        (0, 3),
        lambda cell: _add_partitions(cell, (TOPIC,)),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION), on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "AddPartitionsToTxn with others",
        (0, 3),
        lambda cell: _add_partitions(cell, _TOPICS),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION), on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "AddPartitionsToTxn of brokers",
        (4, 5),
        lambda cell: _add_partitions(cell, _TOPICS),
        lambda cell: [on_cluster(AclOperation.CLUSTER_ACTION)],
    ),
    Case(
        "AddPartitionsToTxn of brokers by a client",
        (4, 5),
        lambda cell: _add_partitions(cell, (TOPIC,)),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION), on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "AddOffsetsToTxn",
        (0, 4),
        lambda cell: AddOffsetsToTxnRequest(TRANSACTION, _UNKNOWN_PRODUCER, 0, GROUP),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION), on_group(AclOperation.READ, GROUP)],
    ),
    Case(
        "EndTxn",
        (0, 4, 5),
        lambda cell: EndTxnRequest(TRANSACTION, _UNKNOWN_PRODUCER, 0, True),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION)],
    ),
    Case(
        "TxnOffsetCommit",
        (0, 4, 5),
        _offset_commit,
        lambda cell: [
            on_transactional_id(AclOperation.WRITE, TRANSACTION),
            on_group(AclOperation.READ, GROUP),
            on_topic(AclOperation.READ, TOPIC),
        ],
    ),
    Case("WriteTxnMarkers", (0, 1, 2), _write_markers, lambda cell: [on_cluster(AclOperation.CLUSTER_ACTION)]),
    Case("WriteTxnMarkers by an administrator", (1, 2), _write_markers, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case(
        "DescribeTransactions",
        (0,),
        lambda cell: DescribeTransactionsRequest([TRANSACTION, OTHER_TRANSACTION, MISSING_TRANSACTION]),
        lambda cell: [on_transactional_id(AclOperation.DESCRIBE, TRANSACTION), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "ListTransactions",
        (0, 1, 2),
        lambda cell: ListTransactionsRequest(),
        lambda cell: [on_transactional_id(AclOperation.DESCRIBE, TRANSACTION)],
        lists_everything=True,
    ),
)
