from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.waiting.delayed_delete_records import DeleteRecordsResult
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import TP, Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    replicas.append(10)
    yield replicas
    replicas.close()


def delete(replicas: Replicas, offset: int, partition: TopicPartition = TP) -> list[DeleteRecordsResult]:
    """What was answered so far."""
    answered: list[DeleteRecordsResult] = []
    replicas.manager.delete_records(1000, {partition: offset}, answered.extend)
    return answered


@pytest.mark.parametrize(("offset", "low_watermark"), [(4, 4), (-1, 10), (0, 0)])
def test_records_below_an_offset_or_the_high_watermark_go(replicas: Replicas, offset: int, low_watermark: int) -> None:
    answered = delete(replicas, offset)
    assert [(result.error, result.low_watermark) for result in answered] == [(ErrorCode.NONE, low_watermark)]
    assert replicas.log().log_start_offset == low_watermark


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_past_the_high_watermark_or_below_zero_is_out_of_range(replicas: Replicas, offset: int) -> None:
    assert [result.error for result in delete(replicas, offset)] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_a_compacted_topic_keeps_its_records(replicas: Replicas) -> None:
    replicas.log_manager.update_topic_config("orders", LogConfig.from_properties({"cleanup.policy": "compact"}))
    assert [result.error for result in delete(replicas, 4)] == [ErrorCode.POLICY_VIOLATION]


def test_an_internal_topic_keeps_its_records(replicas: Replicas) -> None:
    internal = TopicPartition("__consumer_offsets", 0)
    replicas.lead(internal)
    assert [result.error for result in delete(replicas, 0, internal)] == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_partition_that_is_not_here_is_an_error(replicas: Replicas) -> None:
    assert [result.error for result in delete(replicas, 0, TopicPartition("none", 0))] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_answer_waits_until_the_followers_have_deleted_too(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.follow(2, 10)
    answered = delete(replicas, 4)
    assert answered == []
    replicas.follow(2, 10, log_start_offset=4)
    assert [(result.error, result.low_watermark) for result in answered] == [(ErrorCode.NONE, 4)]


def test_followers_that_do_not_come_are_waited_for_no_longer_than_the_timeout(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.follow(2, 10)
    answered = delete(replicas, 4)
    replicas.pass_time(1001)
    assert [result.error for result in answered] == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_lost_lead_ends_the_wait(replicas: Replicas) -> None:
    replicas.lead(epoch=1, replicas=(1, 2))
    replicas.follow(2, 10)
    answered = delete(replicas, 4)
    replicas.lead(leader=2, epoch=2, replicas=(1, 2))
    assert [(result.error, result.low_watermark) for result in answered] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
