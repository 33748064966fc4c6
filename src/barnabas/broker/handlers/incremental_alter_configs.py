"""IncrementalAlterConfigs: sets and deletes settings of a resource, and appends to or subtracts from those that are lists.

Versions 0 to 1.
- Each resource has its own result, in the order of the request. It is changed as a whole or not at all. With validate_only nothing is
  written.
- A broker alters its own settings and log levels, and the defaults of all brokers (`""`).
Authorization: ALTER_CONFIGS on the topic or the group, else TOPIC_AUTHORIZATION_FAILED or GROUP_AUTHORIZATION_FAILED whether it exists or
  not; on the cluster for all other resources, else CLUSTER_AUTHORIZATION_FAILED.
Errors: INVALID_REQUEST, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION, UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.alterations.alter import Operation
from barnabas.broker.config.alterations.config_alterations import Alteration
from barnabas.broker.handlers import config_access
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs_request import AlterConfigsResource, IncrementalAlterConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs_response import AlterConfigsResourceResponse, IncrementalAlterConfigsResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[IncrementalAlterConfigsRequest]) -> Reply[IncrementalAlterConfigsResponse]:
    return Reply.awaiting(request, _alter(broker, request))


async def _alter(broker: Broker, request: Request[IncrementalAlterConfigsRequest]) -> IncrementalAlterConfigsResponse:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            tuple(Operation(config.name, config.config_operation, config.value) for config in resource.configs),
            denial=_denial(broker, request, resource),
        )
        for resource in request.message.resources
    ]
    outcomes = await broker.configs.alter(alterations, request.message.validate_only)
    return IncrementalAlterConfigsResponse(
        0,
        [
            AlterConfigsResourceResponse(code, message, alteration.type, alteration.name)
            for alteration, (code, message) in zip(alterations, outcomes, strict=True)
        ],
    )


def _denial(broker: Broker, request: Request[IncrementalAlterConfigsRequest], resource: AlterConfigsResource) -> ErrorCode | None:
    return config_access.denial(broker, request, AclOperation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
