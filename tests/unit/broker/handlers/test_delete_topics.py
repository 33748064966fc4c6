"""DeleteTopics: by name and by id, what is refused and how, and what is waited for. The texts are those of Kafka 4.2."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from barnabas.uuid import Uuid
from tests.unit.broker.admin_broker import DEADLINE_SECONDS, AdminBroker

UNKNOWN_ID = Uuid(b"u" * 16)
INVALID = ErrorCode.INVALID_REQUEST
UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


async def broker_with(*names: str, properties: dict[str, str] | None = None) -> AdminBroker:
    broker = await AdminBroker.start(properties)
    for name in names:
        await broker.admin_tree.create_topic(name, {0: (0,), 1: (0,)})
    await broker.lead()
    return broker


def id_of(broker: AdminBroker, name: str) -> Uuid:
    topic_id = broker.cache.topic_id(name)
    assert topic_id is not None
    return topic_id


def named(*names: str, timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=timeout_ms)


async def delete(broker: AdminBroker, request: DeleteTopicsRequest, version: int = 6) -> list[DeletableTopicResult]:
    response: DeleteTopicsResponse = await broker.ask_and_act("delete_topics", request, version)
    return response.responses


def told(result: DeletableTopicResult) -> tuple[str | None, Uuid, int, str | None]:
    return result.name, result.topic_id, result.error_code, result.error_message


def test_a_topic_is_deleted_by_its_name() -> None:
    async def scenario() -> None:
        broker = await broker_with("a", "b")
        topic_id = id_of(broker, "a")
        (result,) = await delete(broker, named("a"))
        assert told(result) == ("a", topic_id, 0, None)
        assert await broker.admin_tree.all_topics() == ["b"]

    asyncio.run(scenario())


def test_a_topic_is_deleted_by_its_id() -> None:
    async def scenario() -> None:
        broker = await broker_with("a", "b")
        topic_id = id_of(broker, "a")
        (result,) = await delete(broker, DeleteTopicsRequest([DeleteTopicState(None, topic_id)], timeout_ms=10_000))
        assert told(result) == ("a", topic_id, 0, None)
        assert await broker.admin_tree.all_topics() == ["b"]

    asyncio.run(scenario())


def test_the_name_is_free_when_the_deletion_is_answered() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        await delete(broker, named("a"))
        await broker.admin_tree.create_topic("a", {0: (0,)})

    asyncio.run(scenario())


def test_an_unknown_name_and_an_unknown_id_are_told_apart() -> None:
    async def scenario() -> None:
        broker = await broker_with()
        request = DeleteTopicsRequest([DeleteTopicState("nope"), DeleteTopicState(None, UNKNOWN_ID)], timeout_ms=10_000)
        results = {told(result) for result in await delete(broker, request)}
        assert results == {
            ("nope", Uuid.ZERO, *UNKNOWN),
            (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        }

    asyncio.run(scenario())


def test_a_topic_given_twice_is_not_deleted() -> None:
    async def scenario() -> None:
        broker = await broker_with("a", "b", "c", "d")
        b, c = id_of(broker, "b"), id_of(broker, "c")
        states = [
            *(DeleteTopicState("a"), DeleteTopicState("a")),
            *(DeleteTopicState(None, b), DeleteTopicState(None, b)),
            *(DeleteTopicState("c"), DeleteTopicState(None, c)),
            DeleteTopicState("d"),
        ]
        d = id_of(broker, "d")
        results = {told(result) for result in await delete(broker, DeleteTopicsRequest(states, timeout_ms=10_000))}
        assert results == {
            ("a", Uuid.ZERO, INVALID, "Duplicate topic name."),
            (None, b, INVALID, "Duplicate topic id."),
            ("c", c, INVALID, "The provided topic name maps to an ID that was already supplied."),
            ("d", d, 0, None),
        }
        assert await broker.admin_tree.all_topics() == ["a", "b", "c"]

    asyncio.run(scenario())


def test_a_topic_must_be_given_by_name_or_by_id() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        topic_id = id_of(broker, "a")
        states = [DeleteTopicState(None, Uuid.ZERO), DeleteTopicState("a", topic_id)]
        results = [told(result) for result in await delete(broker, DeleteTopicsRequest(states, timeout_ms=10_000))]
        assert results == [
            (None, Uuid.ZERO, INVALID, "Neither topic name nor id were specified."),
            ("a", topic_id, INVALID, "You may not specify both topic name and topic id."),
        ]

    asyncio.run(scenario())


def test_it_is_answered_when_the_last_trace_is_gone_and_not_before() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        task = broker.ask("delete_topics", named("a"), 6)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.forget("a")
        assert broker.purgatory.num_delayed == 1
        await broker.remove("a")
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert response.responses[0].error_code == 0

    asyncio.run(scenario())


def test_two_who_delete_the_same_topic_are_both_answered() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        tasks = []
        for _ in range(2):
            tasks.append(broker.ask("delete_topics", named("a"), 6))
            await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.act()
        for response in await asyncio.wait_for(asyncio.gather(*tasks), DEADLINE_SECONDS):
            assert response.responses[0].error_code == 0

    asyncio.run(scenario())


def test_a_deletion_that_takes_too_long_is_timed_out_and_goes_on() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        task = broker.ask("delete_topics", named("a"), 6)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        broker.pass_time(10_001)
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert told(response.responses[0]) == ("a", Uuid.ZERO, ErrorCode.REQUEST_TIMED_OUT, None)
        assert await broker.admin_tree.is_marked_for_deletion("a")

    asyncio.run(scenario())


def test_who_asks_again_after_a_timeout_waits_for_the_same_deletion() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        (result,) = await delete(broker, named("a", timeout_ms=0))
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        (result,) = await delete(broker, named("a"))
        assert result.error_code == 0

    asyncio.run(scenario())


def test_a_topic_can_be_deleted_created_and_deleted_again() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        for _ in range(2):
            (result,) = await delete(broker, named("a"))
            assert result.error_code == 0
            await broker.admin_tree.create_topic("a", {0: (0,)})
            await broker.lead()

    asyncio.run(scenario())


@pytest.mark.parametrize(("version", "code"), [(1, INVALID), (2, INVALID), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_nothing_is_deleted_where_deletion_is_disabled(version: int, code: ErrorCode) -> None:
    async def scenario() -> None:
        broker = await broker_with("a", properties={"delete.topic.enable": "false"})
        (result,) = await delete(broker, DeleteTopicsRequest(topic_names=["a"], timeout_ms=10_000), version)
        assert (result.name, result.error_code, result.error_message) == ("a", code, None)
        assert not await broker.admin_tree.is_marked_for_deletion("a")

    asyncio.run(scenario())


def test_only_the_controller_deletes_topics() -> None:
    async def scenario() -> None:
        broker = await broker_with("a")
        broker.controller.is_active = False
        (result,) = await delete(broker, named("a"))
        assert (result.name, result.error_code) == ("a", ErrorCode.NOT_CONTROLLER)

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(7))
def test_every_version_can_be_written(version: int) -> None:
    async def scenario() -> DeleteTopicsResponse:
        broker = await broker_with("a")
        request = named("a", "nope") if version >= 6 else DeleteTopicsRequest(topic_names=["a", "nope"], timeout_ms=10_000)
        response: DeleteTopicsResponse = await broker.ask_and_act("delete_topics", request, version)
        return response

    read = parse(DeleteTopicsResponse, serialize(asyncio.run(scenario()), version), version)
    assert [(response.name, response.error_code) for response in read.responses] == [("a", 0), ("nope", UNKNOWN[0])]


def test_many_topics_are_deleted_at_once() -> None:
    async def scenario() -> None:
        names = [f"t{number}" for number in range(300)]
        broker = await broker_with(*names)
        results = await delete(broker, named(*names))
        assert {result.error_code for result in results} == {0}
        assert await broker.admin_tree.all_topics() == []

    asyncio.run(scenario())
