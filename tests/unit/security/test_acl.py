"""Rules and the filters that find them."""

from __future__ import annotations

import pytest

from barnabas.client.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from barnabas.security.operations import authorized_operations

ALICE = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
ORDERS = AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), ALICE)
PREFIX = AclBinding(ResourcePattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED), ALICE)
ALL_TOPICS = AclBinding(ResourcePattern(ResourceType.TOPIC, "*"), ALICE)


def names(kind: PatternType, name: str | None) -> AclBindingFilter:
    return AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, name, kind))


def test_the_filter_of_everything_matches_everything() -> None:
    assert all(map(AclBindingFilter.ANY.matches, (ORDERS, PREFIX, ALL_TOPICS)))


def test_match_finds_whatever_applies_to_a_name() -> None:
    assert [names(PatternType.MATCH, "orders").matches(rule) for rule in (ORDERS, PREFIX, ALL_TOPICS)] == [True, True, True]
    assert [names(PatternType.MATCH, "other").matches(rule) for rule in (ORDERS, PREFIX, ALL_TOPICS)] == [False, False, True]


def test_a_literal_name_finds_itself_alone() -> None:
    assert [names(PatternType.LITERAL, "orders").matches(rule) for rule in (ORDERS, PREFIX, ALL_TOPICS)] == [True, False, False]


def test_any_pattern_still_compares_names() -> None:
    assert [names(PatternType.ANY, "ord").matches(rule) for rule in (ORDERS, PREFIX)] == [False, True]


def test_entries_are_compared_part_by_part() -> None:
    assert AccessControlEntryFilter("User:alice").matches(ALICE)
    assert not AccessControlEntryFilter("User:bob").matches(ALICE)
    assert not AccessControlEntryFilter(permission_type=AclPermissionType.DENY).matches(ALICE)


def test_a_rules_own_filter_finds_at_most_one() -> None:
    assert ORDERS.to_filter().matches_at_most_one
    assert ORDERS.to_filter().matches(ORDERS)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (AclBindingFilter(), "Resource type is ANY."),
        (names(PatternType.LITERAL, None), "Resource name is NULL."),
        (names(PatternType.MATCH, "x"), "Resource pattern type is MATCH."),
        (names(PatternType.LITERAL, "x"), "Principal is NULL"),
    ],
)
def test_an_indefinite_filter_says_why(rules: AclBindingFilter, why: str) -> None:
    assert rules.indefinite_field() == why


def test_what_a_newer_broker_knows_is_unknown_here() -> None:
    assert AclOperation.from_code(99) is AclOperation.UNKNOWN
    assert ResourceType.from_code(99) is ResourceType.UNKNOWN
    assert AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN)).is_unknown


@pytest.mark.parametrize("text", ["DescribeConfigs", "DESCRIBE_CONFIGS", "describeconfigs"])
def test_operations_are_read_as_tools_and_as_java_write_them(text: str) -> None:
    assert AclOperation.from_string(text) is AclOperation.DESCRIBE_CONFIGS
    assert AclOperation.DESCRIBE_CONFIGS.title == "DescribeConfigs"


def test_operations_come_as_bits_and_none_where_nobody_asked() -> None:
    assert authorized_operations(1 << 3 | 1 << 8) == frozenset({AclOperation.READ, AclOperation.DESCRIBE})
    assert authorized_operations(0) == frozenset()
    assert authorized_operations(-(2**31)) is None
