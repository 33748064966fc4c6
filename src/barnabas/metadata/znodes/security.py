"""ACLs and delegation tokens: /kafka-acl…, /kafka-acl-extended…, their change notifications, and /delegation_token….

Literal patterns and the others are in different subtrees, with different notifications, because brokers before 2.0 support only literal
ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.metadata import paths
from barnabas.metadata.znodes import json_text
from barnabas.metadata.znodes.configs import desanitize, sanitize


@dataclass(frozen=True, slots=True)
class AclEntry:
    """The names in the znode: `Allow` or `Deny`; `Read`, `DescribeConfigs`, `All` …"""

    principal: str
    permission_type: str
    host: str
    operation: str


def encode_acls(acls: Iterable[AclEntry]) -> bytes:
    """In the key order of Kafka 3.9; before 3.7 `version` was first and `host` last."""
    entries = [
        {"principal": entry.principal, "permissionType": entry.permission_type, "host": entry.host, "operation": entry.operation}
        for entry in acls
    ]
    return json_text.encode({"acls": entries, "version": 1})


def decode_acls(path: str, data: bytes | None) -> list[AclEntry]:
    """The entries without duplicates, in the order of the data; none for a node without data."""
    if not data:
        return []
    fields = json_text.decode(path, data)
    if fields.integer("version") != 1:
        raise fields.fault(f"Unsupported version {fields.integer('version')} of access lists")
    entries = (
        AclEntry(entry.text("principal"), entry.text("permissionType"), entry.text("host"), entry.text("operation"))
        for entry in fields.objects("acls")
    )
    return list(dict.fromkeys(entries))


@dataclass(frozen=True, slots=True)
class AclChange:
    """Kafka's enum names: resource type `TOPIC`, `GROUP` …, pattern type `LITERAL` or `PREFIXED`."""

    resource_type: str
    name: str
    pattern_type: str = "LITERAL"


def encode_acl_change(pattern: AclChange) -> bytes:
    if pattern.pattern_type == "LITERAL":
        return f"{pattern.resource_type}:{pattern.name}".encode()
    return json_text.encode(
        {"version": 1, "resourceType": pattern.resource_type, "name": pattern.name, "patternType": pattern.pattern_type}
    )


def decode_acl_change(path: str, data: bytes | None) -> AclChange:
    """Depends on the path: a node in /kafka-acl-changes is TYPE:NAME, one in /kafka-acl-extended-changes is JSON."""
    if paths.parent(path) == paths.ACL_CHANGES:
        resource_type, separator, name = _text(path, data).partition(":")
        if not separator:
            raise json_text.CorruptZNode(path, "expected a string in format ResourceType:ResourceName", data)
        return AclChange(resource_type.upper(), name)
    fields = json_text.decode(path, data)
    if fields.integer("version") > 1:
        raise fields.fault(f"Acl change event received for unsupported version: {fields.integer('version')}")
    return AclChange(fields.text("resourceType").upper(), fields.text("name"), fields.text("patternType").upper())


def acl_change_path(pattern: AclChange) -> str:
    """The path of the sequential node that notifies the brokers."""
    root = paths.ACL_CHANGES if pattern.pattern_type == "LITERAL" else paths.EXTENDED_ACL_CHANGES
    return f"{root}/{paths.ACL_CHANGE_PREFIX}"


@dataclass(frozen=True, slots=True)
class TokenZnode:
    """Principals as `User:alice`. The token's secret is never stored: it derives from the token id and the brokers' secret key."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int


def encode_token(token: TokenZnode) -> bytes:
    return json_text.encode(
        {
            "issueTimestamp": token.issue_timestamp,
            "renewers": [sanitize(renewer) for renewer in token.renewers],
            "tokenRequester": sanitize(token.requester),
            "tokenId": token.token_id,
            "owner": sanitize(token.owner),
            "expiryTimestamp": token.expiry_timestamp,
            "maxTimestamp": token.max_timestamp,
            "version": 3,
        }
    )


def decode_token(path: str, data: bytes | None) -> TokenZnode:
    fields = json_text.decode(path, data)
    version = fields.integer("version")
    if not 1 <= version <= 3:
        raise fields.fault(f"Unsupported version {version} of a delegation token")
    owner = desanitize(fields.text("owner"))
    return TokenZnode(
        token_id=fields.text("tokenId"),
        owner=owner,
        requester=desanitize(fields.text("tokenRequester")) if version >= 3 else owner,
        renewers=tuple(desanitize(renewer) for renewer in fields.texts("renewers")),
        issue_timestamp=fields.integer("issueTimestamp"),
        max_timestamp=fields.integer("maxTimestamp"),
        expiry_timestamp=fields.integer("expiryTimestamp"),
    )


def encode_token_change(token_id: str) -> bytes:
    return token_id.encode()


def decode_token_change(path: str, data: bytes | None) -> str:
    return _text(path, data)


def _text(path: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise json_text.CorruptZNode(path, "it is not UTF-8", data) from error
