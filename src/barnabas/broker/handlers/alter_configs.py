"""AlterConfigs: all settings of a resource at once; what the request does not name is unset. IncrementalAlterConfigs is the better one.

Versions 0–2.
- Each resource is answered on its own, in the order of the request; with validate_only nothing is written.
- Log levels cannot be altered this way.
Errors: INVALID_REQUEST, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.alter import Operation, OpType
from barnabas.broker.config.config_alterations import Alteration
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest
from barnabas.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


async def handle(broker: Broker, request: Request[AlterConfigsRequest]) -> AlterConfigsResponse:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            tuple(Operation(config.name, OpType.SET, config.value) for config in resource.configs),
            replaces=True,
        )
        for resource in request.message.resources
    ]
    outcomes = await broker.configs.alter(alterations, request.message.validate_only)
    return AlterConfigsResponse(
        0,
        [
            AlterConfigsResourceResponse(code, message, alteration.type, alteration.name)
            for alteration, (code, message) in zip(alterations, outcomes, strict=True)
        ],
    )
