"""DescribeConfigs: the settings of topics, brokers, loggers, groups and subscriptions to client metrics.

Versions 0 to 4.
- Each resource has its own result: its settings, sorted by name, or an error. No keys, or null, means all settings.
- A resource that the request repeats with the same keys has one result, so that a small request cannot ask for an unbounded response.
- A broker describes itself, `""` (the defaults of all brokers) and resources that all brokers share. Another broker: INVALID_REQUEST.
- Passwords and unknown settings are listed without a value.
- An unknown resource type fails the whole request: INVALID_REQUEST for every resource in it.
Authorization: DESCRIBE_CONFIGS on the topic or the group, else TOPIC_AUTHORIZATION_FAILED or GROUP_AUTHORIZATION_FAILED whether it exists
  or not; on the cluster for all other resources, else CLUSTER_AUTHORIZATION_FAILED. Denied resources come last.
Version notes: 0 says only whether a value is a default. 1 adds sources and synonyms, 3 types and documentation.
Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST, INVALID_CONFIG, and those of the authorization.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas import topic_name
from barnabas.broker.config.describe import ConfigEntry
from barnabas.broker.handlers import config_access
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import ELEMENTS_AT_ONCE, slices
from barnabas.config_def import ConfigResourceType, ConfigSource
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_FIRST_WITH_SOURCES: Final = 1
_KNOWN_TYPES: Final = frozenset(int(kind) for kind in ConfigResourceType if kind is not ConfigResourceType.UNKNOWN)
_log = logging.getLogger(__name__)


def handle(broker: Broker, request: Request[DescribeConfigsRequest]) -> Reply[DescribeConfigsResponse]:
    return Reply.awaiting(request, _describe_all(broker, request))


async def _describe_all(broker: Broker, request: Request[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    resources = request.message.resources
    if any(resource.resource_type not in _KNOWN_TYPES for resource in resources):
        refused = InvalidRequest(ErrorCode.INVALID_REQUEST.message)
        return DescribeConfigsResponse(0, [_failed(resource, refused) for resource in resources])
    unique: dict[tuple[int, str, frozenset[str]], DescribeConfigsResource] = {}
    for part in slices(resources):
        if len(resources) > ELEMENTS_AT_ONCE:
            await broker.turns.next(request)
        unique.update({_key(resource): resource for resource in part})
    results, denied = [], []
    for resource in unique.values():
        error = config_access.denial(broker, request, AclOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        if error is None:
            results.append(await _describe(broker, request, resource))
        else:
            denied.append(DescribeConfigsResult(int(error), error.message, resource.resource_type, resource.resource_name))
        await broker.turns.next(request)  # a request may name a thousand topics: other requests are served in between
    return DescribeConfigsResponse(0, results + denied)


async def _describe(broker: Broker, request: Request[DescribeConfigsRequest], resource: DescribeConfigsResource) -> DescribeConfigsResult:
    kind, name = ConfigResourceType.for_id(resource.resource_type), resource.resource_name
    try:
        if kind is ConfigResourceType.TOPIC:
            topic_name.validate(name)
            if not broker.metadata_cache.contains(name):
                return DescribeConfigsResult(int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "", resource.resource_type, name)
        entries = await broker.configs.describe(kind, name, frozenset(resource.configuration_keys or ()) or None)
    except KafkaError as error:
        return _failed(resource, error)
    return DescribeConfigsResult(0, "", resource.resource_type, name, [_shown(entry, request) for entry in entries])


def _key(resource: DescribeConfigsResource) -> tuple[int, str, frozenset[str]]:
    return resource.resource_type, resource.resource_name, frozenset(resource.configuration_keys or ())


def _failed(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    _log.info("Configs of %s are not described: %s", resource.resource_name, error)
    return DescribeConfigsResult(int(error.code), str(error), resource.resource_type, resource.resource_name)


def _shown(entry: ConfigEntry, request: Request[DescribeConfigsRequest]) -> DescribeConfigsResourceResult:
    is_default = entry.source is ConfigSource.DEFAULT_CONFIG
    message = request.message
    result = DescribeConfigsResourceResult(entry.name, entry.value, entry.read_only, is_sensitive=entry.sensitive)
    if request.version < _FIRST_WITH_SOURCES:
        result.is_default = is_default
        return result
    result.config_source = int(entry.source)
    result.config_type = entry.type
    result.documentation = entry.doc if message.include_documentation or entry.doc == "" else None
    if message.include_synonyms:
        result.synonyms = [DescribeConfigsSynonym(synonym.name, synonym.value, int(synonym.source)) for synonym in entry.synonyms]
    return result
