"""OffsetForLeaderEpoch: the end offset of a leader epoch in the leader's log. Followers truncate to it, consumers detect lost data with it.

Versions 0 to 4.
Behaviour
- each partition gets the largest epoch up to the requested one, and the offset after its last record; -1 and -1 if the log has no such
  epoch. Only the leader serves it, to consumers and followers.
Version notes
- 1: the epoch in the response. 2: the leader epoch of the client is checked. 3: the replica id, which changes nothing.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest, OffsetForLeaderPartition
from barnabas.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetForLeaderEpochRequest]) -> Reply[OffsetForLeaderEpochResponse]:
    topics = []
    for topic in request.message.topics:
        topics.append(
            OffsetForLeaderTopicResult(topic.topic, [_end_offset(broker, topic.topic, requested) for requested in topic.partitions])
        )
    return Reply.now(request, OffsetForLeaderEpochResponse(topics=topics))


def _end_offset(broker: Broker, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = TopicPartition(topic, requested.partition)
    end = broker.replica_manager.last_offset_for_leader_epoch(partition, requested.current_leader_epoch, requested.leader_epoch)
    return EpochEndOffset(end.error, requested.partition, end.leader_epoch, end.end_offset)
