# Compiled by mypyc: src/compiled.toml lists this module.
"""All ACLs in memory, by resource type, principal and pattern, and the decisions that follow from them.

A decision looks up the ACLs of the client's principal and of `User:*`: the literal ones by name, the prefixed ones by each length that a
prefix has. So its cost grows with the ACLs that apply and not with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.broker.security.authorizer.acl_rules import WILDCARD_HOST, WILDCARD_PRINCIPAL, allows_any, covers
from barnabas.security.acl import (
    ANY_NAME,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.security.operations import AclOperation


class Decision:
    """Whether an action is allowed, and the ACL that says so; without one `reason` says it."""

    __slots__ = ("binding", "is_allowed", "reason")

    def __init__(self, is_allowed: bool, reason: str = "", binding: AclBinding | None = None) -> None:
        self.is_allowed = is_allowed
        self.reason = reason
        self.binding = binding

    @property
    def rule(self) -> str:
        """The rule in Kafka's words, for the audit log."""
        if self.binding is None:
            return self.reason
        pattern, entry = self.binding.pattern, self.binding.entry
        return (
            f"MatchingAcl(acl=StandardAcl[resourceType={pattern.resource_type.name}, resourceName={pattern.name}, "
            f"patternType={pattern.pattern_type.name}, principal={entry.principal}, host={entry.host}, "
            f"operation={entry.operation.name}, permissionType={entry.permission_type.name}])"
        )


SUPER_USER: Final = Decision(True, "SuperUser")
DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


class PatternTable:
    """The ACLs of some patterns of one resource type."""

    __slots__ = ("_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, list[AclBinding]] = {}
        self._prefixed: dict[str, list[AclBinding]] = {}
        self._lengths: dict[int, int] = {}  # how many prefixes have each length

    def __bool__(self) -> bool:
        return bool(self._literal or self._prefixed)

    def bindings(self) -> Iterator[AclBinding]:
        for table in (self._literal, self._prefixed):
            for bindings in table.values():
                yield from bindings

    def replace(self, pattern: ResourcePattern, bindings: list[AclBinding]) -> None:
        """Gives a pattern these ACLs instead of those that it had."""
        is_prefixed = pattern.pattern_type is PatternType.PREFIXED
        table = self._prefixed if is_prefixed else self._literal
        if is_prefixed:
            self._count(len(pattern.name), bool(bindings) - (pattern.name in table))
        if bindings:
            table[pattern.name] = bindings
        else:
            table.pop(pattern.name, None)

    def matching(self, name: str) -> list[list[AclBinding]]:
        """The ACLs of each pattern that matches the name of a resource."""
        acls: list[list[AclBinding]] = []
        literal = self._literal.get(name)
        if literal is not None:
            acls.append(literal)
        if name != ANY_NAME:
            wildcard = self._literal.get(ANY_NAME)
            if wildcard is not None:
                acls.append(wildcard)
        for length in self._lengths:
            if length <= len(name):
                prefixed = self._prefixed.get(name[:length])
                if prefixed is not None:
                    acls.append(prefixed)
        return acls

    def _count(self, length: int, change: int) -> None:
        count = self._lengths.get(length, 0) + change
        if count:
            self._lengths[length] = count
        else:
            self._lengths.pop(length, None)


class AclIndex:
    """`default` is the decision on a resource without any ACL, of allow.everyone.if.no.acl.found."""

    __slots__ = ("_by_principal", "_by_type", "_default", "_patterns")

    def __init__(self, default: Decision = DEFAULT_DENY) -> None:
        self._default = default
        self._patterns: dict[ResourcePattern, list[AclBinding]] = {}
        self._by_type: dict[ResourceType, PatternTable] = {}
        self._by_principal: dict[tuple[ResourceType, str], PatternTable] = {}

    def __len__(self) -> int:
        return sum(len(bindings) for bindings in self._patterns.values())

    def patterns(self) -> list[ResourcePattern]:
        return list(self._patterns)

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding]:
        """As they are at the first `next`."""
        for pattern, bindings in list(self._patterns.items()):
            if acl_filter.pattern_filter.matches(pattern):
                yield from (binding for binding in bindings if acl_filter.entry_filter.matches(binding.entry))

    def replace(self, pattern: ResourcePattern, entries: Sequence[AccessControlEntry]) -> None:
        """Gives a pattern these ACLs instead of those that it had."""
        before = self._patterns.pop(pattern, [])
        bindings = [AclBinding(pattern, entry) for entry in entries]
        if bindings:
            self._patterns[pattern] = bindings
        self._table(pattern.resource_type).replace(pattern, bindings)
        by_principal: dict[str, list[AclBinding]] = {binding.entry.principal: [] for binding in before}
        for binding in bindings:
            by_principal.setdefault(binding.entry.principal, []).append(binding)
        for principal, own in by_principal.items():
            self._replace_own((pattern.resource_type, principal), pattern, own)

    def decide(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """A denial prevails over any permission. A resource that has ACLs, but none that applies, is denied."""
        allowed: AclBinding | None = None
        for owner in (principal, WILDCARD_PRINCIPAL):
            table = self._by_principal.get((resource_type, owner))
            if table is None:
                continue
            for bindings in table.matching(name):
                for binding in bindings:
                    entry = binding.entry
                    if entry.host != WILDCARD_HOST and entry.host != host:
                        continue
                    if not covers(entry, operation):
                        continue
                    if entry.permission_type is not AclPermissionType.ALLOW:
                        return Decision(False, binding=binding)
                    allowed = binding
        if allowed is not None:
            return Decision(True, binding=allowed)
        return DEFAULT_DENY if self._has_acls(resource_type, name) else self._default

    def allows_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether ACLs allow the operation on at least one resource of the type (KIP-679)."""
        about: list[AclBinding] = []
        for owner in (principal, WILDCARD_PRINCIPAL):
            table = self._by_principal.get((resource_type, owner))
            if table is not None:
                about.extend(binding for binding in table.bindings() if binding.entry.host in (host, WILDCARD_HOST))
        return allows_any(about, operation)

    def _has_acls(self, resource_type: ResourceType, name: str) -> bool:
        table = self._by_type.get(resource_type)
        return table is not None and bool(table.matching(name))

    def _table(self, resource_type: ResourceType) -> PatternTable:
        table = self._by_type.get(resource_type)
        if table is None:
            table = self._by_type[resource_type] = PatternTable()
        return table

    def _replace_own(self, key: tuple[ResourceType, str], pattern: ResourcePattern, bindings: list[AclBinding]) -> None:
        """Tables of principals without ACLs are not kept: principals come and go."""
        table = self._by_principal.get(key)
        if table is None:
            table = self._by_principal[key] = PatternTable()
        table.replace(pattern, bindings)
        if not table:
            del self._by_principal[key]
