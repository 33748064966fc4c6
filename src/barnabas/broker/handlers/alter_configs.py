"""AlterConfigs: replaces all settings of a resource. Settings that the request does not name are unset; IncrementalAlterConfigs keeps them.

Versions 0 to 2.
- Each resource has its own result, in the order of the request. With validate_only nothing is written.
- Log levels cannot be altered with this API.
Errors: INVALID_REQUEST, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.alter import Operation, OpType
from barnabas.broker.config.config_alterations import Alteration
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest
from barnabas.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[AlterConfigsRequest]) -> Reply[AlterConfigsResponse]:
    return Reply.awaiting(request, _alter(broker, request))


async def _alter(broker: Broker, request: Request[AlterConfigsRequest]) -> AlterConfigsResponse:
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
