from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_records_response import DeleteRecordsResponse
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.storage.log_config import LogConfig
from tests.unit.broker.handlers.leader import OTHER_BROKER, Asked, Leader, with_leader


def delete(leader: Leader, offset: int, *, topic: str = "foo", partition: int = 0, version: int = 2, timeout_ms: int = 500) -> Asked:
    topics = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])]
    return leader.ask(api_keys.DELETE_RECORDS, DeleteRecordsRequest(topics, timeout_ms), version)


def result(response: DeleteRecordsResponse) -> tuple[int, int]:
    [topic] = response.topics
    [answer] = topic.partitions
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_what_is_below_an_offset(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        assert result(delete(leader, 3, version=version).response()) == (ErrorCode.NONE, 3)
        assert leader.log("foo").log_start_offset == 3

    with_leader(tmp_path, test)


def test_minus_one_is_the_high_watermark(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        assert result(delete(leader, -1).response()) == (ErrorCode.NONE, 5)

    with_leader(tmp_path, test)


def test_what_is_deleted_already_stays_so(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        delete(leader, 3)
        assert result(delete(leader, 2).response()) == (ErrorCode.NONE, 3)

    with_leader(tmp_path, test)


@pytest.mark.parametrize("offset", [6, -2, 2**62])
def test_an_offset_outside_the_log_is_out_of_range(tmp_path: Path, offset: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        assert result(delete(leader, offset).response()) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert leader.log("foo").log_start_offset == 0

    with_leader(tmp_path, test)


@pytest.mark.parametrize(("policy", "error"), [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE)])
def test_records_of_a_compacted_topic_are_not_deleted(tmp_path: Path, policy: str, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", config=LogConfig.from_properties({"cleanup.policy": policy}))
        leader.produce("foo", count=5)
        assert result(delete(leader, 3).response())[0] == error

    with_leader(tmp_path, test)


def test_records_of_an_internal_topic_are_not_deleted(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("__consumer_offsets")
        assert result(delete(leader, 0, topic="__consumer_offsets").response()) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("foo", 1), ("foo", -1), ("", 0)])
def test_a_partition_that_does_not_exist_is_unknown(tmp_path: Path, topic: str, partition: int) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        answer = result(delete(leader, 0, topic=topic, partition=partition).response())
        assert answer == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)

    with_leader(tmp_path, test)


def test_only_the_leader_deletes(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", leader=OTHER_BROKER, replicas=(1, OTHER_BROKER))
        assert result(delete(leader, 0).response()) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    with_leader(tmp_path, test)


def test_an_error_of_one_partition_is_none_of_the_others(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", 2)
        leader.produce("foo", count=5)
        partitions = [DeleteRecordsPartition(0, 2), DeleteRecordsPartition(1, 2), DeleteRecordsPartition(7, 2)]
        message = DeleteRecordsRequest([DeleteRecordsTopic("foo", partitions)], 500)
        [topic] = leader.ask(api_keys.DELETE_RECORDS, message, 2).response().topics
        assert {answer.partition_index: answer.error_code for answer in topic.partitions} == {
            0: ErrorCode.NONE,
            1: ErrorCode.OFFSET_OUT_OF_RANGE,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }

    with_leader(tmp_path, test)


def test_of_a_partition_named_twice_the_last_is_meant(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo")
        leader.produce("foo", count=5)
        topics = [DeleteRecordsTopic("foo", [DeleteRecordsPartition(0, offset)]) for offset in (4, 2)]
        response = leader.ask(api_keys.DELETE_RECORDS, DeleteRecordsRequest(topics, 500), 2).response()
        assert result(response) == (ErrorCode.NONE, 2)

    with_leader(tmp_path, test)


# With a follower, which has to delete too


def with_follower(leader: Leader) -> None:
    leader.create_topic("foo", replicas=(1, OTHER_BROKER))
    leader.produce("foo", count=5)
    follower_fetches(leader, 0)


def follower_fetches(leader: Leader, log_start_offset: int) -> None:
    message = FetchRequest(
        replica_id=OTHER_BROKER,
        topics=[FetchTopic("foo", partitions=[FetchPartition(0, fetch_offset=5, log_start_offset=log_start_offset)])],
    )
    leader.ask(api_keys.FETCH, message, 12)


def test_the_answer_waits_for_the_followers(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        with_follower(leader)
        pending = delete(leader, 3)
        assert pending.is_waiting
        follower_fetches(leader, 3)
        assert result(pending.response()) == (ErrorCode.NONE, 3)

    with_leader(tmp_path, test)


def test_a_follower_that_takes_too_long_is_a_timeout(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        with_follower(leader)
        pending = delete(leader, 3, timeout_ms=500)
        leader.pass_time(501)
        assert result(pending.response()) == (ErrorCode.REQUEST_TIMED_OUT, 0)

    with_leader(tmp_path, test)


def test_a_lost_lead_is_told_to_those_who_wait(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        with_follower(leader)
        pending = delete(leader, 3)
        leader.create_topic("foo", leader=OTHER_BROKER, leader_epoch=1, replicas=(1, OTHER_BROKER))
        assert result(pending.response()) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    with_leader(tmp_path, test)
