"""CreateAcls: adds access control lists.

Versions 0 to 3.
Behaviour
- any broker serves it.
- each ACL has its own result, in the order of the request. An ACL that exists is no error.
- on return this broker obeys the new ACLs; the others obey them when they have processed the notification.
- a request with a code 0 (UNKNOWN) closes the connection, as in Kafka, where it cannot be parsed. A code that is for filters (ANY, MATCH)
  fails every ACL of the request, as in Kafka.
Authorization: ALTER on the cluster.
Version notes: 1 adds pattern types; before, all are LITERAL.
Errors, of an ACL
- SECURITY_DISABLED (no authorizer), CLUSTER_AUTHORIZATION_FAILED: every ACL of the request.
- INVALID_REQUEST (a name, type, operation or principal that cannot be).
- UNKNOWN_SERVER_ERROR (a code for filters; the metadata store).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.acl_messages import binding_of, closing, code_and_text, is_for_filters, is_known_creation
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import slices
from barnabas.broker.security.access import CLUSTER_NAME
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.protocol.messages.create_acls_request import CreateAclsRequest
from barnabas.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from barnabas.security.acl import AclBinding, ResourceType
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.authorizer.authorizer import Authorizer

_OK: Final = AclCreationResult()
_log = logging.getLogger(__name__)


def handle(broker: Broker, request: Request[CreateAclsRequest]) -> Reply[CreateAclsResponse]:
    authorizer = broker.access.authorizer
    if not all(is_known_creation(creation) for creation in request.message.creations):
        return closing(request)
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
        if authorizer is None:
            raise SecurityDisabled("No Authorizer is configured.")
        if any(is_for_filters(creation) for creation in request.message.creations):
            _log.warning("%s is refused: an ACL contains ANY or MATCH, which are for filters", request)
            raise KafkaError
    except KafkaError as error:
        return Reply.now(request, CreateAclsResponse(0, [_result(error)] * len(request.message.creations)))
    return Reply.awaiting(request, _create(broker, authorizer, request))


async def _create(broker: Broker, authorizer: Authorizer, request: Request[CreateAclsRequest]) -> CreateAclsResponse:
    results: list[AclCreationResult] = []
    for creations in slices(request.message.creations):
        await broker.turns.next(request)
        bindings = [binding_of(creation) for creation in creations]
        faults = [_fault(binding) for binding in bindings]
        created = await authorizer.create_acls(
            request.session, [binding for binding, fault in zip(bindings, faults, strict=True) if fault is None]
        )
        errors = iter(created)
        results.extend(_result(fault or next(errors)) for fault in faults)
    return CreateAclsResponse(0, results)


def _fault(binding: AclBinding) -> KafkaError | None:
    if binding.pattern.resource_type is ResourceType.CLUSTER and binding.pattern.name != CLUSTER_NAME:
        return InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.pattern.name:
        return InvalidRequest("Invalid empty resource name")
    return None


def _result(error: KafkaError | None) -> AclCreationResult:
    return _OK if error is None else AclCreationResult(*code_and_text(error))
