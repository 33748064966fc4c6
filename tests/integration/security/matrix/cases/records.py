"""Produce, Fetch and what else concerns the records of partitions."""

from __future__ import annotations

import time

from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import Case, Cell, on_cluster, on_topic, on_transactional_id
from tests.integration.security.matrix.names import MISSING, MISSING_ID, OTHER, TOPIC, TRANSACTION

_TOPICS = (TOPIC, OTHER, MISSING)
_BY_ID = 13  # of Produce and of Fetch
_REPLICA_STATE = 15
_TIMESTAMPS = 2  # the first version of Produce with format 1
_FOLLOWER = 2
_SIZE = 1 << 20
_LATEST = -1
_CONSUMER, _DEBUGGING = -1, -2
_IDEMPOTENT_PRODUCER_ID = 424_242


def _id(cell: Cell, topic: str) -> Uuid:
    return cell.world.topic_ids.get(topic, MISSING_ID)


def _records(producer_id: int = -1, epoch: int = -1, sequence: int = -1, *, transactional: bool = False) -> Records:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    builder.append(int(time.time() * 1000), b"key", b"value")  # an older record would be deleted by retention
    return Records(builder.build())


def _old_records(cell: Cell) -> Records:
    """Of the format that came with the version of the request: 0, then 1."""
    builder = BatchBuilder(magic=0 if cell.version < _TIMESTAMPS else 1)
    builder.append(int(time.time() * 1000), b"key", b"value")
    return Records(builder.build())


def _produce(
    cell: Cell, records: Records, topics: tuple[str, ...] = _TOPICS, transactional_id: str | None = None, acks: int = 1
) -> ProduceRequest:
    data = [PartitionProduceData(0, records)]
    by_id = cell.version >= _BY_ID
    named = [TopicProduceData("", _id(cell, name), data) if by_id else TopicProduceData(name, Uuid.ZERO, data) for name in topics]
    return ProduceRequest(transactional_id, acks, 30_000, named)


def _transactional(cell: Cell) -> Records:
    return _records(cell.world.producer_id, cell.world.producer_epoch, 0, transactional=True)


def _fetch(cell: Cell, replica: int = _CONSUMER) -> FetchRequest:
    parts = [FetchPartition(partition_max_bytes=_SIZE)]
    by_id = cell.version >= _BY_ID
    topics = [FetchTopic("", _id(cell, name), parts) if by_id else FetchTopic(name, Uuid.ZERO, parts) for name in _TOPICS]
    if cell.version >= _REPLICA_STATE:
        return FetchRequest(replica_state=ReplicaState(replica, -1), topics=topics)
    return FetchRequest(replica_id=replica, topics=topics)


def _list_offsets(cell: Cell) -> ListOffsetsRequest:
    topics = [ListOffsetsTopic(name, [ListOffsetsPartition(timestamp=_LATEST)]) for name in _TOPICS]
    return ListOffsetsRequest(_CONSUMER, topics=topics)


def _offset_for_leader_epoch(cell: Cell, replica: int = _DEBUGGING) -> OffsetForLeaderEpochRequest:
    topics = [OffsetForLeaderTopic(name, [OffsetForLeaderPartition()]) for name in _TOPICS]
    return OffsetForLeaderEpochRequest(replica, topics)


def _delete_records(cell: Cell) -> DeleteRecordsRequest:
    return DeleteRecordsRequest([DeleteRecordsTopic(name, [DeleteRecordsPartition()]) for name in _TOPICS], 30_000)


def _describe_producers(cell: Cell) -> DescribeProducersRequest:
    return DescribeProducersRequest([TopicRequest(name, [0]) for name in _TOPICS])


CASES = (
    Case(
        "Produce",
        (3, 9, 12, 13),
        lambda cell: _produce(cell, _records()),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "Produce of old formats",
        (0, 1, 2),
        lambda cell: _produce(cell, _old_records(cell)),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "Produce without acks",
        (3, 13),
        lambda cell: _produce(cell, _records(), (TOPIC,), acks=0),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
        is_answered=False,
    ),
    Case(
        "Produce of old formats without acks",
        (0, 2),
        lambda cell: _produce(cell, _old_records(cell), (TOPIC,), acks=0),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
        is_answered=False,
    ),
    Case(
        "Produce idempotent",
        (3, 12, 13),
        lambda cell: _produce(cell, _records(_IDEMPOTENT_PRODUCER_ID, 0, 0)),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "Produce transactional",
        (3, 11, 12, 13),
        lambda cell: _produce(cell, _transactional(cell), (TOPIC,), TRANSACTION),
        lambda cell: [on_transactional_id(AclOperation.WRITE, TRANSACTION), on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "Produce transactional records without a transactional id",
        (3, 13),
        lambda cell: _produce(cell, _transactional(cell), (TOPIC,)),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case(
        "Produce plain records with a transactional id",
        (3, 13),
        lambda cell: _produce(cell, _records(), (TOPIC,), TRANSACTION),
        lambda cell: [on_topic(AclOperation.WRITE, TOPIC)],
    ),
    Case("Fetch", (0, 4, 12, 13, 18), _fetch, lambda cell: [on_topic(AclOperation.READ, TOPIC)]),
    Case(
        "Fetch of a follower",
        (4, 12, 13, 18),
        lambda cell: _fetch(cell, _FOLLOWER),
        lambda cell: [on_cluster(AclOperation.CLUSTER_ACTION)],
    ),
    Case("ListOffsets", (0, 1, 11), _list_offsets, lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)]),
    Case("ListOffsets by a reader", (11,), _list_offsets, lambda cell: [on_topic(AclOperation.READ, TOPIC)]),
    Case("OffsetForLeaderEpoch", (0, 2, 4), _offset_for_leader_epoch, lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)]),
    Case(
        "OffsetForLeaderEpoch of a follower",
        (3, 4),
        lambda cell: _offset_for_leader_epoch(cell, _FOLLOWER),
        lambda cell: [on_cluster(AclOperation.CLUSTER_ACTION)],
    ),
    Case("DeleteRecords", (0, 2), _delete_records, lambda cell: [on_topic(AclOperation.DELETE, TOPIC)]),
    Case("DescribeProducers", (0,), _describe_producers, lambda cell: [on_topic(AclOperation.READ, TOPIC)]),
)
