"""DeleteTopics: deletes topics and all their data, by name or by id.

Versions 0 to 6.
Behaviour
- only the active controller serves it.
- the handler marks the topics, and the controller deletes them. It responds when they are deleted and their names are free, or after
  timeout_ms with REQUEST_TIMED_OUT; the deletion continues.
- a topic that is named twice, by name, by id or by both, is not deleted.
Authorization
- DELETE on the cluster; or DESCRIBE and DELETE on the topic.
- a denied topic has the error TOPIC_AUTHORIZATION_FAILED. Without DESCRIBE the response does not show whether a named topic exists, nor the
  name of an id.
Version notes
- 3: TOPIC_DELETION_DISABLED if delete.topic.enable=false, earlier versions INVALID_REQUEST. 5: error messages, and
  THROTTLING_QUOTA_EXCEEDED for a client above controller_mutation_rate; earlier versions wait instead. 6: topic ids.
Errors, of a topic
- NOT_CONTROLLER, TOPIC_DELETION_DISABLED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, REQUEST_TIMED_OUT,
  TOPIC_AUTHORIZATION_FAILED, THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.mutations import Mutations
from barnabas.broker.handlers.parts import DeleteTopicsParts
from barnabas.broker.requests.reply import Reply
from barnabas.errors import InvalidRequest, KafkaError, NotController, TopicDeletionDisabled, UnknownTopicId, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics_request import DeleteTopicState
from barnabas.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache
    from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest

DELETION_DISABLED_VERSION: Final = 3
STRICT_QUOTA_VERSION: Final = 5
PARTS: Final = DeleteTopicsParts()


def handle(broker: Broker, request: Request[DeleteTopicsRequest]) -> Reply[DeleteTopicsResponse]:
    return Reply.awaiting(request, _delete(broker, request))


async def _delete(broker: Broker, request: Request[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    message = request.message
    topics = [DeleteTopicState(name) for name in message.topic_names] + message.topics
    if not broker.config.current.flag("delete.topic.enable"):
        return DeleteTopicsResponse(0, [_result(topic.name, topic.topic_id, _disabled(request.version)) for topic in topics])
    refused, topic_ids = _resolve(topics, broker, request)
    mutations = Mutations(broker, request, STRICT_QUOTA_VERSION)
    try:
        outcomes = await broker.admin.delete_topics(list(topic_ids), message.timeout_ms, request.wait, mutations.record)
    except NotController as error:
        return DeleteTopicsResponse(0, [_result(topic.name, topic.topic_id, error) for topic in topics])
    results = [_result(name, topic_ids[name] if error is None else Uuid.ZERO, error) for name, error in outcomes.items()]
    return mutations.throttled(DeleteTopicsResponse(0, refused + results))


def _disabled(version: int) -> KafkaError:
    """Without a message, as in Kafka."""
    return InvalidRequest() if version < DELETION_DISABLED_VERSION else TopicDeletionDisabled()


def _resolve(
    topics: list[DeleteTopicState], broker: Broker, request: Request[DeleteTopicsRequest]
) -> tuple[list[DeletableTopicResult], dict[str, Uuid]]:
    """The results of topics that are refused as they are named, and the other topics by name, with their ids."""
    cache = broker.metadata_cache
    refused = []
    names: Counter[str] = Counter()
    ids: Counter[Uuid] = Counter()
    for topic in topics:
        if topic.name is None and topic.topic_id == Uuid.ZERO:
            refused.append(_result(None, Uuid.ZERO, InvalidRequest("Neither topic name nor id were specified.")))
        elif topic.name is not None and topic.topic_id != Uuid.ZERO:
            refused.append(_result(topic.name, topic.topic_id, InvalidRequest("You may not specify both topic name and topic id.")))
        elif topic.name is not None:
            names[topic.name] += 1
        else:
            ids[topic.topic_id] += 1
    refused += [_result(name, Uuid.ZERO, InvalidRequest("Duplicate topic name.")) for name, count in names.items() if count > 1]
    refused += [_result(None, topic_id, InvalidRequest("Duplicate topic id.")) for topic_id, count in ids.items() if count > 1]
    by_name = [name for name, count in names.items() if count == 1]
    by_id = [topic_id for topic_id, count in ids.items() if count == 1]
    if not broker.access.is_open:
        by_name, by_id, denied = _authorized(broker, request, by_name, by_id)
        refused += denied
    topic_ids = {name: cache.topic_id(name) or Uuid.ZERO for name in by_name}
    _add_by_id(by_id, topic_ids, refused, cache)
    return refused, topic_ids


def _authorized(
    broker: Broker, request: Request[DeleteTopicsRequest], names: list[str], ids: list[Uuid]
) -> tuple[list[str], list[Uuid], list[DeletableTopicResult]]:
    """The names that the client may delete, the ids that it may delete or that are unknown, and the results of the other topics."""
    access, cache = broker.access, broker.metadata_cache
    if access.allows_on_cluster(request, AclOperation.DELETE, logs_denied=False):
        return names, ids, []
    names_of_ids = {topic_id: name for topic_id in ids if (name := cache.topic_name(topic_id)) is not None}
    all_names = [*names, *names_of_ids.values()]
    describable = access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, all_names)
    deletable = access.allowed(request, AclOperation.DELETE, ResourceType.TOPIC, all_names)
    kept = {name for name in names if name in describable and name in deletable}
    refused = [_denied(name if name in describable else None, topic_id) for topic_id, name in names_of_ids.items() if name not in deletable]
    for name in names:
        if name not in kept:
            is_unknown = name in describable and not cache.contains(name)
            unknown_error = UnknownTopicOrPartition("This server does not host this topic-partition.")
            refused.append(_result(name, Uuid.ZERO, unknown_error) if is_unknown else _denied(name, Uuid.ZERO))
    kept_ids = [topic_id for topic_id in ids if topic_id not in names_of_ids or names_of_ids[topic_id] in deletable]
    return [name for name in names if name in kept], kept_ids, refused


def _add_by_id(ids: list[Uuid], topic_ids: dict[str, Uuid], refused: list[DeletableTopicResult], cache: MetadataCache) -> None:
    for topic_id in ids:
        name = cache.topic_name(topic_id)
        if name is None:
            refused.append(_result(None, topic_id, UnknownTopicId("This server does not host this topic ID.")))
        elif name in topic_ids:
            del topic_ids[name]
            duplicate_error = InvalidRequest("The provided topic name maps to an ID that was already supplied.")
            refused.append(_result(name, topic_id, duplicate_error))
        else:
            topic_ids[name] = topic_id


def _denied(name: str | None, topic_id: Uuid) -> DeletableTopicResult:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeletableTopicResult(name, topic_id, error, error.message)


def _result(name: str | None, topic_id: Uuid, error: KafkaError | None) -> DeletableTopicResult:
    if error is None:
        return DeletableTopicResult(name, topic_id)
    return DeletableTopicResult(name, topic_id, error.code, str(error) or None)
