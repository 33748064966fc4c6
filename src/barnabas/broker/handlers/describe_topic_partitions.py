"""DescribeTopicPartitions: the topics of Metadata in pages, for admin clients that describe topics with very many partitions.

Version 0.
Behaviour
- topics sorted by name and partitions by index, from the cursor on. No topics in the request means all topics.
- at most response_partition_limit partitions, and never more than max.request.partition.size.limit. The cursor of the response is the
  first partition that did not fit.
- the lists of eligible leaders are empty: this cluster keeps none.
Authorization: DESCRIBE on each topic. A denied topic is left out if all topics are requested, otherwise it comes last, and the response
  does not show whether it exists.
Errors: of a topic UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED (only for topics that the request names);
  INVALID_REQUEST for every topic if the cursor is not on one of them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.broker.requests.authorized_operations import ALL_ON_TOPIC
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import ELEMENTS_PER_SLICE, at_once
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_name import is_internal, is_valid
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[DescribeTopicPartitionsRequest]) -> Reply[DescribeTopicPartitionsResponse]:
    return Reply.now(request, at_once(_described(broker, request)))


def handle_many(broker: Broker, request: Request[DescribeTopicPartitionsRequest]) -> Reply[DescribeTopicPartitionsResponse]:
    return Reply.awaiting(request, broker.turns.run(_described(broker, request), request))


def _described(broker: Broker, request: Request[DescribeTopicPartitionsRequest]) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    """Yields after ELEMENTS_PER_SLICE topics, because topics that do not exist do not count towards the limit of partitions."""
    message, cache, cursor = request.message, broker.metadata_cache, request.message.cursor
    first_topic, first_partition = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    requested = [topic.name for topic in message.topics]
    names = sorted(name for name in set(requested or cache.topics()) if name >= first_topic)
    if first_partition < 0 or (cursor is not None and requested and first_topic not in names):
        return DescribeTopicPartitionsResponse(
            topics=[DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, name) for name in requested]
        )
    limit = max(1, min(message.response_partition_limit, broker.config.current.number("max.request.partition.size.limit")))
    response = DescribeTopicPartitionsResponse()
    denied: list[str] = []
    if not broker.access.is_open:
        names, denied = yield from _authorized(broker, request, names)
    for index, name in enumerate(names):
        if index % ELEMENTS_PER_SLICE == ELEMENTS_PER_SLICE - 1:
            yield
        if limit == 0:
            response.next_cursor = Cursor(name, 0)
            break
        count = cache.partition_count(name)
        if count is None:
            response.topics.append(_unknown(broker, request, name))
            continue
        start = first_partition if name == first_topic else 0
        end = min(count, start + limit)
        topic = _topic(broker, request, name, range(start, end))
        response.topics.append(topic)
        if end < count:
            response.next_cursor = Cursor(name, end)
            break
        limit -= len(topic.partitions)
    if requested:
        response.topics += [DescribeTopicPartitionsResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) for name in denied]
    return response


def _authorized(
    broker: Broker, request: Request[DescribeTopicPartitionsRequest], names: list[str]
) -> Generator[None, None, tuple[list[str], list[str]]]:
    """The topics that the client may describe, and the others. Yields after ELEMENTS_PER_SLICE topics."""
    allowed: list[str] = []
    denied: list[str] = []
    for index, name in enumerate(names):
        if index % ELEMENTS_PER_SLICE == ELEMENTS_PER_SLICE - 1:
            yield
        is_allowed = broker.access.allows(request, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
        (allowed if is_allowed else denied).append(name)
    return allowed, denied


def _operations(broker: Broker, request: Request[DescribeTopicPartitionsRequest], name: str) -> int:
    return broker.access.operations(request, ALL_ON_TOPIC, ResourceType.TOPIC, name)


def _unknown(broker: Broker, request: Request[DescribeTopicPartitionsRequest], name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error, name, is_internal=is_internal(name), topic_authorized_operations=_operations(broker, request, name)
    )


def _topic(
    broker: Broker, request: Request[DescribeTopicPartitionsRequest], name: str, partitions: range
) -> DescribeTopicPartitionsResponseTopic:
    cache = broker.metadata_cache
    described = []
    for partition in partitions:
        metadata = cache.partition_metadata(name, partition, request.listener_name)
        if metadata is not None:  # a partition that no UpdateMetadata has named yet is left out
            described.append(
                DescribeTopicPartitionsResponsePartition(
                    ErrorCode.NONE,  # a missing leader is no error: its id is -1
                    partition,
                    metadata.leader_id,
                    metadata.leader_epoch,
                    metadata.replica_nodes,
                    metadata.isr_nodes,
                    [],
                    [],
                    metadata.offline_replicas,
                )
            )
    topic_id = cache.topic_id(name) or Uuid.ZERO
    operations = _operations(broker, request, name)
    return DescribeTopicPartitionsResponseTopic(ErrorCode.NONE, name, topic_id, is_internal(name), described, operations)
