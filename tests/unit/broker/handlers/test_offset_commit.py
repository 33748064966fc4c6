from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.broker import Broker
from barnabas.metadata import paths
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import ask, id_of
from tests.unit.broker.handlers.coordinating import answered, coordinating, sent
from tests.unit.coordinator.coordinator_host import Host

VERSIONS = range(1, 11)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def wanted(name: str, version: int, *offsets: tuple[int, int], metadata: str | None = "") -> OffsetCommitRequestTopic:
    partitions = [OffsetCommitRequestPartition(index, offset, committed_metadata=metadata) for index, offset in offsets]
    return OffsetCommitRequestTopic(name, partitions=partitions) if version < 10 else OffsetCommitRequestTopic("", id_of(name), partitions)


def committed(broker: Broker, version: int, *topics: OffsetCommitRequestTopic, group: str = "g", generation: int = -1) -> list[object]:
    """Name, partition and code of all that was answered, in its order; the name is that of the id where there are ids."""
    request = OffsetCommitRequest(group, generation, topics=list(topics))
    return codes(answered(broker, request, OffsetCommitResponse, version))


def codes(response: OffsetCommitResponse) -> list[object]:
    names = {id_of(name): name for name in ("t", "u", "gone")}
    return [
        (topic.name or names[topic.topic_id], partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_that_were_committed_are_found_by_the_coordinator(version: int) -> None:
    host = Host()
    answer = committed(coordinating(host), version, wanted("t", version, (0, 5), (2, 7)), wanted("u", version, (0, 9)))
    assert answer == [("t", 0, 0), ("t", 2, 0), ("u", 0, 0)]
    assert [host.fetch(topic=name, partition=index)[0] for name, index in (("t", 0), ("t", 2), ("u", 0))] == [5, 7, 9]


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_do_not_exist_are_answered_first_and_the_others_committed(version: int) -> None:
    host = Host()
    answer = committed(coordinating(host), version, wanted("t", version, (0, 5), (3, 1), (-1, 1)), wanted("u", version, (0, 9)))
    assert answer == [("t", 3, UNKNOWN), ("t", -1, UNKNOWN), ("t", 0, 0), ("u", 0, 0)]
    assert host.fetch()[0] == 5
    assert host.shard.offsets.committed.count == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_does_not_exist_is_refused_with_all_its_partitions(version: int) -> None:
    code = UNKNOWN if version < 10 else int(ErrorCode.UNKNOWN_TOPIC_ID)
    answer = committed(coordinating(Host()), version, wanted("gone", version, (0, 5), (1, 5)), wanted("u", version, (0, 9)))
    assert answer == [("gone", 0, code), ("gone", 1, code), ("u", 0, 0)]


def test_a_topic_given_twice_is_answered_once() -> None:
    response = answered(
        coordinating(Host()),
        OffsetCommitRequest("g", topics=[wanted("t", 9, (0, 1), (8, 1)), wanted("t", 9, (0, 2), (9, 1))]),
        OffsetCommitResponse,
        9,
    )
    assert [topic.name for topic in response.topics] == ["t"]
    assert codes(response) == [("t", 8, UNKNOWN), ("t", 9, UNKNOWN), ("t", 0, 0), ("t", 0, 0)]


def test_without_a_partition_to_commit_the_group_is_not_asked() -> None:
    broker = coordinating(Host())
    assert answered(broker, OffsetCommitRequest("g", 5, "nobody"), OffsetCommitResponse, 9) == OffsetCommitResponse()
    empty = OffsetCommitRequest("g", topics=[wanted("t", 9), wanted("gone", 9)])
    assert answered(broker, empty, OffsetCommitResponse, 9) == OffsetCommitResponse(topics=[OffsetCommitResponseTopic("gone")])


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_what_the_coordinator_refuses_stands_with_every_partition_it_was_asked_about(version: int, code: ErrorCode) -> None:
    answer = committed(coordinating(Host()), version, wanted("t", version, (0, 5), (44, 1), (1, 5)), generation=3)
    assert answer == [("t", 44, UNKNOWN), ("t", 0, code), ("t", 1, code)]


def test_metadata_that_is_too_long_is_refused_for_its_partition() -> None:
    answer = committed(coordinating(Host()), 9, wanted("t", 9, (0, 5), metadata="x" * 4097), wanted("u", 9, (0, 5), metadata="x" * 4096))
    assert answer == [("t", 0, ErrorCode.OFFSET_METADATA_TOO_LARGE), ("u", 0, 0)]


def test_an_offset_by_id_keeps_the_id_and_one_by_name_has_none() -> None:
    host = Host()
    broker = coordinating(host)
    committed(broker, 10, wanted("t", 10, (0, 5)))
    committed(broker, 9, wanted("t", 9, (1, 5)))
    ids = [offset.topic_id for _, _, offset in host.shard.offsets.committed.of_group("g")]
    assert ids == [id_of("t"), Uuid.ZERO]


def test_a_commit_is_answered_when_it_is_replicated_and_takes_no_place_in_the_queue_until_then() -> None:
    host = Host()
    host.log.held_at = 0
    pending = sent(coordinating(host), OffsetCommitRequest("g", topics=[wanted("t", 9, (0, 5))]), 9)
    assert pending.is_waiting
    host.log.held_at = None
    host.coordinator.high_watermark_updated(0, host.log.log_end_offset(0))
    assert codes(pending.response()) == [("t", 0, 0)]


def in_tree(step: Callable[[Broker], Awaitable[None]], host: Host | None = None, settings: dict[str, str] | None = None) -> None:
    """Runs a step of a test with a broker whose tree is connected."""

    async def run() -> None:
        broker = coordinating(host or Host(), settings=settings)
        await broker.tree.connect()
        await step(broker)

    asyncio.run(run())


async def tree_commit(broker: Broker, *topics: OffsetCommitRequestTopic, group: str = "g") -> list[object]:
    return codes(await ask(broker, OffsetCommitRequest(group, topics=list(topics)), OffsetCommitResponse, 0))


async def data_of(broker: Broker, path: str) -> bytes | None:
    stored = await broker.tree.get(path)
    return None if stored is None else stored.data


def test_version_0_writes_to_the_tree_and_asks_no_coordinator() -> None:
    host = Host()

    async def step(broker: Broker) -> None:
        for offset in (5, 6):  # creates the node, and then sets it
            assert await tree_commit(broker, wanted("t", 0, (0, offset), (2, 7)), wanted("u", 0, (0, 9))) == [
                ("t", 0, 0),
                ("t", 2, 0),
                ("u", 0, 0),
            ]
        assert await data_of(broker, paths.consumer_offset("g", "t", 0)) == b"6"
        assert await data_of(broker, "/consumers/g/offsets/u/0") == b"9"

    in_tree(step, host)
    assert host.shard.offsets.committed.count == 0


def test_version_0_writes_the_last_of_many_offsets_of_a_partition_and_answers_all() -> None:
    async def step(broker: Broker) -> None:
        answer = await tree_commit(broker, wanted("t", 0, *[(0, offset) for offset in range(100)]))
        assert answer == [("t", 0, 0)] * 100
        assert await data_of(broker, "/consumers/g/offsets/t/0") == b"99"

    in_tree(step)


def test_version_0_refuses_what_does_not_exist_and_metadata_that_is_too_long_by_java_s_count() -> None:
    async def step(broker: Broker) -> None:
        answer = await tree_commit(
            broker,
            wanted("t", 0, (0, 5), metadata="😀"),
            wanted("u", 0, (0, 5), (1, 5), metadata=None),
            wanted("gone", 0, (0, 5)),
        )
        too_large = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        assert answer == [("u", 1, UNKNOWN), ("u", 0, 0), ("gone", 0, UNKNOWN), ("t", 0, too_large)]

    in_tree(step, settings={"offset.metadata.max.bytes": "1"})


@pytest.mark.parametrize("group", ["", "..", "a//b", "\0"])
def test_version_0_answers_a_group_that_is_no_name_of_a_node_with_an_error(group: str) -> None:
    async def step(broker: Broker) -> None:
        assert await tree_commit(broker, wanted("t", 0, (0, 5)), group=group) == [("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR)]

    in_tree(step)


def test_version_0_answers_with_an_error_while_there_is_no_session_with_the_tree() -> None:
    async def step(broker: Broker) -> None:
        await broker.tree.close()
        assert await tree_commit(broker, wanted("t", 0, (0, 5))) == [("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR)]

    in_tree(step)
