"""ListConfigResources: the resources that have configs: topics, brokers, broker loggers, and groups and client metrics with own settings.

Versions 0 to 1.
- No types means all types. Version 0, formerly ListClientMetricsResources, lists subscriptions to client metrics only.
Authorization: DESCRIBE_CONFIGS on the cluster.
Errors, with an empty list: CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION (an unknown type).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.config_def import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_LISTED: Final = tuple(kind for kind in ConfigResourceType if kind is not ConfigResourceType.UNKNOWN)


def handle(broker: Broker, request: Request[ListConfigResourcesRequest]) -> Reply[ListConfigResourcesResponse]:
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE_CONFIGS):
        return Reply.now(request, ListConfigResourcesResponse(0, int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    return Reply.awaiting(request, _list(broker, request))


async def _list(broker: Broker, request: Request[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    kinds = {ConfigResourceType.for_id(number) for number in request.message.resource_types}
    if request.version == 0:
        kinds = {ConfigResourceType.CLIENT_METRICS}
    if ConfigResourceType.UNKNOWN in kinds:
        return ListConfigResourcesResponse(0, int(ErrorCode.UNSUPPORTED_VERSION))
    resources = [ConfigResource(name, int(kind)) for kind in _LISTED if kind in kinds or not kinds for name in await _names(broker, kind)]
    return ListConfigResourcesResponse(0, 0, resources)


async def _names(broker: Broker, kind: ConfigResourceType) -> list[str]:
    if kind is ConfigResourceType.TOPIC:
        return sorted(broker.metadata_cache.topics())
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return [str(alive.id) for alive in broker.metadata_cache.alive_brokers()]
    return await broker.configs.entities(kind)
