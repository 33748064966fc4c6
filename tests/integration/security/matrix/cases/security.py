"""Authentication, ACLs, SCRAM users and delegation tokens."""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from tests.integration.security.matrix.case import Acl, Case, Cell, on_cluster
from tests.integration.security.matrix.names import ACL_USER, RENEWER, SCRAM_USER, TOKEN_OWNER

_SHA_256 = 1
_ITERATIONS = 4096
_DAY_MS = 86_400_000
_OWNERS = 3  # the version of CreateDelegationToken with an owner
_PATTERN_TYPES = 1  # the version of DescribeAcls with pattern types


def _describe_acls(cell: Cell) -> DescribeAclsRequest:
    pattern = PatternType.ANY if cell.version >= _PATTERN_TYPES else PatternType.LITERAL
    return DescribeAclsRequest(ResourceType.ANY, None, pattern, f"User:{ACL_USER}", None, AclOperation.ANY, AclPermissionType.ANY)


def _create_acls(cell: Cell) -> CreateAclsRequest:
    """The second is invalid: there is one cluster, with another name."""
    allowed = AclPermissionType.ALLOW
    return CreateAclsRequest(
        [
            AclCreation(ResourceType.TOPIC, cell.own, PatternType.LITERAL, "User:nobody", "*", AclOperation.READ, allowed),
            AclCreation(ResourceType.CLUSTER, "another", PatternType.LITERAL, "User:nobody", "*", AclOperation.ALTER, allowed),
        ]
    )


def _delete_acls(cell: Cell) -> DeleteAclsRequest:
    """Those that the case CreateAcls has created in the same column, if it could."""
    created = replace(cell, case=_CREATE_ACLS).own
    everyone = (None, None, AclOperation.ANY, AclPermissionType.ANY)
    return DeleteAclsRequest([DeleteAclsFilter(ResourceType.TOPIC, created, PatternType.LITERAL, *everyone)])


def _alter_scram(cell: Cell) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion(cell.own, _SHA_256)],
        [ScramCredentialUpsertion(f"{cell.own}-new", _SHA_256, _ITERATIONS, b"salt", b"x" * 32)],
    )


def _create_token(cell: Cell, owner: str | None = None) -> CreateDelegationTokenRequest:
    renewers = [CreatableRenewers("User", RENEWER)]
    if owner is None:
        kind, name = (None, None) if cell.version >= _OWNERS else ("", "")
        return CreateDelegationTokenRequest(kind, name, renewers, _DAY_MS)
    return CreateDelegationTokenRequest("User", owner, renewers, _DAY_MS)


def _describe_tokens(cell: Cell) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest([DescribeDelegationTokenOwner("User", TOKEN_OWNER)])


_CREATE_ACLS = Case("CreateAcls", (0, 1, 3), _create_acls, lambda cell: [on_cluster(AclOperation.ALTER)])

CASES = (
    Case("SaslHandshake", (0, 1), lambda cell: SaslHandshakeRequest("PLAIN")),
    Case("SaslHandshake of an unknown mechanism", (1,), lambda cell: SaslHandshakeRequest("UNKNOWN")),
    Case("SaslAuthenticate", (0, 2), lambda cell: SaslAuthenticateRequest(b"\0admin\0wrong")),
    Case("DescribeAcls", (0, 1, 3), _describe_acls, lambda cell: [on_cluster(AclOperation.DESCRIBE)]),
    _CREATE_ACLS,
    Case("DeleteAcls", (0, 1, 3), _delete_acls, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case(
        "DescribeUserScramCredentials",
        (0,),
        lambda cell: DescribeUserScramCredentialsRequest([UserName(SCRAM_USER), UserName("missing")]),
        lambda cell: [on_cluster(AclOperation.DESCRIBE)],
    ),
    Case("AlterUserScramCredentials", (0,), _alter_scram, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case("CreateDelegationToken", (0, 1, 3), _create_token),
    Case(
        "CreateDelegationToken for another owner",
        (3,),
        lambda cell: _create_token(cell, cell.own),
        lambda cell: [Acl(AclOperation.CREATE_TOKENS, ResourceType.USER, f"User:{cell.own}")],
    ),
    Case("RenewDelegationToken", (0, 1, 2), lambda cell: RenewDelegationTokenRequest(cell.world.token_hmac, _DAY_MS), exact_user=RENEWER),
    Case("RenewDelegationToken that is unknown", (2,), lambda cell: RenewDelegationTokenRequest(b"unknown", _DAY_MS)),
    Case(
        "ExpireDelegationToken",
        (0, 1, 2),
        lambda cell: ExpireDelegationTokenRequest(cell.world.token_hmac, _DAY_MS),
        exact_user=TOKEN_OWNER,
    ),
    Case(
        "DescribeDelegationToken",
        (0, 1, 3),
        _describe_tokens,
        lambda cell: [Acl(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, cell.world.token_id)],
    ),
    Case(
        "DescribeDelegationToken by a permission of the owner",
        (1, 3),
        _describe_tokens,
        lambda cell: [Acl(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, f"User:{TOKEN_OWNER}")],
    ),
    Case("DescribeDelegationToken by its owner", (0, 1, 3), _describe_tokens, exact_user=TOKEN_OWNER),
    Case(
        "DescribeDelegationToken of everybody",
        (1, 3),
        lambda cell: DescribeDelegationTokenRequest(None),
        lambda cell: [Acl(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, cell.world.token_id)],
        lists_everything=True,
    ),
)
