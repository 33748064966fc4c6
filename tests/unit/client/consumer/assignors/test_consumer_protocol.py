"""The bytes of subscriptions and assignments. Those that Apache Kafka writes are compared in the integration tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.assignors import Assignment, Subscription
from barnabas.client.consumer.assignors.protocol import (
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from barnabas.protocol.errors import MalformedMessage
from barnabas.topic_partition import TopicPartition

FULL = Subscription(("b", "a"), b"me", (TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)), 7, "rack")

names = st.text(st.characters(codec="utf-8"), max_size=20)
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), unique=True).map(lambda some: tuple(sorted(some)))


def test_a_subscription_as_kafka_writes_it() -> None:
    assert serialize_subscription(FULL).hex() == (
        "0003" + "00000002" + "000161" + "000162" + "00000002" + "6d65"
        "00000002" + "000161" + "00000001" + "00000002" + "000162" + "00000002" + "00000000" + "00000001" + "00000007" + "0004" + "7261636b"
    )


def test_an_assignment_as_kafka_writes_it() -> None:
    given = Assignment((TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)))
    assert serialize_assignment(given).hex() == (
        "0003" + "00000002" + "000161" + "00000002" + "00000001" + "00000000" + "000162" + "00000001" + "00000000" + "ffffffff"
    )


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        (0, Subscription(("a", "b"), b"me")),
        (1, Subscription(("a", "b"), b"me", tuple(sorted(FULL.owned_partitions)))),
        (2, Subscription(("a", "b"), b"me", tuple(sorted(FULL.owned_partitions)), 7)),
        (3, Subscription(("a", "b"), b"me", tuple(sorted(FULL.owned_partitions)), 7, "rack")),
    ],
)
def test_older_versions_carry_less(version: int, kept: Subscription) -> None:
    assert deserialize_subscription(serialize_subscription(FULL, version)) == kept


def test_a_version_from_the_future_is_read_as_the_newest() -> None:
    data = b"\x00\x09" + serialize_subscription(FULL)[2:] + b"more"
    assert deserialize_subscription(data).rack_id == "rack"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x03\x00\x00\x00\x09", b"\x00\x00\x7f\xff\xff\xff"])
def test_what_cannot_be_read_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        deserialize_subscription(data)


@given(st.lists(names), st.none() | st.binary(), partitions, st.integers(-1, 2**31 - 1), st.none() | names.filter(bool))
def test_a_subscription_is_read_as_it_was_written(
    topics: list[str], data: bytes | None, owned: tuple[TopicPartition, ...], generation: int, rack: str | None
) -> None:
    one = Subscription(tuple(sorted(topics)), data, owned, generation, rack)
    assert deserialize_subscription(serialize_subscription(one)) == one


@given(partitions, st.none() | st.binary())
def test_an_assignment_is_read_as_it_was_written(given: tuple[TopicPartition, ...], data: bytes | None) -> None:
    assert deserialize_assignment(serialize_assignment(Assignment(given, data))) == Assignment(given, data)
