from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.broker.broker import Broker
from barnabas.metadata import paths
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import ask, id_of, topic, update
from tests.unit.broker.handlers.coordinating import answered, coordinating
from tests.unit.coordinator.coordinator_host import Host

Topics = Sequence[tuple[str, list[int]]]
Found = list[tuple[str, int, int, int]]  # topic, partition, offset, code

VERSIONS = range(1, 11)


def request(version: int, topics: Topics | None, *groups: str) -> OffsetFetchRequest:
    if version < 8:
        (group,) = groups
        old = None if topics is None else [OffsetFetchRequestTopic(name, indexes) for name, indexes in topics]
        return OffsetFetchRequest(group, old)
    groups_asked = [OffsetFetchRequestGroup(group, topics=None if topics is None else _topics(version, topics)) for group in groups]
    return OffsetFetchRequest(groups=groups_asked)


def _topics(version: int, topics: Topics) -> list[OffsetFetchRequestTopics]:
    if version < 10:
        return [OffsetFetchRequestTopics(name, Uuid.ZERO, indexes) for name, indexes in topics]
    return [OffsetFetchRequestTopics("", id_of(name), indexes) for name, indexes in topics]


def fetched(broker: Broker, version: int, topics: Topics | None, group: str = "g") -> Found:
    response = answered(broker, request(version, topics, group), OffsetFetchResponse, version)
    if version < 8:
        return found(response)
    (only,) = response.groups
    assert (only.group_id, only.error_code) == (group, 0)
    return found(only)


def found(response: OffsetFetchResponse | OffsetFetchResponseGroup) -> Found:
    return [
        (name_of(topic), partition.partition_index, partition.committed_offset, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


def name_of(topic: OffsetFetchResponseTopic | OffsetFetchResponseTopics) -> str:
    if isinstance(topic, OffsetFetchResponseTopic) or topic.name:
        return topic.name
    return {id_of(name): name for name in ("t", "u", "gone")}[topic.topic_id]


def with_offsets() -> Host:
    host = Host()
    host.commit(5, topic="t", partition=0)
    host.commit(7, topic="t", partition=2)
    host.commit(9, topic="u")
    return host


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_committed_is_told_and_what_was_not_is_no_error(version: int) -> None:
    answer = fetched(coordinating(with_offsets()), version, [("t", [2, 1]), ("u", [0])])
    assert answer == [("t", 2, 7, 0), ("t", 1, -1, 0), ("u", 0, 9, 0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_that_does_not_exist_has_committed_nothing(version: int) -> None:
    assert fetched(coordinating(with_offsets()), version, [("t", [0])], "nobody") == [("t", 0, -1, 0)]


@pytest.mark.parametrize("version", range(2, 11))
def test_without_topics_all_of_the_group_s_are_told(version: int) -> None:
    assert fetched(coordinating(with_offsets()), version, None) == [("t", 0, 5, 0), ("t", 2, 7, 0), ("u", 0, 9, 0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_topics_at_all_is_another_thing_than_all_of_them(version: int) -> None:
    assert fetched(coordinating(with_offsets()), version, []) == []


@pytest.mark.parametrize("version", range(1, 10))
def test_a_topic_that_does_not_exist_is_asked_about_like_any_other(version: int) -> None:
    host = with_offsets()
    host.commit(3, topic="gone")
    assert fetched(coordinating(host), version, [("gone", [0, 1])]) == [("gone", 0, 3, 0), ("gone", 1, -1, 0)]


def test_an_id_that_does_not_exist_is_answered_last_with_an_error() -> None:
    answer = fetched(coordinating(with_offsets()), 10, [("gone", [0, 1]), ("t", [0])])
    code = int(ErrorCode.UNKNOWN_TOPIC_ID)
    assert answer == [("t", 0, 5, 0), ("gone", 0, -1, code), ("gone", 1, -1, code)]


def test_of_all_offsets_those_of_topics_without_an_id_cannot_be_told() -> None:
    host = with_offsets()
    host.commit(3, topic="gone")
    assert {name for name, *_ in fetched(coordinating(host), 9, None)} == {"t", "u", "gone"}
    assert {name for name, *_ in fetched(coordinating(host), 10, None)} == {"t", "u"}


def test_an_offset_of_a_topic_that_was_created_anew_is_not_the_new_topic_s() -> None:
    broker = coordinating(Host())
    committed = OffsetCommitRequestTopic("", id_of("t"), [OffsetCommitRequestPartition(0, 5)])
    answered(broker, OffsetCommitRequest("g", topics=[committed]), OffsetCommitResponse, 10)
    assert fetched(broker, 10, [("t", [0])]) == [("t", 0, 5, 0)]
    broker.metadata_cache.update(update(topic("t", 3, topic_id=Uuid(b"another topic id"))))
    group = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("", Uuid(b"another topic id"), [0])])
    response = answered(broker, OffsetFetchRequest(groups=[group]), OffsetFetchResponse, 10)
    assert [partition.committed_offset for partition in response.groups[0].topics[0].partitions] == [-1]


@pytest.mark.parametrize("version", range(8, 11))
def test_groups_are_answered_in_the_order_asked(version: int) -> None:
    host = with_offsets()
    host.commit(1, group="h")
    response = answered(coordinating(host), request(version, [("t", [0])], "h", "nobody", "g", "h"), OffsetFetchResponse, version)
    assert [(group.group_id, found(group)[0][2]) for group in response.groups] == [("h", 1), ("nobody", -1), ("g", 5), ("h", 1)]
    assert answered(coordinating(host), request(version, None), OffsetFetchResponse, version) == OffsetFetchResponse()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_the_group_stands_where_its_version_has_room_for_it(version: int) -> None:
    host = Host()
    host.coordinator.on_resignation(0, None)
    code = int(ErrorCode.NOT_COORDINATOR)
    response = answered(coordinating(host), request(version, [("t", [0, 1])], "g"), OffsetFetchResponse, version)
    if version == 1:
        assert found(response) == [("t", 0, -1, code), ("t", 1, -1, code)]
    elif version < 8:
        assert response == OffsetFetchResponse(error_code=code)
    else:
        assert response.groups == [OffsetFetchResponseGroup("g", error_code=code)]


def test_version_0_reads_the_tree() -> None:
    async def step() -> OffsetFetchResponse:
        broker = coordinating(with_offsets())
        await broker.tree.connect()
        await broker.tree.set_or_create(paths.consumer_offset("g", "t", 0), b"77")
        await broker.tree.set_or_create(paths.consumer_offset("g", "t", 2), b"not a number")
        await broker.tree.set_or_create(paths.consumer_offset("g", "gone", 0), b"5")
        return await ask(broker, request(0, [("t", [0, 1, 2, 0]), ("gone", [0])], "g"), OffsetFetchResponse, 0)

    unknown, broken = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert found(asyncio.run(step())) == [("t", 0, 77, 0), ("t", 1, -1, unknown), ("t", 2, -1, broken), ("gone", 0, -1, unknown)]


@pytest.mark.parametrize("group", ["", "..", "a//b"])
def test_version_0_answers_a_group_that_is_no_name_of_a_node_with_an_error(group: str) -> None:
    async def step() -> OffsetFetchResponse:
        broker = coordinating(Host())
        await broker.tree.connect()
        return await ask(broker, request(0, [("t", [0])], group), OffsetFetchResponse, 0)

    assert found(asyncio.run(step())) == [("t", 0, -1, ErrorCode.UNKNOWN_SERVER_ERROR)]
