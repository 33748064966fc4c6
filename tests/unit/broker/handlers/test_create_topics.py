"""CreateTopics: what is created, what is refused and how, and what is waited for. The texts are those of Kafka 4.2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from barnabas.uuid import Uuid
from tests.unit.broker.admin_broker import DEADLINE_SECONDS, AdminBroker
from tests.unit.broker.policy_examples import AtLeastTwoPartitions

POLICIES = "tests.unit.broker.policy_examples"


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Sequence[tuple[int, list[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name,
        partitions,
        factor,
        [CreatableReplicaAssignment(partition, brokers) for partition, brokers in assignments],
        [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()],
    )


def manual(name: str, *assignments: tuple[int, list[int]]) -> CreatableTopic:
    return topic(name, -1, -1, assignments)


async def create(broker: AdminBroker, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> list[CreatableTopicResult]:
    message = CreateTopicsRequest(list(topics), 10_000, validate_only)
    response: CreateTopicsResponse = await broker.ask_and_act("create_topics", message, version)
    return response.topics


def created_one(
    wanted: CreatableTopic, existing: Sequence[str] = (), racks: Mapping[int, str | None] | None = None, **properties: str
) -> CreatableTopicResult:
    async def scenario() -> CreatableTopicResult:
        broker = await AdminBroker.start({key.replace("_", "."): value for key, value in properties.items()}, racks)
        await create(broker, *(topic(name) for name in existing))
        (result,) = await create(broker, wanted)
        return result

    return asyncio.run(scenario())


def test_a_created_topic_is_told_with_id_size_and_all_configs() -> None:
    result = created_one(topic("t", 3, configs={"retention.ms": "1000"}))
    assert (result.error_code, result.error_message, result.num_partitions, result.replication_factor) == (0, None, 3, 1)
    assert result.topic_id != Uuid.ZERO
    assert result.configs is not None
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert list(configs) == sorted(configs)


def test_the_id_told_is_the_one_in_the_tree() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        (result,) = await create(broker, topic("t"))
        written = await broker.admin_tree.topic_assignment("t")
        assert written is not None and written.topic_id == result.topic_id

    asyncio.run(scenario())


def test_minus_one_asks_for_the_defaults_of_the_broker() -> None:
    racks = {0: None, 1: None, 2: None}
    result = created_one(topic("t", -1, -1), racks=racks, num_partitions="7", default_replication_factor="3")
    assert (result.num_partitions, result.replication_factor) == (7, 3)


def test_an_assignment_of_the_clients_is_taken_as_it_is() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start(racks={0: None, 1: None})
        await create(broker, manual("t", (1, [1, 0]), (0, [0, 1])))
        written = await broker.admin_tree.topic_assignment("t")
        assert written is not None
        assert {number: partition.replicas for number, partition in written.partitions.items()} == {0: (0, 1), 1: (1, 0)}

    asyncio.run(scenario())


def test_replicas_are_spread_over_racks() -> None:
    async def scenario() -> None:
        racks = {0: "a", 1: "a", 2: "b", 3: "b"}
        broker = await AdminBroker.start(racks=racks)
        await create(broker, topic("t", 8, 2))
        written = await broker.admin_tree.topic_assignment("t")
        assert written is not None
        assert all({racks[broker_id] for broker_id in partition.replicas} == {"a", "b"} for partition in written.partitions.values())

    asyncio.run(scenario())


NAME = ErrorCode.INVALID_TOPIC_EXCEPTION
CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (topic("t.1"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't.1' already exists."),
        (topic("t_1"), NAME, "Topic 't_1' collides with existing topic: t.1"),
        (topic("a b"), NAME, f"Topic name is invalid: 'a b' {CHARACTERS}"),
        (topic(""), NAME, "Topic name is invalid: the empty string is not allowed"),
        (topic(".."), NAME, "Topic name is invalid: '..' is not allowed"),
        (
            topic("n", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) "
            "are registered.",
        ),
        (
            topic("n", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (topic("n", 0, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        (topic("n", -2, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        (topic("n", 10_001, 1), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
        (topic("n", 2**31 - 1, 1), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
        (topic("n", configs={"foo": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
        (
            topic("n", configs={"retention.ms": "abc"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            topic("n", configs={"cleanup.policy": "xx"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value xx for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            topic("n", configs={"foo": None, "retention.ms": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: foo,retention.ms",
        ),
        (
            topic("n", 1, -1, [(0, [0])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("n", -1, 1, [(0, [0])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            manual("n", (0, [0]), (0, [0])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            manual("n", (0, [0]), (2, [0])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            manual("n", (-1, [0])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            manual("n", (0, [9])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            manual("n", (0, [0, 0])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 0 more than once.",
        ),
        (manual("n", (0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
    ],
)
def test_what_cannot_be_created_is_refused_as_kafka_refuses_it(wanted: CreatableTopic, code: ErrorCode, message: str) -> None:
    result = created_one(wanted, existing=["t.1"])
    assert (result.error_code, result.error_message) == (code, message)
    assert (result.topic_id, result.num_partitions, result.replication_factor, result.configs) == (Uuid.ZERO, -1, -1, [])


def test_partitions_may_not_have_different_numbers_of_replicas() -> None:
    result = created_one(manual("n", (0, [0]), (1, [0, 1])), racks={0: None, 1: None})
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message == (
        "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with previous partitions, "
        "which have 1 replica(s)."
    )


def test_each_topic_stands_for_itself() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        results = await create(broker, topic("a"), topic("b", 0), topic("c"))
        assert [(result.name, result.error_code) for result in results] == [("a", 0), ("b", ErrorCode.INVALID_PARTITIONS), ("c", 0)]
        assert await broker.admin_tree.all_topics() == ["a", "c"]

    asyncio.run(scenario())


def test_a_topic_named_twice_is_not_created() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        results = await create(broker, topic("dup"), topic("dup"), topic("other"))
        assert [(result.name, result.error_code, result.error_message) for result in results] == [
            ("other", 0, None),
            ("dup", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ]
        assert await broker.admin_tree.all_topics() == ["other"]

    asyncio.run(scenario())


def test_names_that_collide_within_one_request_are_not_both_created() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        results = await create(broker, topic("a.b"), topic("a_b"))
        assert [result.error_code for result in results] == [0, NAME]

    asyncio.run(scenario())


def test_too_many_partitions_in_all_refuse_every_topic() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        results = await create(broker, topic("a", 6000), topic("b", 6000), validate_only=True)
        assert [result.error_code for result in results] == [ErrorCode.POLICY_VIOLATION] * 2

    asyncio.run(scenario())


def test_validating_only_creates_nothing_and_waits_for_nothing() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        (result,) = await create(broker, topic("t", 3), validate_only=True)
        assert (result.error_code, result.num_partitions) == (0, 3)
        assert not broker.waiting.is_set()
        assert await broker.admin_tree.all_topics() == []

    asyncio.run(scenario())


def test_it_is_answered_when_every_partition_has_a_leader() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        task = broker.ask("create_topics", CreateTopicsRequest([topic("a", 2), topic("b")], 10_000), 7)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.lead(leader=-1)
        assert broker.purgatory.num_delayed == 1
        await broker.lead(leader=0)
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert [created.error_code for created in response.topics] == [0, 0]
        assert broker.purgatory.num_delayed == 0

    asyncio.run(scenario())


def test_what_has_no_leader_in_time_is_timed_out_and_the_rest_is_not() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        task = broker.ask("create_topics", CreateTopicsRequest([topic("a")], 10_000), 7)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.lead(leader=-1)
        broker.pass_time(10_001)
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        (result,) = response.topics
        assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
        assert (result.topic_id, result.num_partitions, result.configs) == (Uuid.ZERO, -1, [])
        assert await broker.admin_tree.topic_exists("a")

    asyncio.run(scenario())


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_hears_that_it_timed_out_though_it_is_done(timeout_ms: int) -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        task = broker.ask("create_topics", CreateTopicsRequest([topic("a"), topic("b", 0)], timeout_ms), 7)
        response = await asyncio.wait_for(task, DEADLINE_SECONDS)
        assert [created.error_code for created in response.topics] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_PARTITIONS]
        assert await broker.admin_tree.topic_exists("a")

    asyncio.run(scenario())


def test_only_the_controller_creates_topics() -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start()
        broker.controller.is_active = False
        results = await create(broker, topic("a"), topic("a"), topic("b"))
        assert {result.error_code for result in results} == {ErrorCode.NOT_CONTROLLER}
        assert await broker.admin_tree.all_topics() == []

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(8))
def test_every_version_can_be_written(version: int) -> None:
    async def scenario() -> Any:
        broker = await AdminBroker.start()
        message = CreateTopicsRequest([topic("a"), topic("", 0)], 10_000)
        return await broker.ask_and_act("create_topics", message, version)

    response = asyncio.run(scenario())
    read = parse(CreateTopicsResponse, serialize(response, version), version)
    assert [created.error_code for created in read.topics] == [0, NAME]


def test_a_policy_is_asked_before_anything_is_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "barnabas.broker.topics.admin_manager")

    async def scenario() -> None:
        broker = await AdminBroker.start({"create.topic.policy.class.name": f"{POLICIES}.AtLeastTwoPartitions", "node.id": "3"})
        results = await create(broker, topic("a"), topic("b", 2, configs={"retention.ms": "1"}), manual("c", (0, [0])))
        assert [(result.error_code, result.error_message) for result in results] == [
            (ErrorCode.POLICY_VIOLATION, "Two partitions at least"),
            (0, None),
            (0, None),
        ]
        policy = AtLeastTwoPartitions.made
        assert policy.configs["node.id"] == "3"
        _, b, c = policy.asked
        assert (b.topic, b.num_partitions, b.replication_factor, b.replicas_assignments, b.configs) == (
            "b",
            2,
            1,
            None,
            {"retention.ms": "1"},
        )
        assert (c.num_partitions, c.replication_factor, c.replicas_assignments) == (None, None, {0: (0,)})
        broker.admin.shutdown()
        assert policy.closed

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == ["Topic a is not created: Two partitions at least"]


def test_a_policy_that_fails_refuses_the_topic_and_no_other_request(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        broker = await AdminBroker.start({"create.topic.policy.class.name": f"{POLICIES}.Broken"})
        (result,) = await create(broker, topic("a"))
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(scenario())
    assert "a bug of the policy" in caplog.text


def test_a_thousand_topics_of_ten_partitions_are_created_within_seconds() -> None:
    async def scenario() -> float:
        broker = await AdminBroker.start()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        results = await create(broker, *(topic(f"t{number}", 10) for number in range(1000)))
        assert {result.error_code for result in results} == {0}
        return loop.time() - begun

    assert asyncio.run(scenario()) < DEADLINE_SECONDS
