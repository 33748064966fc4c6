"""DeleteRecords: raises the log start offset of partitions. Readers lose the records below it at once; their segments are deleted later.

Versions 0 to 2, which differ in their encoding only.
Behaviour
- offset -1 means the high watermark. The response has the low watermark: the least log start offset of all live replicas.
- waits until every live replica has raised its log start offset, for timeout_ms at most.
Authorization: DELETE on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE (below -1, or past the high watermark), POLICY_VIOLATION
if cleanup.policy has no `delete`, INVALID_TOPIC_EXCEPTION for internal topics, REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR,
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.broker.waiting.delayed_delete_records import INVALID_LOW_WATERMARK, DeleteRecordsResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records_request import DeleteRecordsRequest
from barnabas.protocol.messages.delete_records_response import DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[DeleteRecordsRequest]) -> Reply[DeleteRecordsResponse]:
    refused: dict[TopicPartition, DeleteRecordsResult] = {}
    offsets: dict[TopicPartition, int] = {}
    for topic in request.message.topics:
        is_allowed = broker.access.allows(request, AclOperation.DELETE, ResourceType.TOPIC, topic.name)
        for requested in topic.partitions:
            partition = TopicPartition(topic.name, requested.partition_index)
            if is_allowed and broker.metadata_cache.contains(topic.name, requested.partition_index):
                offsets[partition] = requested.offset
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused[partition] = DeleteRecordsResult(partition, requested.offset, INVALID_LOW_WATERMARK, error)
    if not offsets:
        return Reply.now(request, _response(refused.values()))
    reply: Reply[DeleteRecordsResponse] = Reply(request)
    broker.replica_manager.delete_records(
        request.message.timeout_ms, offsets, lambda deleted: reply.complete(_response([*deleted, *refused.values()]))
    )
    return reply


def _response(deleted: Iterable[DeleteRecordsResult]) -> DeleteRecordsResponse:
    topics: dict[str, DeleteRecordsTopicResult] = {}
    for result in deleted:
        name, index = result.partition
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = DeleteRecordsTopicResult(name)
        topic.partitions.append(DeleteRecordsPartitionResult(index, result.low_watermark, result.error))
    return DeleteRecordsResponse(topics=list(topics.values()))
