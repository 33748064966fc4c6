"""AlterConfigs: replaces all settings of a resource. Settings that the request does not name are unset; IncrementalAlterConfigs keeps them.

Versions 0 to 2.
- Each resource has its own result, in the order of the request. With validate_only nothing is written.
- Log levels cannot be altered with this API.
Authorization: ALTER_CONFIGS on the topic or the group, else TOPIC_AUTHORIZATION_FAILED or GROUP_AUTHORIZATION_FAILED whether it exists or
  not; on the cluster for all other resources, else CLUSTER_AUTHORIZATION_FAILED.
Errors: INVALID_REQUEST, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.alterations.alter import Operation, OpType
from barnabas.broker.config.alterations.config_alterations import Alteration
from barnabas.broker.handlers import config_access
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from barnabas.security.operations import AclOperation

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
            denial=_denial(broker, request, resource),
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


def _denial(broker: Broker, request: Request[AlterConfigsRequest], resource: AlterConfigsResource) -> ErrorCode | None:
    return config_access.denial(broker, request, AclOperation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
