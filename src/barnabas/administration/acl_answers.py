"""Answers from access control lists: what a user may do, and who may do something to a resource.

They follow the rules of Kafka's authorizer. An ACL applies by its resource (the name, a prefix of it, or `*`), its principal (`User:alice`
or `User:*`), its host and its operation. A denial prevails over any permission. Super users pass every check, and are not in the lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.administration.acl_operations import SUPPORTED
from barnabas.security.acl import ANY_NAME, AclBinding, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import IMPLIED_BY, AclOperation

EVERYBODY: Final = "User:*"
ANY_HOST: Final = "*"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether an operation is allowed, and the ACL that decides. `because` is None where no ACL applies. `host` is `*` for clients on hosts
    that no ACL names."""

    principal: str
    host: str
    operation: AclOperation
    pattern: ResourcePattern
    is_allowed: bool
    because: AclBinding | None
    except_for: tuple[AclBinding, ...] = ()  # denials of some of the resources of a pattern


def decide(
    bindings: Iterable[AclBinding], principal: str, host: str, operation: AclOperation, pattern: ResourcePattern, *, default: bool = False
) -> Answer:
    """Whether a client may do the operation to everything that `pattern` covers. `default` is the answer if no ACL is about the resource:
    allow.everyone.if.no.acl.found."""
    allowed: AclBinding | None = None
    exceptions: list[AclBinding] = []
    has_acls = False
    for binding in bindings:
        if binding.pattern.resource_type is not pattern.resource_type:
            continue
        whole = encloses(binding.pattern, pattern)
        has_acls = has_acls or whole
        entry = binding.entry
        if entry.principal not in (principal, EVERYBODY) or entry.host not in (ANY_HOST, host) or not covers(binding, operation):
            continue
        if entry.permission_type is AclPermissionType.DENY:
            if whole:
                return Answer(principal, host, operation, pattern, False, binding)
            if encloses(pattern, binding.pattern):
                exceptions.append(binding)
        elif whole:
            allowed = binding
    is_allowed = allowed is not None or (default and not has_acls)
    return Answer(principal, host, operation, pattern, is_allowed, allowed, tuple(exceptions) if is_allowed else ())


def covers(binding: AclBinding, operation: AclOperation) -> bool:
    """Whether an ACL allows or denies the operation, by name or by implication."""
    entry = binding.entry
    if entry.operation in (operation, AclOperation.ALL):
        return True
    return entry.permission_type is AclPermissionType.ALLOW and entry.operation in IMPLIED_BY.get(operation, ())


def encloses(outer: ResourcePattern, inner: ResourcePattern) -> bool:
    """Whether everything that `inner` names is named by `outer` too."""
    if outer.resource_type is not inner.resource_type:
        return False
    if outer.pattern_type is PatternType.PREFIXED:
        return inner.name.startswith(outer.name) and not (inner.pattern_type is PatternType.LITERAL and inner.name == ANY_NAME)
    if outer.name == ANY_NAME:
        return True
    return inner.pattern_type is PatternType.LITERAL and inner.name == outer.name


def what_may(bindings: Sequence[AclBinding], principal: str, host: str = ANY_HOST) -> list[Answer]:
    """For each resource that an ACL about this principal, or about everybody, names: each operation that is allowed, or denied by an ACL.

    Resources that only `allow.everyone.if.no.acl.found` opens are not in it.
    """
    patterns = {binding.pattern for binding in bindings if binding.entry.principal in (principal, EVERYBODY)}
    answers = [
        decide(bindings, principal, host, operation, pattern)
        for pattern in sorted(patterns, key=_order)
        for operation in operations_of(pattern.resource_type)
    ]
    return [answer for answer in answers if answer.is_allowed or answer.because is not None]


def who_may(bindings: Sequence[AclBinding], operation: AclOperation, pattern: ResourcePattern, *, default: bool = False) -> list[Answer]:
    """The answer for each principal that an ACL about the resource names, and for everybody else. A principal has further rows for hosts on
    which the answer is another one."""
    about = [binding for binding in bindings if encloses(binding.pattern, pattern)]
    principals = sorted({binding.entry.principal for binding in about} - {EVERYBODY})
    answers: list[Answer] = []
    for principal in [*principals, EVERYBODY]:
        own = decide(about, principal, ANY_HOST, operation, pattern, default=default)
        answers.append(own)
        hosts = {binding.entry.host for binding in about if binding.entry.principal in (principal, EVERYBODY)} - {ANY_HOST}
        further = [decide(about, principal, host, operation, pattern, default=default) for host in sorted(hosts)]
        answers += [answer for answer in further if answer.is_allowed != own.is_allowed]
    return answers


def operations_of(resource_type: ResourceType) -> tuple[AclOperation, ...]:
    """The operations that exist for resources of a type."""
    return tuple(AclOperation[name] for name in SUPPORTED.get(resource_type.name, ()))


def _order(pattern: ResourcePattern) -> tuple[int, int, str]:
    return pattern.resource_type, -pattern.pattern_type, pattern.name
