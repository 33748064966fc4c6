"""Finds the node for a key: the leader of a partition, or the coordinator of a group or transactional id.

Used by `Calls.request_by_node`. A key whose node is not known yet is left out and looked up again; a key that cannot be located has an
error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from barnabas.client.admin.call import ApiResult, Call, LookupResult
from barnabas.client.admin.calls import Calls
from barnabas.client.errors import GroupAuthorization, TopicAuthorization, TransactionalIdAuthorization, error_for
from barnabas.errors import InvalidTopic, KafkaError, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.topic_partition import TopicPartition

V = TypeVar("V")

GROUP: Final = 0
TRANSACTION: Final = 1

_LOADING: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_TOPIC_LATER: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.BROKER_NOT_AVAILABLE)
_PARTITION_LATER: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def leaders(
    calls: Calls, *, tolerate_unknown_topics: bool = True
) -> Callable[[Call, Sequence[TopicPartition]], Awaitable[LookupResult[TopicPartition]]]:
    """Locates the leaders of partitions. With `tolerate_unknown_topics`, an unknown topic is looked up again, since it may be about to
    exist."""

    async def locate(call: Call, partitions: Sequence[TopicPartition]) -> LookupResult[TopicPartition]:
        call.api = "METADATA"
        topics = dict.fromkeys(partition.topic for partition in partitions)
        request = MetadataRequest([MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=False)
        response: MetadataResponse = await calls.send(call, await calls.any_node(call), request)
        return _leaders(partitions, response, tolerate_unknown_topics)

    return locate


def _leaders(
    partitions: Sequence[TopicPartition], response: MetadataResponse, tolerate_unknown_topics: bool
) -> LookupResult[TopicPartition]:
    located: LookupResult[TopicPartition] = LookupResult()
    requested = set(partitions)
    for topic in response.topics:
        if topic.error_code:
            unknown = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic.error_code not in _TOPIC_LATER or (unknown and not tolerate_unknown_topics):
                for partition in partitions:
                    if partition.topic == topic.name:
                        located.failed[partition] = _topic_error(partition, topic.error_code)
            continue
        for info in topic.partitions:
            partition = TopicPartition(topic.name or "", info.partition_index)
            if partition not in requested or info.error_code in _PARTITION_LATER:
                continue
            if info.error_code:
                located.failed[partition] = error_for(info.error_code, f"Unexpected error during metadata lookup for {partition}")
            elif info.leader_id >= 0:
                located.mapped[partition] = info.leader_id
    return located


def _topic_error(partition: TopicPartition, code: int) -> KafkaError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return UnknownTopicOrPartition(
            f"Failed to fetch metadata for partition {partition} because metadata for topic `{partition.topic}` could not be found"
        )
    start = f"Failed to fetch metadata for partition {partition} due to"
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return TopicAuthorization(f"{start} topic authorization failure", [partition.topic])
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        return InvalidTopic(f"{start} invalid topic `{partition.topic}`")
    return error_for(code, f"{start} unexpected error for topic `{partition.topic}`")


def coordinators(calls: Calls, key_type: int = GROUP) -> Callable[[Call, Sequence[str]], Awaitable[LookupResult[str]]]:
    """Locates the coordinators of groups or of transactional ids, with one request if the broker supports that."""

    async def locate(call: Call, keys: Sequence[str]) -> LookupResult[str]:
        call.api = "FIND_COORDINATOR"
        node_id = await calls.any_node(call)
        located: LookupResult[str] = LookupResult()
        try:
            response: FindCoordinatorResponse = await calls.send(call, node_id, FindCoordinatorRequest("", key_type, list(keys)))
            for coordinator in response.coordinators:
                _take(located, coordinator.key, key_type, coordinator.error_code, coordinator.node_id)
        except UnsupportedVersion:
            for key in keys:
                alone: FindCoordinatorResponse = await calls.send(call, node_id, FindCoordinatorRequest(key, key_type))
                _take(located, key, key_type, alone.error_code, alone.node_id)
        if len(located.mapped) < len(keys):
            calls.directory.request_update()
        return located

    return locate


def _take(located: LookupResult[str], key: str, key_type: int, code: int, node_id: int) -> None:
    if not code:
        located.mapped[key] = node_id
    elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        located.failed[key] = GroupAuthorization(f"FindCoordinator request for groupId `{key}` failed due to authorization failure", key)
    elif code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        located.failed[key] = TransactionalIdAuthorization(
            f"FindCoordinator request for transactionalId `{key}` failed due to authorization failure"
        )
    elif code not in _LOADING:
        located.failed[key] = error_for(code, f"FindCoordinator request for key `{key}` failed due to an unexpected error")


def settle(answer: ApiResult[str, V], key: str, code: int, message: str | None = None) -> None:
    """Applies a coordinator's error to a key: request again from the same node, look up the coordinator again, or fail."""
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return
    if code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
        answer.moved.add(key)
    else:
        answer.failed[key] = error_for(code, message)
