"""Rules, quotas, credentials and tokens."""

from __future__ import annotations

import pytest

from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    FilterResult,
    KafkaPrincipal,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.client.errors import IllegalArgument, SecurityDisabled, UnacceptableCredential
from barnabas.errors import InvalidRequest
from barnabas.protocol.messages import alter_client_quotas_response as altered
from barnabas.protocol.messages import describe_client_quotas_response as quotas
from barnabas.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from barnabas.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from barnabas.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.protocol.messages.create_acls_request import CreateAclsRequest
from barnabas.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from barnabas.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.protocol.messages.delete_acls_request import DeleteAclsRequest
from barnabas.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from barnabas.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from barnabas.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

ENTRY = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
RULE = AclBinding(ResourcePattern(ResourceType.TOPIC, "t"), ENTRY)
SHA_256 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)


def test_rules_are_found() -> None:
    cluster = FakeCluster()
    resource = DescribeAclsResource(2, "t", 3, [AclDescription("User:alice", "*", 3, 3)])
    cluster.on(DescribeAclsRequest, DescribeAclsResponse(resources=[resource]))
    assert run(ScriptedAdmin(cluster).describe_acls()) == [RULE]


def test_a_cluster_without_an_authorizer_has_none() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeAclsRequest, DescribeAclsResponse(error_code=54, error_message="No Authorizer is configured on the broker"))
    with pytest.raises(SecurityDisabled, match="No Authorizer"):
        run(ScriptedAdmin(cluster).describe_acls())


def test_a_filter_of_what_is_not_known_is_not_sent() -> None:
    with pytest.raises(InvalidRequest, match="UNKNOWN"):
        run(ScriptedAdmin(FakeCluster()).describe_acls(AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN))))


def test_a_rule_must_be_definite() -> None:
    cluster = FakeCluster()
    cluster.on(CreateAclsRequest, CreateAclsResponse(results=[AclCreationResult()]))
    vague = AclBinding(ResourcePattern(ResourceType.ANY, "t"), ENTRY)
    created = run(ScriptedAdmin(cluster).create_acls([vague, RULE]))
    assert str(created.errors[vague]) == "Invalid ACL creation: Resource type is ANY."
    assert created[RULE] is None
    assert len(cluster.requests(CreateAclsRequest)[0].creations) == 1


def test_each_filter_tells_what_it_deleted() -> None:
    cluster = FakeCluster()
    acl = DeleteAclsMatchingAcl(0, None, 2, "t", 3, "User:alice", "*", 3, 3)
    cluster.on(DeleteAclsRequest, DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=[acl])]))
    assert run(ScriptedAdmin(cluster).delete_acls([RULE.to_filter()]))[RULE.to_filter()] == [FilterResult(RULE)]


def test_quotas_are_found_by_entity() -> None:
    cluster = FakeCluster()
    entry = quotas.EntryData([quotas.EntityData("user", "u"), quotas.EntityData("client-id", None)], [quotas.ValueData("rate", 2.5)])
    cluster.on(DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse(entries=[entry]))
    components = [
        ClientQuotaFilterComponent.of_entity("user", "u"),
        ClientQuotaFilterComponent.of_default_entity("client-id"),
        ClientQuotaFilterComponent.of_entity_type("ip"),
    ]
    client_quotas = run(ScriptedAdmin(cluster).describe_client_quotas(ClientQuotaFilter.contains_only(components)))
    assert client_quotas == {ClientQuotaEntity({"client-id": None, "user": "u"}): {"rate": 2.5}}
    request = cluster.requests(DescribeClientQuotasRequest)[0]
    assert [(one.match_type, one.match) for one in request.components] == [(0, "u"), (1, None), (2, None)]
    assert request.strict


