# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's rules for one ACL: which clients and which operations it is about, and which operations an allowed one implies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.security.acl import ANY_NAME, AccessControlEntry, AclBinding, AclPermissionType, PatternType
from barnabas.security.operations import IMPLIED_BY, AclOperation

WILDCARD_PRINCIPAL: Final = "User:*"
WILDCARD_HOST: Final = "*"

_NONE: Final[tuple[AclOperation, ...]] = ()


def is_about(entry: AccessControlEntry, principals: Sequence[str], host: str) -> bool:
    """Whether the entry is about a client: `principals` are its principal and `User:*`."""
    return entry.principal in principals and (entry.host == WILDCARD_HOST or entry.host == host)


def covers(entry: AccessControlEntry, operation: AclOperation) -> bool:
    """Whether the entry allows or denies the operation, by name or by implication."""
    if entry.operation is operation or entry.operation is AclOperation.ALL:
        return True
    return entry.permission_type is AclPermissionType.ALLOW and entry.operation in IMPLIED_BY.get(operation, _NONE)


def allows_any(bindings: Iterable[AclBinding], operation: AclOperation) -> bool:
    """Whether the ACLs of one client, all of one resource type, allow the operation on at least one resource (KIP-679).

    An ACL that allows does not count if another denies everything that it allows: the same name, a prefix of the name, or `*`. Implied
    operations do not count, as in Kafka.
    """
    denied_names: set[str] = set()
    denied_prefixes: set[str] = set()
    allowed: list[AclBinding] = []
    for binding in bindings:
        if binding.entry.operation is not operation and binding.entry.operation is not AclOperation.ALL:
            continue
        if binding.entry.permission_type is AclPermissionType.ALLOW:
            allowed.append(binding)
        else:
            (denied_prefixes if binding.pattern.pattern_type is PatternType.PREFIXED else denied_names).add(binding.pattern.name)
    if ANY_NAME in denied_names:
        return False
    return any(not _is_dominated(binding, denied_names, denied_prefixes) for binding in allowed)


def _is_dominated(allowed: AclBinding, denied_names: set[str], denied_prefixes: set[str]) -> bool:
    name = allowed.pattern.name
    if allowed.pattern.pattern_type is PatternType.LITERAL:
        if name == ANY_NAME:
            return False
        if name in denied_names:
            return True
    return any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))
