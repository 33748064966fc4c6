"""CreatePartitions: what is added, what is refused and how, and what is waited for. The texts are those of Kafka 4.2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment, encode_topic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse
from tests.unit.broker.admin_broker import DEADLINE_SECONDS, AdminBroker

ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT


def wanted(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    lists = None if assignments is None else [CreatePartitionsAssignment(brokers) for brokers in assignments]
    return CreatePartitionsTopic(name, count, lists)


async def broker_with(topics: Mapping[str, Mapping[int, tuple[int, ...]]], brokers: int = 1) -> AdminBroker:
    broker = await AdminBroker.start(racks=dict.fromkeys(range(brokers)))
    for name, assignment in topics.items():
        await broker.admin_tree.create_topic(name, assignment)
    await broker.lead()
    return broker


async def add(
    broker: AdminBroker, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
) -> list[tuple[str, int, str | None]]:
    request = CreatePartitionsRequest(list(topics), 10_000, validate_only)
    response: CreatePartitionsResponse = await broker.ask_and_act("create_partitions", request, version)
    return [(result.name, result.error_code, result.error_message) for result in response.results]


async def replicas(broker: AdminBroker, name: str) -> dict[int, tuple[int, ...]]:
    topic = await broker.admin_tree.topic_assignment(name)
    assert topic is not None
    return {number: topic.partitions[number].replicas for number in sorted(topic.partitions)}


def test_new_partitions_go_on_where_the_first_began() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (1, 2), 1: (2, 0)}}, brokers=3)
        assert await add(broker, wanted("t", 4)) == [("t", 0, None)]
        assert await replicas(broker, "t") == {0: (1, 2), 1: (2, 0), 2: (0, 2), 3: (1, 2)}

    asyncio.run(scenario())


def test_an_assignment_of_the_clients_is_taken_as_it_is() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}}, brokers=3)
        await add(broker, wanted("t", 3, [[2], [1]]))
        assert await replicas(broker, "t") == {0: (0,), 1: (2,), 2: (1,)}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (wanted("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (wanted("t", 1), ErrorCode.INVALID_PARTITIONS, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (wanted("t", -1), ErrorCode.INVALID_PARTITIONS, "The topic t currently has 2 partition(s); -1 would not be an increase."),
        (wanted("t", 20_000), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
        (wanted("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (wanted("a b", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            wanted("t", 4, [[0]]),
            ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            wanted("t", 3, []),
            ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (wanted("t", 3, [[9]]), ASSIGNMENT, "The manual partition assignment includes broker 9, but no such broker is registered."),
        (wanted("t", 3, [[0, 0]]), ASSIGNMENT, "The manual partition assignment includes the broker 0 more than once."),
        (wanted("t", 3, [[]]), ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
    ],
)
def test_what_cannot_be_added_is_refused_as_kafka_refuses_it(topic: CreatePartitionsTopic, code: ErrorCode, message: str | None) -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,), 1: (0,)}})
        assert await add(broker, topic) == [(topic.name, code, message)]
        assert len(await replicas(broker, "t")) == 2

    asyncio.run(scenario())


def test_a_topic_whose_brokers_are_gone_cannot_be_placed() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0, 1)}}, brokers=1)
        ((_, code, _),) = await add(broker, wanted("t", 2))
        assert code == ErrorCode.INVALID_REPLICATION_FACTOR

    asyncio.run(scenario())


def test_nothing_is_added_while_a_reassignment_is_under_way() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}}, brokers=2)
        moving = TopicAssignment({0: ReplicaAssignment((0, 1), (1,), (0,))})
        await broker.client.set_data(paths.topic("t"), encode_topic(moving))
        message = "A partition reassignment is in progress for the topic 't'."
        assert await add(broker, wanted("t", 2)) == [("t", ErrorCode.REASSIGNMENT_IN_PROGRESS, message)]

    asyncio.run(scenario())


def test_nothing_is_added_to_a_topic_that_is_being_deleted() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}})
        await broker.admin_tree.delete_topic("t")
        assert await add(broker, wanted("t", 2)) == [("t", ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")]

    asyncio.run(scenario())


def test_a_topic_named_twice_is_left_as_it_is() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}, "u": {0: (0,)}})
        results = await add(broker, wanted("t", 2), wanted("t", 3), wanted("u", 2))
        assert results == [("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name."), ("u", 0, None)]
        assert len(await replicas(broker, "t")) == 1

    asyncio.run(scenario())


def test_the_bound_is_for_all_topics_of_a_request_together() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}, "u": {0: (0,)}})
        results = await add(broker, wanted("t", 6001), wanted("u", 6001), validate_only=True)
        assert [code for _, code, _ in results] == [0, ErrorCode.POLICY_VIOLATION]

    asyncio.run(scenario())


def test_validating_only_adds_nothing() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}})
        assert await add(broker, wanted("t", 3), validate_only=True) == [("t", 0, None)]
        assert not broker.waiting.is_set()
        assert len(await replicas(broker, "t")) == 1

    asyncio.run(scenario())


def test_it_is_answered_when_the_new_partitions_have_leaders() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}})
        task = broker.ask("create_partitions", CreatePartitionsRequest([wanted("t", 2)], 10_000), 3)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.lead()
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert response.results[0].error_code == 0

    asyncio.run(scenario())


def test_what_has_no_leader_in_time_is_timed_out() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}})
        task = broker.ask("create_partitions", CreatePartitionsRequest([wanted("t", 2)], 10_000), 3)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        broker.pass_time(10_001)
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert (response.results[0].error_code, response.results[0].error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
        assert len(await replicas(broker, "t")) == 2

    asyncio.run(scenario())


def test_only_the_controller_adds_partitions() -> None:
    async def scenario() -> None:
        broker = await broker_with({"t": {0: (0,)}})
        broker.controller.is_active = False
        ((_, code, _),) = await add(broker, wanted("t", 2))
        assert code == ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(4))
def test_every_version_can_be_written(version: int) -> None:
    async def scenario() -> CreatePartitionsResponse:
        broker = await broker_with({"t": {0: (0,)}})
        request = CreatePartitionsRequest([wanted("t", 2), wanted("u", 2)], 10_000)
        response: CreatePartitionsResponse = await broker.ask_and_act("create_partitions", request, version)
        return response

    read = parse(CreatePartitionsResponse, serialize(asyncio.run(scenario()), version), version)
    assert [result.error_code for result in read.results] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
