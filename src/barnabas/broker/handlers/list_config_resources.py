"""ListConfigResources: what there is that has configs: topics, brokers, their loggers, and the groups and subscriptions that set some.

Versions 0–1.
- No types asks for all of them. Version 0, ListClientMetricsResources once, asks for subscriptions to client metrics and no others.
Errors: UNSUPPORTED_VERSION for a type that is none, with an empty list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.config_def import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from barnabas.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_LISTED: Final = tuple(kind for kind in ConfigResourceType if kind is not ConfigResourceType.UNKNOWN)


async def handle(broker: Broker, request: Request[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    asked = {ConfigResourceType.for_id(number) for number in request.message.resource_types}
    if request.version == 0:
        asked = {ConfigResourceType.CLIENT_METRICS}
    if ConfigResourceType.UNKNOWN in asked:
        return ListConfigResourcesResponse(0, int(ErrorCode.UNSUPPORTED_VERSION))
    found = [ConfigResource(name, int(kind)) for kind in _LISTED if kind in asked or not asked for name in await _names(broker, kind)]
    return ListConfigResourcesResponse(0, 0, found)


async def _names(broker: Broker, kind: ConfigResourceType) -> list[str]:
    if kind is ConfigResourceType.TOPIC:
        return sorted(broker.metadata_cache.topics())
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return [str(alive.id) for alive in broker.metadata_cache.alive_brokers()]
    return await broker.configs.entities(kind)
