"""CreateAcls, DescribeAcls and DeleteAcls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.security.access import Access
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from barnabas.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls_request import DescribeAclsRequest
from barnabas.protocol.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from tests.unit.broker.handlers.asking import Closed, a_broker, ask, asked
from tests.unit.broker.security.authorizer.acls import Authorized, acl

TOPIC, CLUSTER = int(ResourceType.TOPIC), int(ResourceType.CLUSTER)
ANY_TYPE, ANY_PATTERN = int(ResourceType.ANY), int(PatternType.ANY)
LITERAL, PREFIXED = int(PatternType.LITERAL), int(PatternType.PREFIXED)
READ, ANY = int(AclOperation.READ), int(AclOperation.ANY)
ALLOW = int(AclPermissionType.ALLOW)
ANONYMOUS = "User:ANONYMOUS"
VERSIONS = range(4)


@pytest.fixture
def secured() -> Iterator[Authorized]:
    """An authorizer to which the clients of these tests are super users."""
    with Authorized({"super.users": ANONYMOUS}) as authorized:
        yield authorized


def broker_of(authorized: Authorized) -> Broker:
    return a_broker(access=Access(authorized.authorizer))


def creation(name: str, pattern_type: int = LITERAL, operation: int = READ, resource_type: int = TOPIC) -> AclCreation:
    return AclCreation(resource_type, name, pattern_type, "User:alice", "*", operation, ALLOW)


def create(authorized: Authorized, *creations: AclCreation, version: int = 3) -> list[AclCreationResult]:
    return authorized.run(ask(broker_of(authorized), CreateAclsRequest(list(creations)), CreateAclsResponse, version)).results  # type: ignore[no-any-return]


def describe(authorized: Authorized, request: DescribeAclsRequest, version: int = 3) -> DescribeAclsResponse:
    return authorized.run(ask(broker_of(authorized), request, DescribeAclsResponse, version))  # type: ignore[no-any-return]


def delete(authorized: Authorized, *filters: DeleteAclsFilter, version: int = 3) -> list[DeleteAclsFilterResult]:
    return authorized.run(ask(broker_of(authorized), DeleteAclsRequest(list(filters)), DeleteAclsResponse, version)).filter_results  # type: ignore[no-any-return]


def everything(pattern_type: int = ANY_PATTERN) -> DescribeAclsRequest:
    return DescribeAclsRequest(ANY_TYPE, None, pattern_type, None, None, ANY, int(AclPermissionType.ANY))


@pytest.mark.parametrize("version", VERSIONS)
def test_acls_are_made_listed_and_deleted(secured: Authorized, version: int) -> None:
    assert create(secured, creation("orders"), creation("payments"), version=version) == [AclCreationResult()] * 2
    assert secured.allows(AclOperation.READ, "orders")
    pattern_type = LITERAL if version == 0 else ANY_PATTERN
    assert describe(secured, everything(pattern_type), version) == DescribeAclsResponse(
        resources=[
            DescribeAclsResource(TOPIC, name, LITERAL, [AclDescription("User:alice", "*", READ, ALLOW)]) for name in ("orders", "payments")
        ],
    )
    (result,) = delete(secured, DeleteAclsFilter(TOPIC, "orders", pattern_type, None, None, ANY, 1), version=version)
    assert result == DeleteAclsFilterResult(
        0, None, [DeleteAclsMatchingAcl(0, None, TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW)]
    )
    assert not secured.allows(AclOperation.READ, "orders")


def test_version_0_knows_literal_patterns_only(secured: Authorized) -> None:
    secured.add(acl("ord", pattern_type=PatternType.PREFIXED), acl("orders"))
    assert [resource.resource_name for resource in describe(secured, everything(LITERAL), 0).resources] == ["orders"]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_authorizer_security_is_disabled(version: int) -> None:
    broker, code = a_broker(access=Access(None)), int(ErrorCode.SECURITY_DISABLED)
    created = asked(broker, CreateAclsRequest([creation("a"), creation("b")]), CreateAclsResponse, version)
    assert created.results == [AclCreationResult(code, "No Authorizer is configured.")] * 2
    described = asked(broker, everything(LITERAL), DescribeAclsResponse, version)
    assert (described.error_code, described.error_message) == (code, "No Authorizer is configured on the broker")
    deleted = asked(broker, DeleteAclsRequest([DeleteAclsFilter(TOPIC, "a", LITERAL, None, None, 1, 1)]), DeleteAclsResponse, version)
    assert deleted.filter_results == [DeleteAclsFilterResult(code, "No Authorizer is configured.", [])]


def test_who_may_not_alter_or_describe_the_cluster_is_refused() -> None:
    code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with Authorized() as authorized:
        assert [result.error_code for result in create(authorized, creation("a"), creation("b"))] == [code, code]
        assert describe(authorized, everything()).error_code == code
        assert [result.error_code for result in delete(authorized, DeleteAclsFilter(TOPIC, "a", LITERAL, None, None, 1, 1))] == [code]
        allow = {"principal": ANONYMOUS, "resource_type": ResourceType.CLUSTER}
        authorized.add(acl("kafka-cluster", AclOperation.ALTER, **allow))  # type: ignore[arg-type]
        assert [result.error_code for result in create(authorized, creation("a"))] == [0]
        assert describe(authorized, everything()).error_code == 0  # ALTER implies DESCRIBE
        assert [result.error_code for result in delete(authorized, DeleteAclsFilter(TOPIC, "a", LITERAL, None, None, 1, 1))] == [0]


def test_each_acl_has_its_own_error_in_kafkas_words(secured: Authorized) -> None:
    results = create(
        secured,
        creation("a"),
        creation(""),
        creation("other", resource_type=CLUSTER),
        creation("kafka-cluster", resource_type=CLUSTER),
        creation("b", operation=99),
        AclCreation(TOPIC, "b", LITERAL, "User:alice", "*", READ, 99),
        creation("b", pattern_type=99),
        creation("b", resource_type=99),
        AclCreation(TOPIC, "b", LITERAL, "alice", "*", READ, ALLOW),
        creation("b"),
    )
    assert [result.error_message for result in results] == [
        "",
        "Invalid empty resource name",
        "The only valid name for the CLUSTER resource is kafka-cluster",
        "",
        "Invalid operation UNKNOWN",
        "Invalid permissionType UNKNOWN",
        "Invalid patternType UNKNOWN",
        "Invalid resourceType UNKNOWN",
        "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)",
        "",
    ]
    assert {result.error_code for result in results if result.error_message} == {int(ErrorCode.INVALID_REQUEST)}
    assert secured.allows(AclOperation.READ, "b")


@pytest.mark.parametrize(
    "wrong",
    [
        creation("b", operation=ANY),
        creation("b", pattern_type=ANY_PATTERN),
        creation("b", pattern_type=int(PatternType.MATCH)),
        creation("b", resource_type=ANY_TYPE),
        AclCreation(TOPIC, "b", LITERAL, "User:alice", "*", READ, int(AclPermissionType.ANY)),
    ],
)
def test_a_code_for_filters_fails_all_acls_of_the_request_as_in_kafka(secured: Authorized, wrong: AclCreation) -> None:
    assert create(secured, creation("a"), wrong) == [AclCreationResult(int(ErrorCode.UNKNOWN_SERVER_ERROR), None)] * 2
    assert not secured.allows(AclOperation.READ, "a")


def test_a_principal_may_have_an_empty_type_or_name(secured: Authorized) -> None:
    odd = [AclCreation(TOPIC, "a", LITERAL, principal, "*", READ, ALLOW) for principal in (":x", "User:", ":")]
    assert create(secured, *odd) == [AclCreationResult()] * 3
    with Authorized({"super.users": ANONYMOUS}, secured.tree) as second:
        (resource,) = describe(second, everything()).resources
        assert [entry.principal for entry in resource.acls] == [":x", "User:", ":"]


def test_a_code_0_closes_the_connection_and_changes_nothing(secured: Authorized) -> None:
    secured.add(acl("orders"))
    with pytest.raises(Closed):
        create(secured, creation("a"), creation("b", operation=0))
    with pytest.raises(Closed):
        describe(secured, DescribeAclsRequest(TOPIC, None, 0, None, None, ANY, 1))
    with pytest.raises(Closed):
        delete(secured, DeleteAclsFilter(TOPIC, "orders", LITERAL, None, None, ANY, 1), DeleteAclsFilter(TOPIC, "a", 0, None, None, 1, 1))
    assert secured.allows(AclOperation.READ, "orders")
    assert not secured.allows(AclOperation.READ, "a")


@pytest.mark.parametrize(
    ("request_filter", "expected"),
    [
        (everything(), {"orders", "ord", "*", "payments"}),
        (DescribeAclsRequest(TOPIC, "orders", int(PatternType.MATCH), None, None, ANY, 1), {"orders", "ord", "*"}),
        (DescribeAclsRequest(TOPIC, "ord", PREFIXED, None, None, ANY, 1), {"ord"}),
        (DescribeAclsRequest(TOPIC, "ord", ANY_PATTERN, None, None, ANY, 1), {"ord"}),
        (DescribeAclsRequest(TOPIC, None, ANY_PATTERN, "User:bob", None, ANY, 1), {"payments"}),
        (DescribeAclsRequest(TOPIC, None, ANY_PATTERN, None, "10.0.0.9", ANY, 1), set()),
        (DescribeAclsRequest(int(ResourceType.GROUP), None, ANY_PATTERN, None, None, ANY, 1), set()),
    ],
)
def test_a_filter_matches_by_each_of_its_fields(secured: Authorized, request_filter: DescribeAclsRequest, expected: set[str]) -> None:
    secured.add(acl("orders"), acl("ord", pattern_type=PatternType.PREFIXED), acl("*"), acl("payments", principal="User:bob"))
    assert {resource.resource_name for resource in describe(secured, request_filter).resources} == expected


def test_long_requests_are_handled_in_slices(secured: Authorized) -> None:
    many = 1_010
    broker = broker_of(secured)
    results = secured.run(ask(broker, CreateAclsRequest([creation(f"t{number}") for number in range(many)]), CreateAclsResponse, 3)).results
    assert len(results) == many
    assert broker.turns.taken >= 10
    taken = broker.turns.taken
    assert len(secured.run(ask(broker, everything(), DescribeAclsResponse, 3)).resources) == many
    assert broker.turns.taken >= taken + 10
    filters = [DeleteAclsFilter(TOPIC, f"t{number}", LITERAL, None, None, ANY, 1) for number in range(many)]
    deleted = secured.run(ask(broker, DeleteAclsRequest(filters), DeleteAclsResponse, 3)).filter_results
    assert [len(result.matching_acls) for result in deleted] == [1] * many
    assert not secured.allows(AclOperation.READ, "t0")
