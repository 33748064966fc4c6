from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.broker import Broker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions_request import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from barnabas.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
)
from tests.unit.broker.handlers.asking import a_broker, asked, id_of, topic

TOPICS = (topic("zz", 3), topic("aa", 12), topic("mm", 1))


def described(broker: Broker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsResponse:
    at = None if cursor is None else Cursor(*cursor)
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, at)
    return asked(broker, request, DescribeTopicPartitionsResponse, 0)


def told(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int, list[int]]]:
    return [
        (described_topic.name, described_topic.error_code, [partition.partition_index for partition in described_topic.partitions])
        for described_topic in response.topics
    ]


def cursor_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    return None if response.next_cursor is None else (response.next_cursor.topic_name, response.next_cursor.partition_index)


def test_a_topic_is_told_with_all_it_has() -> None:
    (internal,) = described(a_broker(topic("__consumer_offsets")), "__consumer_offsets").topics
    assert (internal.topic_id, internal.is_internal, internal.topic_authorized_operations) == (id_of("__consumer_offsets"), True, 3576)
    assert internal.partitions == [DescribeTopicPartitionsResponsePartition(0, 0, 0, 7, [0], [0], [], [], [])]


def test_a_partition_without_a_leader_is_told_by_the_id_of_none_and_not_by_an_error() -> None:
    (leaderless,) = described(a_broker(topic("t", leader=5)), "t").topics
    assert (leaderless.partitions[0].error_code, leaderless.partitions[0].leader_id) == (0, -1)


def test_topics_come_in_the_order_of_their_names_and_the_unknown_among_them() -> None:
    response = described(a_broker(*TOPICS), "zz", "mm", "nope", "b d", "mm")
    assert told(response) == [
        ("b d", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
        ("mm", 0, [0]),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("zz", 0, [0, 1, 2]),
    ]
    assert (cursor_of(response), response.topics[0].topic_authorized_operations) == (None, 3576)


def test_no_topics_means_all() -> None:
    assert [described_topic.name for described_topic in described(a_broker(*TOPICS)).topics] == ["aa", "mm", "zz"]


def test_an_answer_ends_at_the_limit_and_says_where_to_go_on() -> None:
    response = described(a_broker(*TOPICS), limit=14)
    assert told(response) == [("aa", 0, list(range(12))), ("mm", 0, [0]), ("zz", 0, [0])]
    assert cursor_of(response) == ("zz", 1)


def test_a_limit_that_ends_with_a_topic_goes_on_with_the_next_even_if_that_is_unknown() -> None:
    response = described(a_broker(*TOPICS), "mm", "nope", "zz", limit=1)
    assert (told(response), cursor_of(response)) == ([("mm", 0, [0])], ("nope", 0))


def test_a_cursor_goes_on_where_it_points() -> None:
    response = described(a_broker(*TOPICS), "zz", "aa", limit=2, cursor=("zz", 1))
    assert (told(response), cursor_of(response)) == ([("zz", 0, [1, 2])], None)


def test_a_cursor_behind_the_last_partition_finds_none() -> None:
    response = described(a_broker(*TOPICS), "zz", "aa", limit=2, cursor=("zz", 9))
    assert (told(response), cursor_of(response)) == ([("zz", 0, [])], None)


def test_a_cursor_on_a_topic_that_is_gone_goes_on_with_the_next_of_all() -> None:
    response = described(a_broker(*TOPICS), limit=2, cursor=("bb", 1))
    assert (told(response), cursor_of(response)) == ([("mm", 0, [0]), ("zz", 0, [0])], ("zz", 1))


@pytest.mark.parametrize("cursor", [("bb", 1), ("zz", -1)])
def test_a_cursor_that_is_on_none_of_the_topics_is_refused(cursor: tuple[str, int]) -> None:
    response = described(a_broker(*TOPICS), "zz", "aa", cursor=cursor)
    assert told(response) == [("zz", ErrorCode.INVALID_REQUEST, []), ("aa", ErrorCode.INVALID_REQUEST, [])]
    assert response.topics[0].topic_authorized_operations == -(2**31)


@pytest.mark.parametrize("limit", [0, -5])
def test_at_least_one_partition_is_told_whatever_the_limit(limit: int) -> None:
    response = described(a_broker(*TOPICS), "aa", limit=limit)
    assert (told(response), cursor_of(response)) == ([("aa", 0, [0])], ("aa", 1))


def test_the_broker_has_a_limit_of_its_own() -> None:
    response = described(a_broker(*TOPICS, settings={"max.request.partition.size.limit": "5"}), "aa", limit=2**31 - 1)
    assert (told(response), cursor_of(response)) == ([("aa", 0, [0, 1, 2, 3, 4])], ("aa", 5))


@given(st.integers(1, 20), st.booleans())
def test_page_by_page_every_partition_is_told_once(limit: int, all_topics: bool) -> None:
    broker, names = a_broker(*TOPICS), [] if all_topics else ["zz", "aa", "mm"]
    seen: list[tuple[str | None, int]] = []
    response = described(broker, *names, limit=limit)
    while True:
        seen += [(name, partition) for name, _, partitions in told(response) for partition in partitions]
        if response.next_cursor is None:
            break
        response = described(broker, *names, limit=limit, cursor=cursor_of(response))
    assert seen == [("aa", index) for index in range(12)] + [("mm", 0)] + [("zz", index) for index in range(3)]
