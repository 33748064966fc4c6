"""Which rules a command line of kafka-acls means."""

from __future__ import annotations

import pytest

from barnabas.administration.acl_operations import SUPPORTED
from barnabas.security.acl import AclPermissionType, PatternType, ResourceType
from barnabas.security.operations import AclOperation
from barnabas.tools import acls
from barnabas.tools.command_line.failures import BadArgument
from barnabas.tools.command_line.options import Options, ShowUsage


def rules(line: str) -> dict[tuple[str, str], set[tuple[str, str, str, str]]]:
    parsed = acls.rules(Options(acls.OPTIONS, line.split()))
    return {
        (resource.resource_type.name, resource.name or ""): {
            (entry.principal, entry.host, entry.operation.name, entry.permission_type.name) for entry in entries
        }
        for resource, entries in parsed.items()
    }


def test_without_an_operation_everything_is_meant() -> None:
    assert rules("--topic t --allow-principal User:bob") == {("TOPIC", "t"): {("User:bob", "*", "ALL", "ALLOW")}}


def test_principals_hosts_and_operations_multiply() -> None:
    parsed = rules("--group g --allow-principal User:a --allow-principal User:b --allow-host h --operation Read --operation Describe")
    assert parsed[("GROUP", "g")] == {
        ("User:a", "h", "READ", "ALLOW"),
        ("User:a", "h", "DESCRIBE", "ALLOW"),
        ("User:b", "h", "READ", "ALLOW"),
        ("User:b", "h", "DESCRIBE", "ALLOW"),
    }


def test_some_may_and_others_may_not() -> None:
    assert rules("--cluster --allow-principal User:a --deny-principal User:b --deny-host 10.0.0.1 --operation Alter") == {
        ("CLUSTER", "kafka-cluster"): {("User:a", "*", "ALTER", "ALLOW"), ("User:b", "10.0.0.1", "ALTER", "DENY")}
    }


def test_a_producer_writes_describes_and_creates() -> None:
    parsed = rules("--producer --topic t --transactional-id x --allow-principal User:a --idempotent")
    operations = {resource: {operation for _, _, operation, _ in entries} for resource, entries in parsed.items()}
    assert operations == {
        ("TOPIC", "t"): {"WRITE", "DESCRIBE", "CREATE"},
        ("TRANSACTIONAL_ID", "x"): {"WRITE", "DESCRIBE"},
        ("CLUSTER", "kafka-cluster"): {"IDEMPOTENT_WRITE"},
    }


def test_a_consumer_reads_topic_and_group() -> None:
    parsed = rules("--consumer --topic t --group g --allow-principal User:a")
    operations = {resource: {operation for _, _, operation, _ in entries} for resource, entries in parsed.items()}
    assert operations == {("TOPIC", "t"): {"READ", "DESCRIBE"}, ("GROUP", "g"): {"READ"}}


def test_who_does_both_gets_both() -> None:
    parsed = rules("--producer --consumer --topic t --group g --allow-principal User:a")
    assert {operation for _, _, operation, _ in parsed[("TOPIC", "t")]} == {"WRITE", "DESCRIBE", "CREATE", "READ"}


def test_a_resource_without_rules_means_all_of_its_rules() -> None:
    assert rules("--topic t") == {("TOPIC", "t"): set()}


@pytest.mark.parametrize(
    "line", ["--delegation-token d --operation Read", "--user-principal User:u --operation All,", "--topic t --operation x"]
)
def test_an_operation_that_the_resource_does_not_have_is_refused(line: str) -> None:
    with pytest.raises(ShowUsage, match="only supports operations"):
        rules(f"{line} --allow-principal User:a")


def test_a_resource_is_needed() -> None:
    with pytest.raises(ShowUsage, match="You must provide at least one resource"):
        rules("--allow-principal User:a")


@pytest.mark.parametrize("principal", ["bob", ":bob", "User:", ""])
def test_a_principal_has_a_type_and_a_name(principal: str) -> None:
    with pytest.raises(BadArgument, match="expected a string in format principalType:principalName"):
        acls.parse_principal(principal)


def test_the_name_of_a_principal_may_have_colons() -> None:
    assert acls.parse_principal("User:CN=a:b,O=c") == "User:CN=a:b,O=c"


def test_a_filter_is_shown_as_the_pattern_it_looks_for() -> None:
    (one,) = acls.resource_filters(Options(acls.OPTIONS, ["--topic", "t", "--resource-pattern-type", "prefixed"]))
    assert (one.resource_type, one.pattern_type) == (ResourceType.TOPIC, PatternType.PREFIXED)
    assert acls.filter_text(one) == "ResourcePattern(resourceType=TOPIC, name=t, patternType=PREFIXED)"


def test_all_operations_and_permissions_are_known() -> None:
    names = {operation.name for operation in AclOperation} - {"UNKNOWN", "ANY", "ALL"}
    assert {name for supported in SUPPORTED.values() for name in supported} == names
    assert {"ALLOW", "DENY"} <= {permission.name for permission in AclPermissionType}
