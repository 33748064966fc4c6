"""DescribeAcls: the access control lists that a filter matches.

Versions 0 to 3.
Behaviour
- the broker responds with the ACLs that it obeys.
- a request with a code 0 (UNKNOWN) closes the connection, as in Kafka, where it cannot be parsed.
Authorization: DESCRIBE on the cluster.
Version notes: 1 adds pattern types; before, only LITERAL ones are returned.
Errors: SECURITY_DISABLED (no authorizer), CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.acl_messages import closing, filter_of, is_known_filter
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import slices
from barnabas.errors import KafkaError
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from barnabas.security.acl import ResourcePattern
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.authorizer.authorizer import Authorizer


def handle(broker: Broker, request: Request[DescribeAclsRequest]) -> Reply[DescribeAclsResponse]:
    authorizer = broker.access.authorizer
    if not is_known_filter(request.message):
        return closing(request)
    try:
        broker.access.require_on_cluster(request, AclOperation.DESCRIBE)
        if authorizer is None:
            raise SecurityDisabled("No Authorizer is configured on the broker")
    except KafkaError as error:
        return Reply.now(request, DescribeAclsResponse(0, error.code, str(error)))
    return Reply.awaiting(request, _describe(broker, authorizer, request))


async def _describe(broker: Broker, authorizer: Authorizer, request: Request[DescribeAclsRequest]) -> DescribeAclsResponse:
    resources: dict[ResourcePattern, DescribeAclsResource] = {}
    for bindings in slices(authorizer.acls(filter_of(request.message))):
        for binding in bindings:
            pattern, entry = binding.pattern, binding.entry
            resource = resources.get(pattern)
            if resource is None:
                resource = DescribeAclsResource(int(pattern.resource_type), pattern.name, int(pattern.pattern_type), [])
                resources[pattern] = resource
            resource.acls.append(AclDescription(entry.principal, entry.host, int(entry.operation), int(entry.permission_type)))
        await broker.turns.next(request)
    return DescribeAclsResponse(resources=list(resources.values()))
