from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch_response import EpochEndOffset
from tests.unit.broker.handlers.leader import OTHER_BROKER, Leader, with_leader


def ask(leader: Leader, epoch: int, *, topic: str = "foo", partition: int = 0, current: int = -1, version: int = 4) -> EpochEndOffset:
    partition_asked = OffsetForLeaderPartition(partition, current, epoch)
    replica_id = -1 if version >= 3 else -2
    message = OffsetForLeaderEpochRequest(replica_id, [OffsetForLeaderTopic(topic, [partition_asked])])
    [answered] = leader.ask(api_keys.OFFSET_FOR_LEADER_EPOCH, message, version).response().topics
    [answer] = answered.partitions
    assert isinstance(answer, EpochEndOffset)
    assert (answered.topic, answer.partition) == (topic, partition)
    return answer


def lead_twice(leader: Leader) -> None:
    """Two records in epoch 1, three in epoch 4."""
    leader.create_topic("foo", leader_epoch=1)
    leader.produce("foo", count=2)
    leader.create_topic("foo", leader_epoch=4)
    leader.produce("foo", count=3)


@pytest.mark.parametrize("version", range(5))
def test_every_version_is_told_where_an_epoch_ended(tmp_path: Path, version: int) -> None:
    async def test(leader: Leader) -> None:
        lead_twice(leader)
        answer = ask(leader, 1, version=version)
        assert (answer.error_code, answer.end_offset) == (ErrorCode.NONE, 2)
        assert answer.leader_epoch == (1 if version >= 1 else -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize(
    ("epoch", "answered"),
    [(4, (4, 5)), (3, (1, 2)), (1, (1, 2)), (0, (0, 0)), (5, (-1, -1)), (-1, (-1, -1))],
    ids=["the current one", "one between", "an old one", "one before all", "a later one", "none"],
)
def test_an_epoch_ends_where_the_next_begins(tmp_path: Path, epoch: int, answered: tuple[int, int]) -> None:
    async def test(leader: Leader) -> None:
        lead_twice(leader)
        answer = ask(leader, epoch)
        assert (answer.leader_epoch, answer.end_offset) == answered
        assert answer.error_code == ErrorCode.NONE

    with_leader(tmp_path, test)


@pytest.mark.parametrize(
    ("current", "error"),
    [(3, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.NONE), (5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NONE)],
)
def test_the_epoch_that_the_caller_is_in_is_checked(tmp_path: Path, current: int, error: ErrorCode) -> None:
    async def test(leader: Leader) -> None:
        lead_twice(leader)
        assert ask(leader, 1, current=current).error_code == error

    with_leader(tmp_path, test)


def test_a_partition_that_does_not_exist_is_unknown(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        lead_twice(leader)
        for topic, partition in (("foo", 1), ("foo", -1), ("nowhere", 0), ("", 0)):
            answer = ask(leader, 1, topic=topic, partition=partition)
            assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)

    with_leader(tmp_path, test)


@pytest.mark.parametrize("hosted", [True, False])
def test_only_the_leader_answers(tmp_path: Path, hosted: bool) -> None:
    async def test(leader: Leader) -> None:
        leader.create_topic("foo", leader=OTHER_BROKER, replicas=(1, OTHER_BROKER), hosted=hosted)
        assert ask(leader, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    with_leader(tmp_path, test)


def test_a_partition_on_a_failed_disk_is_a_storage_error(tmp_path: Path) -> None:
    async def test(leader: Leader) -> None:
        lead_twice(leader)
        leader.replica_manager.log_dir_failed(str(tmp_path))
        assert ask(leader, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    with_leader(tmp_path, test)
