"""OffsetForLeaderEpoch: the end offset of a leader epoch in the leader's log. Followers truncate to it, consumers detect lost data with it.

Versions 0 to 4.
Behaviour
- each partition gets the largest epoch up to the requested one, and the offset after its last record; -1 and -1 if the log has no such
  epoch. Only the leader serves it, to consumers and followers.
Authorization: CLUSTER_ACTION on the cluster, or DESCRIBE on each topic. Denied topics come last.
Version notes
- 1: the epoch in the response. 2: the leader epoch of the client is checked. 3: the replica id, which changes nothing.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR,
  TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetForLeaderEpochRequest]) -> Reply[OffsetForLeaderEpochResponse]:
    topics, denied = _authorized(broker, request)
    results = [
        OffsetForLeaderTopicResult(topic.topic, [_end_offset(broker, topic.topic, requested) for requested in topic.partitions])
        for topic in topics
    ]
    return Reply.now(request, OffsetForLeaderEpochResponse(topics=results + [_denied(topic) for topic in denied]))


def _authorized(
    broker: Broker, request: Request[OffsetForLeaderEpochRequest]
) -> tuple[list[OffsetForLeaderTopic], list[OffsetForLeaderTopic]]:
    """The topics whose epochs the client may know, and the others. A follower may know all of them."""
    access, topics = broker.access, request.message.topics
    if access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION, logs_denied=False):
        return topics, []
    allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.topic for topic in topics])
    return [topic for topic in topics if topic.topic in allowed], [topic for topic in topics if topic.topic not in allowed]


def _denied(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetForLeaderTopicResult(topic.topic, [EpochEndOffset(error, requested.partition) for requested in topic.partitions])


def _end_offset(broker: Broker, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = TopicPartition(topic, requested.partition)
    end = broker.replica_manager.last_offset_for_leader_epoch(partition, requested.current_leader_epoch, requested.leader_epoch)
    return EpochEndOffset(end.error, requested.partition, end.leader_epoch, end.end_offset)
