"""What a poll hands out, and the small values around it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from barnabas.client.consumer.membership.membership import REMAIN_IN_GROUP
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.options import (
    CloseOptions,
    GroupMembershipOperation,
    close_options,
    milliseconds,
    partitions_of,
    rows_max,
    topics_of,
)
from barnabas.client.consumer.record import ConsumerRecord, ConsumerRecords, TimestampType
from barnabas.client.errors import IllegalArgument
from barnabas.topic_partition import TopicPartition

P0, P1, Q0 = TopicPartition("p", 0), TopicPartition("p", 1), TopicPartition("q", 0)


def record(partition: TopicPartition, offset: int) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord(partition.topic, partition.partition, offset, 1, TimestampType.CREATE_TIME, 1, 2, b"k", b"vv", (("h", b"x"),), 3)


RECORDS: ConsumerRecords[Any, Any] = ConsumerRecords(
    {P0: [record(P0, 1), record(P0, 2)], P1: [record(P1, 7)], Q0: [record(Q0, 0)]}, {P0: OffsetAndMetadata(3)}
)


def test_records_are_found_by_partition_and_by_topic() -> None:
    assert [record.offset for record in RECORDS.records(P0)] == [1, 2]
    assert [record.offset for record in RECORDS.records("p")] == [1, 2, 7]
    assert RECORDS.records(TopicPartition("none", 0)) == []
    assert RECORDS.partitions() == {P0, P1, Q0}


def test_records_are_counted_and_gone_through() -> None:
    assert RECORDS.count() == len(RECORDS) == 4
    assert [record.topic_partition for record in RECORDS] == [P0, P0, P1, Q0]
    assert RECORDS
    assert not RECORDS.is_empty()


def test_there_may_be_none() -> None:
    empty: ConsumerRecords[Any, Any] = ConsumerRecords.empty()
    assert empty.is_empty()
    assert not empty
    assert list(empty) == []
    assert empty.next_offsets() == {}


def test_what_is_told_of_records_can_be_changed_without_harm() -> None:
    RECORDS.next_offsets().clear()
    RECORDS.records(P0).clear()
    assert RECORDS.next_offsets() == {P0: OffsetAndMetadata(3)}
    assert len(RECORDS.records(P0)) == 2


def test_a_record_shows_itself_as_kafkas_does() -> None:
    assert repr(record(P0, 5)) == (
        "ConsumerRecord(topic = p, partition = 0, leaderEpoch = 3, offset = 5, CreateTime = 1, deliveryCount = None, "
        "serialized key size = 1, serialized value size = 2, headers = [('h', b'x')], key = b'k', value = b'vv')"
    )


@pytest.mark.parametrize(("given", "expected"), [(0, 0), (1, 1000), (0.25, 250), (0.0001, 1), (timedelta(seconds=2), 2000)])
def test_times_are_seconds(given: float, expected: int) -> None:
    assert milliseconds(given) == expected


def test_a_negative_time_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="Timeout must not be negative"):
        milliseconds(-1)


def test_closing_takes_thirty_seconds_at_most_unless_told() -> None:
    assert close_options(None) == CloseOptions(30, GroupMembershipOperation.DEFAULT)
    assert close_options(5).timeout == 5
    remaining = CloseOptions(operation=GroupMembershipOperation.REMAIN_IN_GROUP)
    assert close_options(remaining).operation.value == REMAIN_IN_GROUP


def test_partitions_may_be_one_or_several_but_not_null() -> None:
    assert partitions_of(P0) == [P0]
    assert partitions_of({P0}) == [P0]
    assert partitions_of([("p", 1)]) == [P1]  # type: ignore[list-item]
    with pytest.raises(IllegalArgument, match="The partitions must not be None"):
        partitions_of(None)


@pytest.mark.parametrize("bad", [[""], ["a", " "], [None]])
def test_topics_have_names(bad: list[Any]) -> None:
    assert topics_of("t") == ["t"]
    with pytest.raises(IllegalArgument, match="cannot contain None or an empty topic"):
        topics_of(bad)


def test_rows_are_limited_to_one_at_least() -> None:
    assert rows_max(5) == 5
    assert rows_max(None) == 2**31 - 1
    with pytest.raises(IllegalArgument, match="max_records must be at least 1, not 0"):
        rows_max(0)
