"""Random ACLs and requests. The names are few and short, so that patterns match, overlap and dominate each other."""

from __future__ import annotations

from random import Random

from barnabas.security.acl import AccessControlEntry, AclBinding, AclPermissionType, PatternType, ResourcePattern, ResourceType
from barnabas.security.operations import AclOperation

PRINCIPALS = ("User:alice", "User:bob", "Group:alice", "User:super")
HOSTS = ("10.0.0.1", "10.0.0.2")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.ALTER,
    AclOperation.DELETE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
)
REQUESTED = OPERATIONS[1:]
_LETTERS = "ab"


def name(random: Random) -> str:
    return random.choice(("h", "hard", "".join(random.choices(_LETTERS, k=random.randint(1, 4)))))


def binding(random: Random) -> AclBinding:
    pattern_type = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    resource = "*" if pattern_type is PatternType.LITERAL and random.random() < 0.2 else name(random)
    principal = random.choice((*PRINCIPALS[:3], "User:*"))
    permission_type = AclPermissionType.DENY if random.random() < 0.2 else AclPermissionType.ALLOW
    return AclBinding(
        ResourcePattern(random.choice(TYPES), resource, pattern_type),
        AccessControlEntry(principal, random.choice((*HOSTS, "*", "*")), random.choice(OPERATIONS), permission_type),
    )


def bindings(random: Random) -> list[AclBinding]:
    return list(dict.fromkeys(binding(random) for _ in range(random.choice((0, 1, 3, 8, 13, 20, 40, 80)))))
