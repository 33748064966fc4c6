"""ACLs and filters of ACLs as they are in requests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.security.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request
    from barnabas.errors import KafkaError
    from barnabas.protocol.messages.create_acls_request import AclCreation

_log = logging.getLogger(__name__)


class FilterMessage(Protocol):
    """DescribeAclsRequest itself, or a filter of DeleteAclsRequest."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def binding_of(creation: AclCreation) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType.from_code(creation.resource_type),
            creation.resource_name,
            PatternType.from_code(creation.resource_pattern_type),
        ),
        AccessControlEntry(
            creation.principal,
            creation.host,
            AclOperation.from_code(creation.operation),
            AclPermissionType.from_code(creation.permission_type),
        ),
    )


def filter_of(message: FilterMessage) -> AclBindingFilter:
    return AclBindingFilter(
        ResourcePatternFilter(
            ResourceType.from_code(message.resource_type_filter),
            message.resource_name_filter,
            PatternType.from_code(message.pattern_type_filter),
        ),
        AccessControlEntryFilter(
            message.principal_filter,
            message.host_filter,
            AclOperation.from_code(message.operation),
            AclPermissionType.from_code(message.permission_type),
        ),
    )


def is_known_creation(creation: AclCreation) -> bool:
    """Whether no code is 0. Codes of the future are refused one by one, by the authorizer."""
    return bool(creation.resource_pattern_type and creation.resource_type and creation.permission_type and creation.operation)


def is_for_filters(creation: AclCreation) -> bool:
    """Whether a code is one that an ACL cannot have, ANY or MATCH."""
    return (
        creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.resource_type == ResourceType.ANY
        or creation.operation == AclOperation.ANY
        or creation.permission_type == AclPermissionType.ANY
    )


def is_known_filter(acl_filter: FilterMessage) -> bool:
    """Whether no code is 0."""
    return bool(acl_filter.pattern_type_filter and acl_filter.resource_type_filter and acl_filter.operation and acl_filter.permission_type)


def closing(request: Request[Any]) -> Reply[Any]:
    """The reply to a request with a code 0, which closes the connection."""
    _log.warning("Closing connection %s: %s contains UNKNOWN elements", request.connection.id, request)
    reply: Reply[Any] = Reply(request)
    reply.close_connection()
    return reply


def code_and_text(error: KafkaError | None) -> tuple[int, str | None]:
    """UNKNOWN_SERVER_ERROR has no text on the wire: what went wrong inside a broker is not the client's to know."""
    if error is None:
        return 0, None
    return error.code, None if error.code == ErrorCode.UNKNOWN_SERVER_ERROR else str(error)
