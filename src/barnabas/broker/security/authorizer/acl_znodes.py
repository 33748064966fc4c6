"""The ACLs of one pattern as they stand in its znode: /kafka-acl/Topic/orders, /kafka-acl-extended/prefixed/Topic/ord."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from barnabas.broker.security.authorizer.acl_rules import WILDCARD_HOST, WILDCARD_PRINCIPAL
from barnabas.metadata import paths
from barnabas.metadata.znodes import security as znodes
from barnabas.metadata.znodes.json_text import CorruptZNode
from barnabas.security.acl import AccessControlEntry, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation

PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)
RESOURCE_TYPES: Final = tuple(kind for kind in ResourceType if kind not in (ResourceType.UNKNOWN, ResourceType.ANY))

# The ACLs of a pattern whose znode cannot be read.
_DENY_ALL: Final = AccessControlEntry(WILDCARD_PRINCIPAL, WILDCARD_HOST, AclOperation.ALL, AclPermissionType.DENY)

_log = logging.getLogger(__name__)


def acl_paths() -> list[str]:
    """The znodes that an authorizer creates at its start."""
    directories = [paths.acl_type(kind.title, pattern_type.name) for pattern_type in PATTERN_TYPES for kind in RESOURCE_TYPES]
    return [*directories, paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES]


def path_of(pattern: ResourcePattern) -> str:
    return paths.acl(pattern.resource_type.title, pattern.name, pattern.pattern_type.name)


def encode(entries: Iterable[AccessControlEntry]) -> bytes:
    return znodes.encode_acls(
        znodes.AclEntry(entry.principal, entry.permission_type.name.capitalize(), entry.host, entry.operation.title) for entry in entries
    )


def decode(pattern: ResourcePattern, data: bytes | None) -> list[AccessControlEntry]:
    """The entries. Of a damaged znode: one that denies everything to everybody, because a denial may be what was damaged."""
    path = path_of(pattern)
    try:
        return [_entry(path, entry, data) for entry in znodes.decode_acls(path, data)]
    except CorruptZNode as error:
        _log.error(
            "%s. Access to %s is denied to all but super.users. Correct the znode, or remove the ACL of User:* with kafka-acls --remove",
            error,
            pattern,
        )
        return [_DENY_ALL]


def encode_change(pattern: ResourcePattern) -> tuple[str, bytes]:
    """The path and the data of the sequential node that notifies the brokers of a changed pattern."""
    changed = znodes.AclChange(pattern.resource_type.name, pattern.name, pattern.pattern_type.name)
    return znodes.acl_change_path(changed), znodes.encode_acl_change(changed)


def decode_change(path: str, data: bytes) -> ResourcePattern:
    changed = znodes.decode_acl_change(path, data)
    resource_type = ResourceType.from_string(changed.resource_type)
    pattern_type = next((kind for kind in PATTERN_TYPES if kind.name == changed.pattern_type), PatternType.UNKNOWN)
    if resource_type not in RESOURCE_TYPES or pattern_type is PatternType.UNKNOWN:
        raise CorruptZNode(path, f"{changed.pattern_type} {changed.resource_type} is no pattern of resources", data)
    return ResourcePattern(resource_type, changed.name, pattern_type)


def _entry(path: str, entry: znodes.AclEntry, data: bytes | None) -> AccessControlEntry:
    permission_type = AclPermissionType.__members__.get(entry.permission_type.upper(), AclPermissionType.UNKNOWN)
    operation = AclOperation.from_string(entry.operation)
    if ":" not in entry.principal:
        raise CorruptZNode(path, f"the principal {entry.principal} is not in format principalType:principalName", data)
    if permission_type not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
        raise CorruptZNode(path, f"the permission type {entry.permission_type} is unknown", data)
    if operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise CorruptZNode(path, f"the operation {entry.operation} is unknown", data)
    return AccessControlEntry(entry.principal, entry.host, operation, permission_type)
