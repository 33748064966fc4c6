"""OffsetForLeaderEpoch: where a leader epoch ended in the leader's log. Followers truncate by it, consumers find out that data was lost.

Versions 0 to 4.
Behaviour
- each partition is answered with the largest epoch up to the one asked for, and the offset after its last record; -1 and -1 where the log
  knows of no such epoch. Only the leader answers, whoever asks.
Version notes
- 1: the epoch is told too. 2: the caller's own leader epoch is checked. 3: the replica id, which changes nothing.
Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
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


def handle(broker: Broker, request: Request[OffsetForLeaderEpochRequest]) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.message.topics:
        topics.append(OffsetForLeaderTopicResult(topic.topic, [_end_offset(broker, topic.topic, asked) for asked in topic.partitions]))
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_offset(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = TopicPartition(topic, asked.partition)
    found = broker.replica_manager.last_offset_for_leader_epoch(partition, asked.current_leader_epoch, asked.leader_epoch)
    return EpochEndOffset(found.error, asked.partition, found.leader_epoch, found.end_offset)
