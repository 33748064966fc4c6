"""OffsetDelete: makes a group forget offsets of topics that it no longer reads.

Version 0.
Behaviour: partitions that do not exist are refused here; the rest goes to the coordinator. An offset that was never committed is no error.
Errors
- of the whole: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP where the members' protocol does not say what they read,
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. Then no topic is answered.
- of a partition: UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetDeleteRequest]) -> OffsetDeleteResponse | None:
    message = request.message
    message.topics, refused = _split(message.topics, broker.metadata_cache)
    answer: Answer[OffsetDeleteResponse] = Answer(request)

    def done(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = _merged([*refused, *response.topics])
        answer.give(response)

    broker.groups.delete_offsets(message, done)
    return answer.now()


def _split(
    topics: list[OffsetDeleteRequestTopic], cache: MetadataCache
) -> tuple[list[OffsetDeleteRequestTopic], list[OffsetDeleteResponseTopic]]:
    """The topics with those of their partitions that exist, and the answers for the others."""
    existing, refused = [], []
    code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for topic in topics:
        missing = [wanted.partition_index for wanted in topic.partitions if not cache.contains(topic.name, wanted.partition_index)]
        if missing or not cache.contains(topic.name):
            refused.append(OffsetDeleteResponseTopic(topic.name, [OffsetDeleteResponsePartition(index, code) for index in missing]))
            topic.partitions = [wanted for wanted in topic.partitions if cache.contains(topic.name, wanted.partition_index)]
        if topic.partitions:
            existing.append(topic)
    return existing, refused


def _merged(topics: list[OffsetDeleteResponseTopic]) -> list[OffsetDeleteResponseTopic]:
    """Every topic once."""
    merged: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in topics:
        known = merged.setdefault(topic.name, topic)
        if known is not topic:
            known.partitions.extend(topic.partitions)
    return list(merged.values())
