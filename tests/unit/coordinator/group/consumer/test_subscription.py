"""Topics by name and by expression, and the hash by which a group notices that they changed. Figures are the Java libraries' own."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.consumer.metadata_hash import MetadataHashes, topic_hash
from barnabas.coordinator.group.consumer.subscription import SubscribedTopics, SubscriptionCount, is_homogeneous, validate_regex
from barnabas.coordinator.group.consumer.xxh3 import xxh3_64
from barnabas.errors import InvalidRegularExpression
from tests.unit.coordinator.consumer_world import Topics


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("(a", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("\\", "trailing backslash at end of expression"),
        ("a{1001}", "invalid repeat count"),
        ("[b-a]", "invalid character class range"),
        ("\\8", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
    ],
)
def test_a_wrong_expression_is_refused_in_the_words_of_kafkas_library(regex: str, reason: str) -> None:
    with pytest.raises(InvalidRegularExpression) as caught:
        validate_regex(regex)
    assert str(caught.value) == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."


@pytest.mark.parametrize(
    "regex",
    [
        "(a?){1000}" * 20,  # 80,000 instructions: 2 s for one name
        "(a?){1000}",
        "\\pL" * 1_000,  # 0.6 s to parse, before RE2 counts anything
        "a|" * 3_000,
        "(?:.*a.{9}){30}",
    ],
)
def test_an_expression_that_would_take_long_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegularExpression) as caught:
        validate_regex(regex)
    assert str(caught.value) == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: expression is too large."


@pytest.mark.parametrize(
    "regex",
    [
        "orders-.*",
        "[a-z]{1,40}-v[0-9]+",
        "|".join(f"topic-{number}-of-many" for number in range(150)),
        "(?i)\\pL+\\.(dlq|retry)",
        "(?P<n>a)+",
    ],
)
def test_an_expression_as_people_write_them_is_served(regex: str) -> None:
    validate_regex(regex)


def test_a_topic_nobody_wants_any_more_is_gone() -> None:
    topics = SubscribedTopics()
    topics.add_names(["a"])
    topics.add_matches(["a"])
    topics.remove_names(["a"])
    assert topics == {"a": SubscriptionCount(0, 1)}
    topics.remove_matches(["a"])
    assert topics == {}


@pytest.mark.parametrize(
    ("regexes", "counts", "members", "same"),
    [
        ({}, {}, 2, True),
        ({}, {"a": (2, 0)}, 2, True),
        ({}, {"a": (1, 0)}, 2, False),
        ({"x": 2}, {"a": (0, 1)}, 2, True),
        ({"x": 2}, {"a": (1, 1)}, 2, False),
        ({"x": 1}, {"a": (0, 1)}, 2, False),
    ],
)
def test_members_want_the_same_when_the_counts_say_so(
    regexes: dict[str, int], counts: dict[str, tuple[int, int]], members: int, same: bool
) -> None:
    topics = SubscribedTopics({name: SubscriptionCount(*count) for name, count in counts.items()})
    assert is_homogeneous(regexes, topics, members) is same


def test_the_hash_of_a_topic_and_of_a_group_is_kafkas() -> None:
    topics = Topics(foo=3)
    assert topic_hash("foo", topics) == -2222617492149574800
    assert MetadataHashes(topics).group_hash(["foo", "missing"]) == 7317493184415212186


def test_racks_are_part_of_the_hash() -> None:
    topics = Topics(foo=3)
    topics.racks["foo"] = ["rack-2", "r1"]
    assert MetadataHashes(topics).group_hash(["foo"]) == -3443499741988676765


def test_a_group_without_topics_has_the_hash_zero() -> None:
    assert MetadataHashes(Topics()).group_hash(["missing"]) == 0


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xC44BDFF4074EECDB),
        (3, 0xC3489259E968AD9E),
        (4, 0xD3D60C1519014E89),
        (8, 0xB88DEE77F6BF6980),
        (9, 0x03688DCAD730D826),
        (16, 0x9DA23836ADF2BE1E),
        (17, 0xF34C3C9CF5A112D1),
        (128, 0x65F3C2C00FA93185),
        (129, 0x28065C6EC25F5B25),
        (240, 0x4917A75C0EF8EED7),
        (241, 0x541B19226F0052E8),
        (1024, 0xDC5ACF0B043C445B),
        (1025, 0xE1D9CD946277AE26),
        (5000, 0x6ABE8BE5ABCB2760),
    ],
)
def test_xxh3_is_that_of_its_author(size: int, expected: int) -> None:
    assert xxh3_64(bytes(index * 7 % 256 for index in range(size))) == expected
