"""Whether the client may describe or alter the configs of a resource. The APIs for configs share it.

Topics and groups are resources of the authorizer. All other configs belong to the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.config_def import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.security.acl import ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.security.operations import AclOperation

_OF_THE_CLUSTER: Final = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS)
_OTHERS: Final = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def denial(broker: Broker, request: Request[Any], operation: AclOperation, resource_type: int, name: str) -> ErrorCode | None:
    """The error of a resource whose configs the client may not describe or alter; None for an unknown type, which has an error anyway."""
    access = broker.access
    if access.is_open:
        return None
    kind = ConfigResourceType.for_id(resource_type)
    if kind in _OF_THE_CLUSTER:
        return None if access.allows_on_cluster(request, operation) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if kind not in _OTHERS:
        return None
    resource, error = _OTHERS[kind]
    return None if access.allows(request, operation, resource, name) else error