def test_quotas_are_set_and_removed() -> None:
    cluster = FakeCluster()
    entity = ClientQuotaEntity({"user": "u"})
    response = altered.AlterClientQuotasResponse(entries=[altered.EntryData(0, None, [altered.EntityData("user", "u")])])
    cluster.on(AlterClientQuotasRequest, response)
    run(ScriptedAdmin(cluster).alter_client_quotas([ClientQuotaAlteration(entity, {"a": 1, "b": None})])).all()
    (entry,) = cluster.requests(AlterClientQuotasRequest)[0].entries
    assert [(change.key, change.value, change.remove) for change in entry.ops] == [("a", 1.0, False), ("b", 0.0, True)]
    with pytest.raises(IllegalArgument, match="twice"):
        run(ScriptedAdmin(cluster).alter_client_quotas([ClientQuotaAlteration(entity, {})] * 2))


def test_a_password_is_salted_here_and_never_sent() -> None:
    cluster = FakeCluster()
    cluster.on(AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse(results=[AlterUserScramCredentialsResult("u")]))
    # RFC 7677: the salt and the password of its example.
    salt = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
    run(ScriptedAdmin(cluster).alter_user_scram_credentials([UserScramCredentialUpsertion("u", SHA_256, "pencil", salt)])).all()
    (sent,) = cluster.requests(AlterUserScramCredentialsRequest)[0].upsertions
    assert bytes(sent.salted_password).hex() == "c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d"
    assert (bytes(sent.salt), sent.mechanism, sent.iterations) == (salt, 1, 4096)


def test_credentials_that_cannot_be_right_are_refused_here() -> None:
    cluster = FakeCluster()
    wrong: list[UserScramCredentialUpsertion | UserScramCredentialDeletion]
    wrong = [UserScramCredentialUpsertion("a", SHA_256, ""), UserScramCredentialDeletion("b", ScramMechanism.UNKNOWN)]
    errors = run(ScriptedAdmin(cluster).alter_user_scram_credentials(wrong)).errors
    assert isinstance(errors["a"], UnacceptableCredential) and str(errors["b"]) == "Unknown SCRAM mechanism"
    assert cluster.sent == []


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(UserScramCredentialUpsertion("u", SHA_256, "secret", b"secret"))


def test_users_without_credentials_have_an_error() -> None:
    cluster = FakeCluster()
    results = [
        DescribeUserScramCredentialsResult("u", credential_infos=[CredentialInfo(2, 8192)]),
        DescribeUserScramCredentialsResult("v", 91),
    ]
    cluster.on(DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse(results=results))
    user_scram_credentials = run(ScriptedAdmin(cluster).describe_user_scram_credentials(["u", "v"]))
    assert user_scram_credentials["u"].credential_infos == (ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192),)
    assert user_scram_credentials.errors["v"].code == 91


def test_mechanisms_have_the_names_of_sasl() -> None:
    assert ScramMechanism.SCRAM_SHA_512.mechanism_name == "SCRAM-SHA-512"
    assert ScramMechanism.from_mechanism_name("SCRAM-SHA-256") is ScramMechanism.SCRAM_SHA_256
    assert ScramMechanism.from_mechanism_name("SCRAM-SHA-1") is ScramMechanism.UNKNOWN


def test_a_token_belongs_to_its_owner() -> None:
    cluster = FakeCluster()
    response = CreateDelegationTokenResponse(0, "User", "alice", "User", "bob", 1, 2, 3, "id", b"\x01\x02")
    cluster.on(CreateDelegationTokenRequest, response)
    token = run(
        ScriptedAdmin(cluster).create_delegation_token(owner=KafkaPrincipal("User", "alice"), renewers=[KafkaPrincipal("User", "carl")])
    )
    assert (str(token.token_info.owner), str(token.token_info.token_requester)) == ("User:alice", "User:bob")
    assert token.token_info.owner_or_renewer(KafkaPrincipal.parse("User:carl"))
    assert token.hmac_as_base64_string == "AQI=" and "AQI" not in repr(token)
    request = cluster.requests(CreateDelegationTokenRequest)[0]
    assert (request.owner_principal_name, request.max_lifetime_ms) == ("alice", -1)


def test_a_principal_has_a_type_and_a_name() -> None:
    with pytest.raises(IllegalArgument, match="expected a string in format principalType:principalName but got alice"):
        KafkaPrincipal.parse("alice")
