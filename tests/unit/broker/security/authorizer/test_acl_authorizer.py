"""Kafka's rules of authorization, and the ACLs in the metadata store."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import Delete, GetChildren
from barnabas.security.acl import (
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from barnabas.security.operations import AclOperation
from tests.unit.broker.security.authorizer.acls import DENY, GROUP, PREFIXED, TOPIC, Authorized, acl, configured, session

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL


@pytest.fixture
def broker() -> Iterator[Authorized]:
    with Authorized() as authorized:
        yield authorized


def test_without_an_acl_everything_is_denied(broker: Authorized) -> None:
    assert not broker.allows(READ, "orders")


def test_an_acl_allows_its_principal_its_operation_on_its_resource_and_nothing_else(broker: Authorized) -> None:
    broker.add(acl("orders", READ))
    assert broker.allows(READ, "orders")
    assert not broker.allows(WRITE, "orders")
    assert not broker.allows(READ, "orders2")
    assert not broker.allows(READ, "orders", principal="User:bob")
    assert not broker.allows(READ, "orders", principal="Group:alice")
    assert not broker.allows(READ, "orders", resource_type=GROUP)


def test_a_prefixed_acl_matches_names_that_begin_with_it(broker: Authorized) -> None:
    broker.add(acl("ord", READ, pattern_type=PREFIXED))
    assert broker.allows(READ, "orders")
    assert broker.allows(READ, "ord")
    assert not broker.allows(READ, "or")
    assert not broker.allows(READ, "my-orders")


def test_the_literal_star_matches_every_name_and_the_prefix_star_only_names_with_a_star(broker: Authorized) -> None:
    broker.add(acl("*", READ), acl("*", WRITE, pattern_type=PREFIXED))
    assert broker.allows(READ, "orders")
    assert not broker.allows(WRITE, "orders")
    assert broker.allows(WRITE, "*orders")


def test_a_denial_prevails_over_permissions_of_any_pattern(broker: Authorized) -> None:
    broker.add(acl("orders", ALL), acl("ord", ALL, pattern_type=PREFIXED), acl("*", ALL), acl("o", READ, DENY, pattern_type=PREFIXED))
    assert not broker.allows(READ, "orders")
    assert broker.allows(WRITE, "orders")


def test_an_acl_of_user_star_is_about_every_user(broker: Authorized) -> None:
    broker.add(acl("orders", READ, principal="User:*"), acl("orders", READ, DENY, principal="User:mallory"))
    assert broker.allows(READ, "orders", principal="User:bob")
    assert not broker.allows(READ, "orders", principal="User:mallory")


def test_an_acl_of_a_host_is_about_clients_on_that_host(broker: Authorized) -> None:
    broker.add(acl("orders", READ, host="10.0.0.1"), acl("orders", WRITE), acl("orders", WRITE, DENY, host="10.0.0.2"))
    assert broker.allows(READ, "orders", host="10.0.0.1")
    assert not broker.allows(READ, "orders", host="10.0.0.3")
    assert broker.allows(WRITE, "orders", host="10.0.0.1")
    assert not broker.allows(WRITE, "orders", host="10.0.0.2")


def test_the_host_of_an_ipv4_client_is_its_own_on_a_listener_for_both(broker: Authorized) -> None:
    broker.add(acl("orders", READ), acl("orders", READ, DENY, host="10.0.0.2"), acl("orders", WRITE, host="0:0:0:0:0:0:0:1"))
    assert broker.allows(READ, "orders", host="::ffff:10.0.0.1")
    assert not broker.allows(READ, "orders", host="::ffff:10.0.0.2")
    assert broker.allows(WRITE, "orders", host="::1")


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_who_may_read_write_delete_or_alter_may_describe(broker: Authorized, operation: AclOperation) -> None:
    broker.add(acl("orders", operation))
    assert broker.allows(DESCRIBE, "orders")
    assert not broker.allows(AclOperation.DESCRIBE_CONFIGS, "orders")


def test_who_may_alter_configs_may_describe_them(broker: Authorized) -> None:
    broker.add(acl("orders", AclOperation.ALTER_CONFIGS))
    assert broker.allows(AclOperation.DESCRIBE_CONFIGS, "orders")
    assert not broker.allows(DESCRIBE, "orders")


def test_who_may_not_read_may_still_describe(broker: Authorized) -> None:
    broker.add(acl("orders", DESCRIBE), acl("orders", READ, DENY))
    assert broker.allows(DESCRIBE, "orders")


def test_super_users_may_do_everything_even_what_is_denied() -> None:
    with Authorized({"super.users": "User:admin; User:CN=broker,O=example"}) as broker:
        broker.add(acl("*", ALL, DENY, principal="User:*"))
        assert broker.allows(READ, "orders", principal="User:admin")
        assert broker.allows(READ, "orders", principal="User:CN=broker,O=example")
        assert not broker.allows(READ, "orders")
        assert broker.authorizer.authorize_by_resource_type(session("User:admin"), WRITE, TOPIC)


def test_everyone_may_use_a_resource_without_acls_if_the_setting_says_so() -> None:
    with Authorized({"allow.everyone.if.no.acl.found": "true"}) as broker:
        assert broker.allows(READ, "orders")
        broker.add(acl("orders", READ, principal="User:bob"))
        assert not broker.allows(READ, "orders")
        assert broker.allows(READ, "payments")
        broker.add(acl("pay", READ, principal="User:bob", pattern_type=PREFIXED))
        assert not broker.allows(READ, "payments")


@pytest.mark.parametrize(
    ("name", "text"), [("super.users", "alice"), ("super.users", "User:a,b;:c"), ("allow.everyone.if.no.acl.found", "yes")]
)
def test_a_wrong_setting_stops_the_start_and_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name.replace(".", r"\.")):
        configured({name: text}, TreeClient(LocalTree(lambda: 0), lambda: None), lambda: 0)


def any_allowed(broker: Authorized, operation: AclOperation = WRITE) -> bool:
    return broker.authorizer.authorize_by_resource_type(session(), operation, TOPIC)


def test_any_resource_is_allowed_if_one_is(broker: Authorized) -> None:
    assert not any_allowed(broker)
    broker.add(acl("orders", READ))
    assert not any_allowed(broker)
    broker.add(acl("orders", WRITE))
    assert any_allowed(broker)


def test_the_answer_about_any_resource_follows_the_acls(broker: Authorized) -> None:
    broker.add(acl("orders", WRITE))
    assert any_allowed(broker)
    broker.add(acl("*", WRITE, DENY))
    assert not any_allowed(broker)
    broker.run(broker.authorizer.delete_acls(session(), [acl("*", WRITE, DENY).to_filter()]))
    assert any_allowed(broker)


def test_implied_operations_do_not_count_for_any_resource_as_in_kafka(broker: Authorized) -> None:
    broker.add(acl("orders", READ))
    assert not any_allowed(broker, DESCRIBE)


@pytest.mark.parametrize(
    ("allowed", "denied", "expected"),
    [
        (acl("orders", WRITE), acl("orders", WRITE, DENY), False),
        (acl("orders", WRITE), acl("orders", WRITE, DENY, host="10.9.9.9"), True),
        (acl("orders", WRITE), acl("ord", WRITE, DENY, pattern_type=PREFIXED), False),
        (acl("orders", WRITE), acl("orders-eu", WRITE, DENY, pattern_type=PREFIXED), True),
        (acl("ord", WRITE, pattern_type=PREFIXED), acl("or", ALL, DENY, pattern_type=PREFIXED), False),
        (acl("ord", WRITE, pattern_type=PREFIXED), acl("ord", ALL, DENY, pattern_type=PREFIXED), False),
        (acl("ord", WRITE, pattern_type=PREFIXED), acl("ord", ALL, DENY), True),
        (acl("ord", WRITE, pattern_type=PREFIXED), acl("orders", ALL, DENY, pattern_type=PREFIXED), True),
        (acl("*", WRITE), acl("orders", ALL, DENY), True),
        (acl("*", WRITE), acl("*", ALL, DENY, principal="User:*"), False),
        (acl("orders", WRITE), acl("*", WRITE, DENY), False),
        (acl("orders", WRITE), acl("*", READ, DENY), True),
    ],
)
def test_a_denial_that_dominates_an_allowed_pattern_takes_it_away(
    broker: Authorized, allowed: AclBinding, denied: AclBinding, expected: bool
) -> None:
    broker.add(allowed, denied)
    assert any_allowed(broker) is expected


def test_acls_are_in_kafkas_znodes_and_each_change_is_notified(broker: Authorized) -> None:
    broker.add(acl("orders", READ), acl("orders", WRITE, DENY, host="10.0.0.1"), acl("ord", ALL, pattern_type=PREFIXED))
    data = broker.data("/kafka-acl/Topic/orders")
    assert data is not None
    assert json.loads(data) == {
        "version": 1,
        "acls": [
            {"principal": "User:alice", "permissionType": "Allow", "host": "*", "operation": "Read"},
            {"principal": "User:alice", "permissionType": "Deny", "host": "10.0.0.1", "operation": "Write"},
        ],
    }
    assert broker.data("/kafka-acl-extended/prefixed/Topic/ord") is not None
    assert broker.data("/kafka-acl-changes/acl_changes_0000000000") == b"TOPIC:orders"
    change = broker.data("/kafka-acl-extended-changes/acl_changes_0000000000")
    assert change is not None
    assert json.loads(change) == {"version": 1, "resourceType": "TOPIC", "name": "ord", "patternType": "PREFIXED"}


def test_an_acl_that_exists_changes_nothing_and_notifies_nobody(broker: Authorized) -> None:
    broker.add(acl("orders", READ))
    broker.add(acl("orders", READ))
    assert broker.data("/kafka-acl-changes/acl_changes_0000000001") is None


def test_acls_in_the_store_are_obeyed_from_the_start(broker: Authorized) -> None:
    broker.add(acl("orders", READ), acl("ord", WRITE, pattern_type=PREFIXED))
    with Authorized(tree=broker.tree) as second:
        assert second.allows(READ, "orders")
        assert second.allows(WRITE, "orders")


def test_the_change_of_one_broker_is_obeyed_by_the_others(broker: Authorized) -> None:
    with Authorized(tree=broker.tree) as second:
        second.allows(READ, "orders")  # cached
        broker.add(acl("orders", READ), acl("ord", WRITE, pattern_type=PREFIXED))
        second.settle()
        assert second.allows(READ, "orders")
        assert second.allows(WRITE, "orders")
        broker.run(broker.authorizer.delete_acls(session(), [AclBindingFilter()]))
        second.settle()
        assert not second.allows(READ, "orders")


def test_two_brokers_that_change_one_resource_lose_neither_change(broker: Authorized) -> None:
    with Authorized(tree=broker.tree) as second:
        broker.add(acl("orders", READ))
        second.add(acl("orders", WRITE))  # second has not processed the notification yet
        assert second.allows(READ, "orders")
        broker.settle()
        assert broker.allows(WRITE, "orders")


def test_deleted_acls_are_not_obeyed_and_a_resource_without_acls_has_no_znode(broker: Authorized) -> None:
    broker.add(acl("orders", READ), acl("orders", WRITE))
    (deletion,) = broker.run(broker.authorizer.delete_acls(session(), [acl("orders", READ).to_filter()]))
    assert deletion.deleted == [(acl("orders", READ), None)]
    assert not broker.allows(READ, "orders")
    assert broker.allows(WRITE, "orders")
    broker.run(broker.authorizer.delete_acls(session(), [acl("orders", WRITE).to_filter()]))
    assert broker.data("/kafka-acl/Topic/orders") is None


def test_a_deletion_that_cannot_read_the_store_fails_instead_of_finding_nothing(broker: Authorized) -> None:
    broker.add(acl("orders", READ))
    broker.run(broker.client._session.close())  # type: ignore[union-attr]
    results = broker.run(broker.authorizer.delete_acls(session(), [acl("orders", READ).to_filter(), AclBindingFilter()]))
    assert [(list(result.deleted), type(result.error)) for result in results] == [([], KafkaError), ([], KafkaError)]
    assert broker.allows(READ, "orders")


def test_each_filter_of_a_deletion_lists_all_that_it_matched(broker: Authorized) -> None:
    broker.add(acl("orders", READ), acl("ord", READ, pattern_type=PREFIXED), acl("payments", READ))
    filters = [
        AclBindingFilter(ResourcePatternFilter(TOPIC, "orders", PatternType.MATCH)),
        AclBindingFilter(entry_filter=AccessControlEntryFilter(operation=READ)),
        AclBindingFilter(ResourcePatternFilter(TOPIC, "nothing", PatternType.LITERAL)),
    ]
    results = broker.run(broker.authorizer.delete_acls(session(), filters))
    assert [{binding.pattern.name for binding, _ in result.deleted} for result in results] == [
        {"orders", "ord"},
        {"orders", "ord", "payments"},
        set(),
    ]
    assert list(broker.authorizer.acls(AclBindingFilter())) == []


def test_a_filter_with_an_unknown_field_is_refused_and_deletes_nothing(broker: Authorized) -> None:
    broker.add(acl("orders", READ))
    filters = [
        AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN)),
        AclBindingFilter(entry_filter=AccessControlEntryFilter(permission_type=AclPermissionType.UNKNOWN)),
    ]
    results = broker.run(broker.authorizer.delete_acls(session(), filters))
    assert [str(result.error) for result in results] == ["Unknown patternFilter.", "Unknown entryFilter."]
    assert broker.allows(READ, "orders")


@pytest.mark.parametrize(
    ("binding", "text"),
    [
        (acl("orders", AclOperation.UNKNOWN), "Invalid operation UNKNOWN"),
        (acl("orders", AclOperation.ANY), "Invalid operation ANY"),
        (acl("orders", READ, AclPermissionType.ANY), "Invalid permissionType ANY"),
        (acl("orders", resource_type=ResourceType.ANY), "Invalid resourceType ANY"),
        (acl("orders", pattern_type=PatternType.MATCH), "Invalid patternType MATCH"),
        (acl(""), "Resource name should not be empty"),
        (acl("a/b", resource_type=GROUP), "ACL binding contains invalid resource name: a/b"),
        (acl("..", resource_type=GROUP), "ACL binding contains invalid resource name: .."),
        (acl("orders", principal="alice"), "Could not parse principal from `alice`"),
    ],
)
def test_an_acl_that_cannot_be_is_refused_and_the_others_are_made(broker: Authorized, binding: AclBinding, text: str) -> None:
    error, other = broker.run(broker.authorizer.create_acls(session(), [binding, acl("payments", READ)]))
    assert isinstance(error, InvalidRequest)
    assert str(error).startswith(text)
    assert other is None
    assert broker.allows(READ, "payments")


DAMAGED = [
    b"{",
    b"[]",
    b'{"version":2,"acls":[]}',
    b'{"version":1}',
    b'{"version":1,"acls":[{"principal":"User:alice"}]}',
    b'{"version":1,"acls":[{"principal":"alice","permissionType":"Allow","host":"*","operation":"Read"}]}',
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Fly"}]}',
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Perhaps","host":"*","operation":"Read"}]}',
]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_znode_denies_its_resource_to_all_but_super_users(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with Authorized() as first:
        first.add(acl("*", ALL), acl("orders", READ))
        first.run(first.client.set_data("/kafka-acl/Topic/orders", data))
        with Authorized({"super.users": "User:admin", "allow.everyone.if.no.acl.found": "true"}, first.tree) as broker:
            assert not broker.allows(READ, "orders")
            assert broker.allows(READ, "payments")
            assert broker.allows(READ, "orders", principal="User:admin")
            (line,) = [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()]
            assert line.startswith("The znode /kafka-acl/Topic/orders is damaged or from a newer version")
            assert line.endswith("Correct the znode, or remove the ACL of User:* with kafka-acls --remove")
            remedy = acl("orders", ALL, DENY, principal="User:*")
            (deletion,) = broker.run(broker.authorizer.delete_acls(session(), [remedy.to_filter()]))
            assert deletion.deleted == [(remedy, None)]
            assert broker.allows(READ, "orders")


def test_a_resource_type_of_the_future_is_ignored_with_a_line(broker: Authorized, caplog: pytest.LogCaptureFixture) -> None:
    broker.run(broker.client.create_recursive("/kafka-acl/Planet/earth", b"{}"))
    broker.run(broker.client.create("/kafka-acl-changes/acl_changes_0000000007", b"PLANET:earth"))
    broker.settle()
    with Authorized(tree=broker.tree):
        assert "Ignoring unknown ResourceType: Planet in /kafka-acl" in caplog.text


def test_after_a_lost_session_all_acls_are_read_again(broker: Authorized) -> None:
    with Authorized(tree=broker.tree) as second:
        second.add(acl("payments", READ))
        second.run(second.client._session.close())  # type: ignore[union-attr]
        broker.settle()
        broker.add(acl("orders", READ))
        broker.run(broker.authorizer.delete_acls(session(), [acl("payments", READ).to_filter()]))
        (changes,) = broker.run(broker.client.handle([GetChildren("/kafka-acl-changes")]))
        broker.run(broker.client.handle([Delete(f"/kafka-acl-changes/{name}") for name in changes.value.names]))
        second.run(second.client.reinitialize())
        assert second.allows(READ, "orders")
        assert not second.allows(READ, "payments")
