"""ListOffsets: the earliest offset of a partition, the latest, or the first whose record is not older than a timestamp.

Versions 0 to 11.
Behaviour
- a timestamp below zero is a question of its own: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest on local
  disks, -5 latest in remote storage, -6 earliest not yet there. Without remote storage -4 is the earliest, and -5 and -6 are offset -1.
- to a consumer the latest is the high watermark, or with read_committed the last stable offset; to a broker it is the log end.
- replica id -2, a debugging consumer, may ask a follower; everybody else has to ask the leader.
Version notes
- 0: a list of offsets, the base offsets of segments last written before the timestamp. 1: one offset, with its timestamp.
- 2: isolation level. 4: leader epochs, the caller's checked and the record's told. 5: OFFSET_NOT_AVAILABLE, LEADER_NOT_AVAILABLE before.
- 7: -3. 8: -4. 9: -5. 10: timeout, for remote storage only. 11: -6. A question that is newer than the version is UNSUPPORTED_VERSION.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR, INVALID_REQUEST
for a partition named twice (not in version 0), UNSUPPORTED_VERSION, OFFSET_NOT_AVAILABLE.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final

from barnabas.broker.partitions.fetch_params import CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID, READ_COMMITTED, READ_UNCOMMITTED
from barnabas.errors import KafkaError, OffsetNotAvailable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from barnabas.protocol.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse
from barnabas.storage.log import offset_lookup
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

COMPARED_PER_TURN: Final = 5_000
PARTITIONS_PER_TURN: Final = 32  # looking up a timestamp reads an index and some batches

# The questions and the version that brought each.
_SINCE: Final = {
    offset_lookup.LATEST: 0,
    offset_lookup.EARLIEST: 0,
    offset_lookup.MAX_TIMESTAMP: 7,
    offset_lookup.EARLIEST_LOCAL: 8,
    offset_lookup.LATEST_TIERED: 9,
    offset_lookup.EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER: Final = 32767


async def handle(broker: Broker, request: Request[ListOffsetsRequest]) -> ListOffsetsResponse:
    if request.message.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refusal_of_all(request.message, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, whose enum has no such value
    duplicates = await _duplicates(broker, request) if request.version > 0 else frozenset()
    lookup = _Lookup(broker, request.message, request.version, duplicates)
    topics: dict[str, ListOffsetsTopicResponse] = {}
    count = 0
    for topic in request.message.topics:
        for asked in topic.partitions:
            answer = lookup.answer(topic.name, asked)
            if answer is None:
                continue
            answered = topics.get(topic.name)
            if answered is None:
                answered = topics[topic.name] = ListOffsetsTopicResponse(topic.name)
            answered.partitions.append(answer)
            count += 1
            if count % PARTITIONS_PER_TURN == 0:
                await broker.turns.next(request)
    return ListOffsetsResponse(topics=list(topics.values()))


class _Lookup:
    """The partitions of one request, asked of the replica manager one after another."""

    def __init__(self, broker: Broker, message: ListOffsetsRequest, version: int, duplicates: Set[TopicPartition]) -> None:
        self._replicas = broker.replica_manager
        self._version = version
        self._only_leader = message.replica_id != DEBUGGING_REPLICA_ID
        self._is_consumer = message.replica_id == CONSUMER_REPLICA_ID
        self._isolation = message.isolation_level if self._is_consumer else None  # only an ordinary consumer sees less than all
        self._duplicates = duplicates
        self._refused: set[TopicPartition] = set()

    def answer(self, topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse | None:
        """None for a partition that has been answered already."""
        partition = TopicPartition(topic, asked.partition_index)
        if partition in self._duplicates:
            return self._refuse_once(partition)
        if asked.timestamp < 0 and _SINCE.get(asked.timestamp, _NEVER) > self._version:
            return _error(asked, ErrorCode.UNSUPPORTED_VERSION)
        try:
            return self._offsets_before(partition, asked) if self._version == 0 else self._offset(partition, asked)
        except OffsetNotAvailable as error:
            return _error(asked, error.code if self._version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE)
        except KafkaError as error:
            return _error(asked, error.code)

    def _refuse_once(self, partition: TopicPartition) -> ListOffsetsPartitionResponse | None:
        if partition in self._refused:
            return None
        self._refused.add(partition)
        return ListOffsetsPartitionResponse(partition.partition, ErrorCode.INVALID_REQUEST)

    def _offset(self, partition: TopicPartition, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        found = self._replicas.list_offsets(partition, asked.timestamp, self._isolation, asked.current_leader_epoch, self._only_leader)
        if found is None:
            return ListOffsetsPartitionResponse(asked.partition_index)
        leader_epoch = found.leader_epoch if self._version >= 4 else -1
        return ListOffsetsPartitionResponse(asked.partition_index, 0, [], found.timestamp, found.offset, leader_epoch)

    def _offsets_before(self, partition: TopicPartition, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if asked.max_num_offsets < 0:
            return _error(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
        offsets = self._replicas.legacy_offsets(partition, asked.timestamp, asked.max_num_offsets, self._is_consumer, self._only_leader)
        return ListOffsetsPartitionResponse(asked.partition_index, 0, offsets)


async def _duplicates(broker: Broker, request: Request[ListOffsetsRequest]) -> Set[TopicPartition]:
    seen: set[TopicPartition] = set()
    twice: set[TopicPartition] = set()
    count = 0
    for topic in request.message.topics:
        for asked in topic.partitions:
            partition = TopicPartition(topic.name, asked.partition_index)
            (twice if partition in seen else seen).add(partition)
            count += 1
            if count % COMPARED_PER_TURN == 0:
                await broker.turns.next(request)
    return twice


def _refusal_of_all(message: ListOffsetsRequest, code: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(topic.name, [_error(asked, code) for asked in topic.partitions]) for topic in message.topics]
    )


def _error(asked: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(asked.partition_index, code)
