"""ListOffsets: the earliest offset of a partition, the latest, or that of the first record at or after a timestamp.

Versions 0 to 11.
Behaviour
- negative timestamps have a meaning of their own: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest on local
  disks, -5 latest in remote storage, -6 earliest not in remote storage yet. Without remote storage -4 is the earliest, and -5 and -6 have
  offset -1.
- for a consumer the latest offset is the high watermark, or with read_committed the last stable offset; for a broker the log end offset.
- replica id -2, a debugging consumer, may ask a follower. All other clients must ask the leader.
Authorization: DESCRIBE on each topic. Denied topics come last, with the error TOPIC_AUTHORIZATION_FAILED whether they exist or not.
Version notes
- 0: a list of offsets, the base offsets of segments last written before the timestamp. 1: one offset, with its timestamp.
- 2: isolation level. 4: leader epochs, of the client to be checked and of the record. 5: OFFSET_NOT_AVAILABLE, before LEADER_NOT_AVAILABLE.
- 7: -3. 8: -4. 9: -5. 10: timeout, for remote storage only. 11: -6. A timestamp that is newer than the version is UNSUPPORTED_VERSION.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR, INVALID_REQUEST
for a partition named twice (not in version 0), UNSUPPORTED_VERSION, OFFSET_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final

from barnabas.broker.partitions.fetch_params import CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID, READ_COMMITTED, READ_UNCOMMITTED
from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError, OffsetNotAvailable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.storage.log import offset_lookup
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

COMPARED_PER_TURN: Final = 5_000
PARTITIONS_PER_TURN: Final = 32  # looking up a timestamp reads an index and some batches

# Negative timestamps, and the version that introduced each.
_SINCE: Final = {
    offset_lookup.LATEST: 0,
    offset_lookup.EARLIEST: 0,
    offset_lookup.MAX_TIMESTAMP: 7,
    offset_lookup.EARLIEST_LOCAL: 8,
    offset_lookup.LATEST_TIERED: 9,
    offset_lookup.EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER: Final = 32767


def handle(broker: Broker, request: Request[ListOffsetsRequest]) -> Reply[ListOffsetsResponse]:
    return Reply.awaiting(request, _list(broker, request))


async def _list(broker: Broker, request: Request[ListOffsetsRequest]) -> ListOffsetsResponse:
    allowed, denied = _authorized(broker, request)
    if denied and not allowed:
        return ListOffsetsResponse(topics=_refused(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    if request.message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        # As Kafka, whose enum has no such value.
        return ListOffsetsResponse(topics=_refused(request.message.topics, ErrorCode.UNKNOWN_SERVER_ERROR))
    duplicates = await _duplicates(broker, request) if request.version > 0 else frozenset()
    lookup = _Lookup(broker, request.message, request.version, duplicates)
    topics: dict[str, ListOffsetsTopicResponse] = {}
    count = 0
    for topic in allowed:
        for requested in topic.partitions:
            result = lookup.result(topic.name, requested)
            if result is None:
                continue
            topic_response = topics.get(topic.name)
            if topic_response is None:
                topic_response = topics[topic.name] = ListOffsetsTopicResponse(topic.name)
            topic_response.partitions.append(result)
            count += 1
            if count % PARTITIONS_PER_TURN == 0:
                await broker.turns.next(request)
    return ListOffsetsResponse(topics=list(topics.values()) + _refused(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def _authorized(broker: Broker, request: Request[ListOffsetsRequest]) -> tuple[list[ListOffsetsTopic], list[ListOffsetsTopic]]:
    """The topics that the client may describe, and the others."""
    access, topics = broker.access, request.message.topics
    if access.is_open:
        return topics, []
    allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in topics])
    return [topic for topic in topics if topic.name in allowed], [topic for topic in topics if topic.name not in allowed]


class _Lookup:
    """Looks up the partitions of one request in the replica manager, one after another."""

    def __init__(self, broker: Broker, message: ListOffsetsRequest, version: int, duplicates: Set[TopicPartition]) -> None:
        self._replicas = broker.replica_manager
        self._version = version
        self._only_leader = message.replica_id != DEBUGGING_REPLICA_ID
        self._is_consumer = message.replica_id == CONSUMER_REPLICA_ID
        self._isolation = message.isolation_level if self._is_consumer else None  # brokers see everything up to the log end
        self._duplicates = duplicates
        self._refused: set[TopicPartition] = set()

    def result(self, topic: str, requested: ListOffsetsPartition) -> ListOffsetsPartitionResponse | None:
        """None for a repeated partition that has its result already."""
        partition = TopicPartition(topic, requested.partition_index)
        if partition in self._duplicates:
            return self._refuse_once(partition)
        if requested.timestamp < 0 and _SINCE.get(requested.timestamp, _NEVER) > self._version:
            return _error(requested, ErrorCode.UNSUPPORTED_VERSION)
        try:
            return self._offsets_before(partition, requested) if self._version == 0 else self._offset(partition, requested)
        except OffsetNotAvailable as error:
            return _error(requested, error.code if self._version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE)
        except KafkaError as error:
            return _error(requested, error.code)

    def _refuse_once(self, partition: TopicPartition) -> ListOffsetsPartitionResponse | None:
        if partition in self._refused:
            return None
        self._refused.add(partition)
        return ListOffsetsPartitionResponse(partition.partition, ErrorCode.INVALID_REQUEST)

    def _offset(self, partition: TopicPartition, requested: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        record = self._replicas.list_offsets(
            partition, requested.timestamp, self._isolation, requested.current_leader_epoch, self._only_leader
        )
        if record is None:
            return ListOffsetsPartitionResponse(requested.partition_index)
        leader_epoch = record.leader_epoch if self._version >= 4 else -1
        return ListOffsetsPartitionResponse(requested.partition_index, 0, [], record.timestamp, record.offset, leader_epoch)

    def _offsets_before(self, partition: TopicPartition, requested: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if requested.max_num_offsets < 0:
            return _error(requested, ErrorCode.UNKNOWN_SERVER_ERROR)
        offsets = self._replicas.legacy_offsets(
            partition, requested.timestamp, requested.max_num_offsets, self._is_consumer, self._only_leader
        )
        return ListOffsetsPartitionResponse(requested.partition_index, 0, offsets)


async def _duplicates(broker: Broker, request: Request[ListOffsetsRequest]) -> Set[TopicPartition]:
    seen: set[TopicPartition] = set()
    repeated: set[TopicPartition] = set()
    count = 0
    for topic in request.message.topics:
        for requested in topic.partitions:
            partition = TopicPartition(topic.name, requested.partition_index)
            (repeated if partition in seen else seen).add(partition)
            count += 1
            if count % COMPARED_PER_TURN == 0:
                await broker.turns.next(request)
    return repeated


def _refused(topics: list[ListOffsetsTopic], code: int) -> list[ListOffsetsTopicResponse]:
    return [ListOffsetsTopicResponse(topic.name, [_error(requested, code) for requested in topic.partitions]) for topic in topics]


def _error(requested: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(requested.partition_index, code)
