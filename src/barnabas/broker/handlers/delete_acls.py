"""DeleteAcls: deletes the access control lists that filters match.

Versions 0 to 3.
Behaviour
- any broker serves it.
- each filter has its own result, in the order of the request, with the ACLs that it matched.
- on return this broker does not obey the deleted ACLs any more; the others when they have processed the notification.
- a request with a code 0 (UNKNOWN) closes the connection, as in Kafka, where it cannot be parsed.
Authorization: ALTER on the cluster.
Version notes: 1 adds pattern types; before, filters match LITERAL ones only.
Errors, of a filter
- SECURITY_DISABLED (no authorizer), CLUSTER_AUTHORIZATION_FAILED: every filter of the request.
- INVALID_REQUEST (a code that is unknown here).
Errors, of a matching ACL: UNKNOWN_SERVER_ERROR (the metadata store).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.acl_messages import closing, code_and_text, filter_of, is_known_filter
from barnabas.broker.requests.reply import Reply
from barnabas.broker.scheduling.turns import slices
from barnabas.broker.security.authorizer.authorizer import AclDeletion
from barnabas.errors import KafkaError
from barnabas.protocol.messages.delete_acls_request import DeleteAclsRequest
from barnabas.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from barnabas.security.acl import AclBinding
from barnabas.security.errors import SecurityDisabled
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.authorizer.authorizer import Authorizer


def handle(broker: Broker, request: Request[DeleteAclsRequest]) -> Reply[DeleteAclsResponse]:
    authorizer = broker.access.authorizer
    if not all(is_known_filter(acl_filter) for acl_filter in request.message.filters):
        return closing(request)
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
        if authorizer is None:
            raise SecurityDisabled("No Authorizer is configured.")
    except KafkaError as error:
        refused = DeleteAclsFilterResult(*code_and_text(error), [])
        return Reply.now(request, DeleteAclsResponse(0, [refused] * len(request.message.filters)))
    return Reply.awaiting(request, _delete(broker, authorizer, request))


async def _delete(broker: Broker, authorizer: Authorizer, request: Request[DeleteAclsRequest]) -> DeleteAclsResponse:
    results: list[DeleteAclsFilterResult] = []
    for filters in slices(request.message.filters):
        await broker.turns.next(request)
        deletions = await authorizer.delete_acls(request.session, [filter_of(acl_filter) for acl_filter in filters])
        results.extend(_result(deletion) for deletion in deletions)
    return DeleteAclsResponse(0, results)


def _result(deletion: AclDeletion) -> DeleteAclsFilterResult:
    code, text = code_and_text(deletion.error)
    return DeleteAclsFilterResult(code, text, [_matching(binding, error) for binding, error in deletion.deleted])


def _matching(binding: AclBinding, error: KafkaError | None) -> DeleteAclsMatchingAcl:
    code, text = code_and_text(error)
    pattern, entry = binding.pattern, binding.entry
    return DeleteAclsMatchingAcl(
        code,
        text,
        int(pattern.resource_type),
        pattern.name,
        int(pattern.pattern_type),
        entry.principal,
        entry.host,
        int(entry.operation),
        int(entry.permission_type),
    )
