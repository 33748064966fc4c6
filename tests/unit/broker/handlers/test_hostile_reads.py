"""Any request to an API that reads gets a response, or its connection is closed, and the broker continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.registry import APIS
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.leader import NOW, OTHER_BROKER, Leader, with_leader

ROUNDS = 150
FOO_ID = Uuid(b"foo-foo-foo-foo-")
BAR_ID = Uuid(b"bar-bar-bar-bar-")
INT32 = (0, 0, 0, 1, 2, -1, -2, -3, 3, 100, 2**31 - 1, -(2**31))
INT64 = (0, 0, 0, 1, 2, 5, -1, -2, -3, -4, -5, -6, -7, NOW, 2**63 - 1, -(2**63))
NAMES = ("foo", "foo", "bar", "", "nowhere", "..", "foo\x00", "x" * 300, "__consumer_offsets")
IDS = (FOO_ID, FOO_ID, BAR_ID, Uuid.ZERO, Uuid(b"x" * 16))


def some(random: Random, most: int = 4) -> range:
    return range(random.randrange(most))


def fetch(random: Random, version: int) -> Message:
    pick = random.choice

    def partition() -> FetchPartition:
        replica_epoch = pick(INT32) if version >= 12 else -1
        return FetchPartition(pick(INT32), pick(INT32), pick(INT64), replica_epoch, pick(INT64), pick(INT32))

    message = FetchRequest(
        replica_id=pick(INT32) if version < 15 else -1,
        replica_state=ReplicaState(pick(INT32), pick(INT64)) if version >= 15 else None,
        max_wait_ms=pick(INT32),
        min_bytes=pick(INT32),
        max_bytes=pick(INT32),
        isolation_level=pick((0, 0, 1, 2, -1)),
        session_id=pick(INT32) if version >= 7 else 0,
        session_epoch=pick(INT32) if version >= 7 else -1,
        topics=[FetchTopic(pick(NAMES), pick(IDS), [partition() for _ in some(random)]) for _ in some(random)],
    )
    if version >= 7:
        message.forgotten_topics_data = [ForgottenTopic(pick(NAMES), pick(IDS), [pick(INT32) for _ in some(random)]) for _ in some(random)]
    return message


def list_offsets(random: Random, version: int) -> Message:
    pick = random.choice

    def partition() -> ListOffsetsPartition:
        return ListOffsetsPartition(pick(INT32), pick(INT32), pick(INT64), pick((0, 1, -1, 100, 2**31 - 1)) if version == 0 else 1)

    topics = [ListOffsetsTopic(pick(NAMES), [partition() for _ in some(random)]) for _ in some(random)]
    return ListOffsetsRequest(pick(INT32), pick((0, 1, 7)) if version >= 2 else 0, topics, pick(INT32))


def offset_for_leader_epoch(random: Random, version: int) -> Message:
    pick = random.choice

    def partition() -> OffsetForLeaderPartition:
        return OffsetForLeaderPartition(pick(INT32), pick(INT32), pick(INT32))

    topics = [OffsetForLeaderTopic(pick(NAMES), [partition() for _ in some(random)]) for _ in some(random)]
    return OffsetForLeaderEpochRequest(pick(INT32) if version >= 3 else -2, topics)


def delete_records(random: Random, version: int) -> Message:
    pick = random.choice

    def partition() -> DeleteRecordsPartition:
        return DeleteRecordsPartition(pick(INT32), pick(INT64))

    topics = [DeleteRecordsTopic(pick(NAMES), [partition() for _ in some(random)]) for _ in some(random)]
    return DeleteRecordsRequest(topics, pick(INT32))


ASKED: list[tuple[int, Callable[[Random, int], Message]]] = [
    (api_keys.FETCH, fetch),
    (api_keys.LIST_OFFSETS, list_offsets),
    (api_keys.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch),
    (api_keys.DELETE_RECORDS, delete_records),
]


@pytest.mark.parametrize(("key", "make"), ASKED, ids=["fetch", "list_offsets", "offset_for_leader_epoch", "delete_records"])
def test_nonsense_is_answered(tmp_path: Path, key: int, make: Callable[[Random, int], Message]) -> None:
    async def test(leader: Leader) -> None:
        random = Random(1)
        leader.create_topic("foo", 3, topic_id=FOO_ID)
        leader.create_topic("bar", 2, topic_id=BAR_ID, replicas=(1, OTHER_BROKER))
        for index in range(2):
            leader.produce("foo", index, count=5)
            leader.produce("bar", index, count=5)
        highest = APIS[key].highest_version
        for _ in range(ROUNDS):
            version = random.randrange(highest + 1)
            pending = leader.ask(key, make(random, version), version)
            if pending.is_waiting:
                leader.pass_time(2**31)
            await pending.answer()
            assert not pending.is_refused

    with_leader(tmp_path, test)
