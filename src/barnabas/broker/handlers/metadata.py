"""Metadata: the brokers of the cluster, and the partitions of some or all topics with their leaders.

Versions 0 to 13.
Behaviour
- served from the metadata cache alone, with the addresses of the client's listener.
- unknown topics are created if auto.create.topics.enable and the client allow it (`auto_topic_creation`). Until they exist, their error is
  LEADER_NOT_AVAILABLE, or the reason why they cannot be created.
- existing topics come first, in the order of the request; if all are requested, sorted by name. Each topic has one result.
- if one topic is requested by id, names are ignored.
Authorization
- DESCRIBE on each topic. A denied topic is left out if all topics are requested. Otherwise its error is TOPIC_AUTHORIZATION_FAILED, and the
  response does not show whether it exists: by name it has no id, by id no name.
- to create a topic: CREATE on the cluster or on the topic.
- authorized operations of the cluster: DESCRIBE on the cluster, without which they are 0.
Version notes
- 0: no topics means all, and unreachable replicas are left out. 1: null means all topics, an empty list none; controller, racks.
- 2: cluster id. 4: a client may forbid creation. 5: offline replicas. 6: LISTENER_NOT_FOUND, before it LEADER_NOT_AVAILABLE.
- 7: leader epochs. 8: authorized operations, of the cluster up to 10. 10: topic ids in responses. 12: topic ids in requests.
Errors
- of a topic: UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED.
- of a partition: LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND, REPLICA_NOT_AVAILABLE (only to version 0).
- INVALID_REQUEST for every topic: one without a name and without an id, or with an id before version 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED_FOR
from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.access import CLUSTER_NAME
from barnabas.broker.topics.metadata_cache import HIDE_UNREACHABLE, LEADER_MISSING, LISTENER_MISSING, MetadataCache
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_name import is_internal, is_valid
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NO_CONTROLLER = -1
_TOPIC_IDS_VERSION = 12

PARTS: Final = Parts(("topics",), ("topics",))


def handle(broker: Broker, request: Request[MetadataRequest]) -> Reply[MetadataResponse]:
    message, version, cache = request.message, request.version, broker.metadata_cache
    requested = message.topics
    if version == 0 and not requested:
        requested = None
    if requested is not None and not all(_is_valid_request(topic, version) for topic in requested):
        return Reply.now(
            request, MetadataResponse(topics=[_error(topic.name or "", ErrorCode.INVALID_REQUEST, topic.topic_id) for topic in requested])
        )
    unknown_ids: list[MetadataResponseTopic] = []
    denied: list[MetadataResponseTopic] = []
    if requested is None:
        topics = cache.topic_metadata(_listed(broker, request), request.listener_name, _style(version))
    else:
        names, unknown_ids = _names(requested, cache)
        if not broker.access.is_open:
            by_id = any(topic.topic_id != Uuid.ZERO for topic in requested)
            names, denied = _authorized(broker, request, names, by_id)
        topics = _named_topics(broker, request, names)
    if message.include_topic_authorized_operations:
        topics = [_with_operations(broker, request, topic) for topic in topics]
    controller_id = cache.controller_id
    return Reply.now(
        request,
        MetadataResponse(
            brokers=_brokers(cache, request.listener_name),
            cluster_id=broker.cluster_id,
            controller_id=_NO_CONTROLLER if controller_id is None else controller_id,
            topics=unknown_ids + topics + denied,
            cluster_authorized_operations=_cluster_operations(broker, request),
        ),
    )


def _is_valid_request(topic: MetadataRequestTopic, version: int) -> bool:
    return topic.name is not None if topic.topic_id == Uuid.ZERO else version >= _TOPIC_IDS_VERSION


def _listed(broker: Broker, request: Request[MetadataRequest]) -> list[str]:
    """The names of all topics that the client may describe, sorted."""
    names = sorted(broker.metadata_cache.topics())
    if broker.access.is_open:
        return names
    allowed = broker.access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, names, logs_denied=False)
    return [name for name in names if name in allowed]


def _authorized(
    broker: Broker, request: Request[MetadataRequest], names: list[str], by_id: bool
) -> tuple[list[str], list[MetadataResponseTopic]]:
    """The topics that the client may describe, and create if they do not exist, and the results of the others."""
    access, cache = broker.access, broker.metadata_cache
    allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    denied = [_denied(name, cache, by_id) for name in names if name not in allowed]
    names = [name for name in names if name in allowed]
    missing = [name for name in names if not cache.contains(name)] if _creates(broker, request) else []
    if not missing or access.allows_on_cluster(request, AclOperation.CREATE, logs_denied=False):
        return names, denied
    allowed = access.allowed(request, AclOperation.CREATE, ResourceType.TOPIC, missing)
    uncreatable = [name for name in missing if name not in allowed]
    refused = [_error(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in uncreatable]
    return [name for name in names if name not in uncreatable], refused + denied


def _denied(name: str, cache: MetadataCache, by_id: bool) -> MetadataResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error, None, cache.topic_id(name) or Uuid.ZERO) if by_id else MetadataResponseTopic(error, name)


def _names(requested: list[MetadataRequestTopic], cache: MetadataCache) -> tuple[list[str], list[MetadataResponseTopic]]:
    """The requested names, and a result for each unknown id."""
    topic_ids = dict.fromkeys(topic.topic_id for topic in requested if topic.topic_id != Uuid.ZERO)
    if not topic_ids:
        return list(dict.fromkeys(topic.name for topic in requested if topic.name is not None)), []
    names, unknown = [], []
    for topic_id in topic_ids:
        name = cache.topic_name(topic_id)
        if name is None:
            unknown.append(_error(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id))
        else:
            names.append(name)
    return names, unknown


def _named_topics(broker: Broker, request: Request[MetadataRequest], names: list[str]) -> list[MetadataResponseTopic]:
    cache = broker.metadata_cache
    topics = cache.topic_metadata(names, request.listener_name, _style(request.version))
    missing = [name for name in names if not cache.contains(name)]
    if not missing:
        return topics
    if _creates(broker, request):
        return topics + broker.topic_creation.create_topics(missing)
    return topics + [_error(name, _unknown(name)) for name in missing]


def _creates(broker: Broker, request: Request[MetadataRequest]) -> bool:
    """Whether unknown topics are created."""
    return request.message.allow_auto_topic_creation and broker.config.current.flag("auto.create.topics.enable")


def _style(version: int) -> int:
    if version == 0:
        return HIDE_UNREACHABLE
    return LISTENER_MISSING if version >= 6 else LEADER_MISSING


def _unknown(name: str) -> ErrorCode:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION


def _error(name: str | None, error: ErrorCode, topic_id: Uuid = Uuid.ZERO) -> MetadataResponseTopic:
    return MetadataResponseTopic(error, name, topic_id, name is not None and is_internal(name))


def _with_operations(broker: Broker, request: Request[MetadataRequest], topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """A copy, because the cache shares the topics that it returns."""
    operations = broker.access.operations(request, ALL_ON_TOPIC, ResourceType.TOPIC, topic.name or "")
    return MetadataResponseTopic(topic.error_code, topic.name, topic.topic_id, topic.is_internal, topic.partitions, operations)


def _cluster_operations(broker: Broker, request: Request[MetadataRequest]) -> int:
    if not request.message.include_cluster_authorized_operations:
        return NOT_ASKED_FOR
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE):
        return 0
    return broker.access.operations(request, ALL_ON_CLUSTER, ResourceType.CLUSTER, CLUSTER_NAME)


def _brokers(cache: MetadataCache, listener_name: str) -> list[MetadataResponseBroker]:
    brokers = []
    for alive in cache.alive_brokers():
        endpoint = alive.endpoint(listener_name)
        if endpoint is not None:
            brokers.append(MetadataResponseBroker(alive.id, endpoint.host, endpoint.port, alive.rack))
    return brokers
