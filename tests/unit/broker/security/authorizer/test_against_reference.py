"""Random ACLs and requests: the index decides as an implementation that looks at every ACL, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from barnabas.broker.security.authorizer.acl_index import DEFAULT_ALLOW, DEFAULT_DENY, AclIndex
from barnabas.security.acl import AclBinding, AclBindingFilter, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation
from tests.unit.broker.security.authorizer import worlds

WORLDS = 150
REQUESTS = 40
FRESH = "\U0010ffff"  # begins no name that an ACL has

IMPLIES = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


class Reference:
    """Kafka's rules as its documentation has them, without an index."""

    def __init__(self, bindings: Sequence[AclBinding], *, allow_everyone: bool) -> None:
        self.bindings = bindings
        self.allow_everyone = allow_everyone

    def is_allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str, *, implied: bool = True
    ) -> bool:
        matching = [binding for binding in self.bindings if matches(binding.pattern, resource_type, name)]
        if not matching:
            return self.allow_everyone
        entries = [
            binding.entry for binding in matching if binding.entry.principal in (principal, "User:*") and binding.entry.host in (host, "*")
        ]
        named = {AclOperation.ALL, operation}
        if any(entry.permission_type is AclPermissionType.DENY and entry.operation in named for entry in entries):
            return False
        allowing = named | (IMPLIES.get(operation, set()) if implied else set())
        return any(entry.permission_type is AclPermissionType.ALLOW and entry.operation in allowing for entry in entries)

    def is_any_allowed(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Tries a name of each pattern: the literal one, or one that begins with the prefix and is named nowhere."""
        patterns = [binding.pattern for binding in self.bindings if binding.pattern.resource_type is resource_type]
        names = [
            pattern.name if pattern.pattern_type is PatternType.LITERAL and pattern.name != "*" else pattern.name + FRESH
            for pattern in patterns
        ]
        return any(self.is_allowed(principal, host, operation, resource_type, name, implied=False) for name in [*names, FRESH])


def matches(pattern: ResourcePattern, resource_type: ResourceType, name: str) -> bool:
    if pattern.resource_type is not resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in ("*", name)


def filled(index: AclIndex, bindings: Sequence[AclBinding], random: Random) -> AclIndex:
    """Each pattern first gets other ACLs, some of them are taken away again, and in the end it has its own."""
    patterns = list(dict.fromkeys([binding.pattern for binding in bindings] + [worlds.binding(random).pattern for _ in range(5)]))
    for pattern in random.sample(patterns, len(patterns)):
        index.replace(pattern, [worlds.binding(random).entry for _ in range(random.randint(0, 3))])
    for pattern in random.sample(patterns, len(patterns)):
        index.replace(pattern, [binding.entry for binding in bindings if binding.pattern == pattern])
    return index


@pytest.mark.parametrize("allow_everyone", [False, True])
def test_the_index_decides_as_the_reference_does(allow_everyone: bool) -> None:
    random = Random(679)
    decisions: list[bool] = []
    for _ in range(WORLDS):
        bindings = worlds.bindings(random)
        index = filled(AclIndex(DEFAULT_ALLOW if allow_everyone else DEFAULT_DENY), bindings, random)
        reference = Reference(bindings, allow_everyone=allow_everyone)
        assert sorted(map(str, index.acls(AclBindingFilter()))) == sorted(map(str, bindings))
        for _ in range(REQUESTS):
            client = random.choice(worlds.PRINCIPALS), random.choice(worlds.HOSTS)
            request = (*client, random.choice(worlds.REQUESTED), random.choice(worlds.TYPES), worlds.name(random))
            is_allowed = index.decide(*request).is_allowed
            assert is_allowed == reference.is_allowed(*request), (request, bindings)
            decisions.append(is_allowed)
    assert 0.05 < sum(decisions) / len(decisions) < 0.95  # both are common


def test_any_resource_is_decided_as_the_reference_does() -> None:
    random = Random(679)
    decisions: list[bool] = []
    for _ in range(WORLDS):
        bindings = worlds.bindings(random)
        index, reference = filled(AclIndex(), bindings, random), Reference(bindings, allow_everyone=False)
        for _ in range(REQUESTS):
            request = (
                random.choice(worlds.PRINCIPALS),
                random.choice(worlds.HOSTS),
                random.choice(worlds.REQUESTED),
                random.choice(worlds.TYPES),
            )
            is_allowed = index.allows_any(*request)
            assert is_allowed == reference.is_any_allowed(*request), (request, bindings)
            decisions.append(is_allowed)
    assert 0.05 < sum(decisions) / len(decisions) < 0.95


def test_an_empty_index_keeps_no_tables() -> None:
    random = Random(679)
    index = AclIndex()
    filled(index, worlds.bindings(random), random)
    for pattern in index.patterns():
        index.replace(pattern, [])
    assert len(index) == 0
    assert not index._by_principal
    assert not any(index._by_type.values())
