"""DeleteRecords: raises the log start offset of partitions, so that what lies below is gone for readers at once and from disk in time.

Versions 0 to 2, which differ in their encoding only.
Behaviour
- offset -1 means the high watermark. The answer is the low watermark: the least log start offset of all live replicas.
- waits until every live replica has deleted too, for timeout_ms at most.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE (below -1, or past the high watermark), POLICY_VIOLATION
where cleanup.policy has no `delete`, INVALID_TOPIC_EXCEPTION for internal topics, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.waiting.delayed_delete_records import INVALID_LOW_WATERMARK, DeletedRecords
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records_request import DeleteRecordsRequest
from barnabas.protocol.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[DeleteRecordsRequest]) -> DeleteRecordsResponse | None:
    unknown: dict[TopicPartition, DeletedRecords] = {}
    offsets: dict[TopicPartition, int] = {}
    for topic in request.message.topics:
        for asked in topic.partitions:
            partition = TopicPartition(topic.name, asked.partition_index)
            if broker.metadata_cache.contains(topic.name, asked.partition_index):
                offsets[partition] = asked.offset
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                unknown[partition] = DeletedRecords(partition, asked.offset, INVALID_LOW_WATERMARK, error)
    if not offsets:
        return _response(unknown.values())
    answer = _Answer(request, list(unknown.values()))
    broker.replica_manager.delete_records(request.message.timeout_ms, offsets, answer.done)
    if not answer.is_done:
        request.wait()
    return None


class _Answer:
    __slots__ = ("_request", "_unknown", "is_done")

    def __init__(self, request: Request[DeleteRecordsRequest], unknown: list[DeletedRecords]) -> None:
        self._request = request
        self._unknown = unknown
        self.is_done = False

    def done(self, deleted: list[DeletedRecords]) -> None:
        self.is_done = True
        self._request.respond(_response([*deleted, *self._unknown]))


def _response(deleted: Iterable[DeletedRecords]) -> DeleteRecordsResponse:
    topics: dict[str, DeleteRecordsTopicResult] = {}
    for each in deleted:
        topic = topics.get(each.partition.topic)
        if topic is None:
            topic = topics[each.partition.topic] = DeleteRecordsTopicResult(each.partition.topic)
        topic.partitions.append(DeleteRecordsPartitionResult(each.partition.partition, each.low_watermark, each.error))
    return DeleteRecordsResponse(topics=list(topics.values()))
