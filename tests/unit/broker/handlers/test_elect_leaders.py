"""ElectLeaders: the events for the controller, the results for the client, and the wait. The texts are those of Kafka 4.2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import ElectionNotNeeded, KafkaError, PreferredLeaderNotAvailable, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import parse, serialize
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.elect_leaders_response import ElectLeadersResponse
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.admin_broker import DEADLINE_SECONDS, AdminBroker

NOT_NEEDED = ElectionNotNeeded("Leader election not needed for topic partition.")

Told = list[tuple[str, list[tuple[int, int, str | None]]]]


class Elector:
    """A controller that has its answers ready, and notes what it was asked."""

    is_active = True
    cordoned_brokers: frozenset[int] = frozenset()

    def __init__(self, outcomes: Mapping[TopicPartition, int | KafkaError]) -> None:
        self.outcomes = outcomes
        self.asked: list[tuple[list[TopicPartition], ElectionStrategy]] = []

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy
    ) -> Mapping[TopicPartition, int | KafkaError]:
        self.asked.append((list(partitions), strategy))
        return {partition: self.outcomes[partition] for partition in partitions if partition in self.outcomes}


async def broker_with(**outcomes: Sequence[int | KafkaError]) -> tuple[AdminBroker, Elector]:
    """A broker of topics that are all led by broker 0, and what comes of an election of each of their partitions."""
    elector = Elector({TopicPartition(name, number): one for name, outcome in outcomes.items() for number, one in enumerate(outcome)})
    broker = await AdminBroker.start(racks={0: None, 1: None}, controller=elector)
    for name, each in outcomes.items():
        await broker.admin_tree.create_topic(name, dict.fromkeys(range(len(each)), (0, 1)))
    await broker.lead(0)
    return broker, elector


def request_for(*topics: tuple[str, list[int]], kind: int = 0, timeout_ms: int = 10_000) -> ElectLeadersRequest:
    return ElectLeadersRequest(kind, [TopicPartitions(*topic) for topic in topics], timeout_ms)


async def elect(broker: AdminBroker, request: ElectLeadersRequest, version: int = 2) -> tuple[int, Told]:
    answer = await asyncio.wait_for(broker.ask("elect_leaders", request, version), DEADLINE_SECONDS)
    return told(parse(ElectLeadersResponse, serialize(answer, version), version))


def told(response: ElectLeadersResponse) -> tuple[int, Told]:
    topics = [
        (topic.topic, [(result.partition_id, result.error_code, result.error_message) for result in topic.partition_result])
        for topic in response.replica_election_results
    ]
    return response.error_code, topics


@pytest.mark.parametrize(("kind", "strategy"), [(0, ElectionStrategy.PREFERRED), (1, ElectionStrategy.OFFLINE_UNCLEAN)])
def test_the_controller_is_asked_for_the_kind_of_election(kind: int, strategy: ElectionStrategy) -> None:
    async def scenario() -> None:
        broker, elector = await broker_with(t=[0, 0])
        assert await elect(broker, request_for(("t", [1, 0]), kind=kind)) == (0, [("t", [(1, 0, None), (0, 0, None)])])
        assert elector.asked == [([TopicPartition("t", 1), TopicPartition("t", 0)], strategy)]

    asyncio.run(scenario())


def test_the_answer_follows_the_request_doubles_included() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[0, NOT_NEEDED], u=[UnknownTopicOrPartition("No such topic as u")])
        _, topics = await elect(broker, request_for(("u", [0]), ("t", [1, 0, 1]), ("u", [0])))
        unknown = ("u", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as u")])
        not_needed = (1, ErrorCode.ELECTION_NOT_NEEDED, str(NOT_NEEDED))
        assert topics == [unknown, ("t", [not_needed, (0, 0, None), not_needed]), unknown]

    asyncio.run(scenario())


def test_of_all_partitions_those_that_need_no_election_are_left_out() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[NOT_NEEDED, 0, PreferredLeaderNotAvailable("gone")], u=[NOT_NEEDED])
        code, topics = await elect(broker, ElectLeadersRequest(0, None, 10_000))
        assert (code, sorted(topics)) == (0, [("t", [(1, 0, None), (2, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "gone")]), ("u", [])])

    asyncio.run(scenario())


def test_it_is_answered_when_the_new_leaders_are_known_here() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[1, 1])
        task = broker.ask("elect_leaders", request_for(("t", [0, 1])), 2)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        assert not task.done()
        await broker.lead(1)
        assert told(await asyncio.wait_for(task, DEADLINE_SECONDS)) == (0, [("t", [(0, 0, None), (1, 0, None)])])

    asyncio.run(scenario())


def test_a_leader_that_is_not_known_here_in_time_is_timed_out_and_nothing_else() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[1, NOT_NEEDED], u=[0])
        task = broker.ask("elect_leaders", request_for(("t", [0, 1]), ("u", [0])), 2)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        broker.pass_time(10_001)
        timed_out = (0, ErrorCode.REQUEST_TIMED_OUT, None)
        not_needed = (1, ErrorCode.ELECTION_NOT_NEEDED, str(NOT_NEEDED))
        assert told(await asyncio.wait_for(task, DEADLINE_SECONDS)) == (0, [("t", [timed_out, not_needed]), ("u", [(0, 0, None)])])

    asyncio.run(scenario())


def test_a_topic_that_goes_while_it_is_waited_for_is_timed_out() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[1])
        task = broker.ask("elect_leaders", request_for(("t", [0])), 2)
        await asyncio.wait_for(broker.waiting.wait(), DEADLINE_SECONDS)
        await broker.forget("t")
        broker.pass_time(10_001)
        assert told(await asyncio.wait_for(task, DEADLINE_SECONDS)) == (0, [("t", [(0, ErrorCode.REQUEST_TIMED_OUT, None)])])

    asyncio.run(scenario())


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_there_is_no_election(timeout_ms: int) -> None:
    async def scenario() -> None:
        broker, elector = await broker_with(t=[1])
        code = ErrorCode.REQUEST_TIMED_OUT
        assert await elect(broker, request_for(("t", [0]), timeout_ms=timeout_ms)) == (code, [("t", [(0, code, None)])])
        assert elector.asked == []

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [2, -1])
def test_a_kind_of_election_that_does_not_exist_is_refused(kind: int) -> None:
    async def scenario() -> None:
        broker, elector = await broker_with(t=[1])
        code = ErrorCode.INVALID_REQUEST
        assert await elect(broker, request_for(("t", [0]), kind=kind)) == (code, [("t", [(0, code, f"Unknown election type {kind}")])])
        assert await elect(broker, ElectLeadersRequest(kind, None)) == (code, [])
        assert elector.asked == []

    asyncio.run(scenario())


def test_an_empty_list_is_answered_with_an_empty_one_whatever_else_is_wrong() -> None:
    async def scenario() -> None:
        broker, _ = await broker_with()
        assert await elect(broker, request_for(kind=5)) == (0, [])

    asyncio.run(scenario())


def test_only_the_controller_elects() -> None:
    async def scenario() -> None:
        broker, elector = await broker_with(t=[1])
        elector.is_active = False
        code, message = ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
        assert await elect(broker, request_for(("t", [0]))) == (code, [("t", [(0, code, message)])])
        assert await elect(broker, request_for(("t", [0])), version=0) == (0, [("t", [(0, code, message)])])

    asyncio.run(scenario())


def test_what_a_controller_on_its_way_out_left_open_is_asked_of_the_next() -> None:
    async def scenario() -> None:
        broker, elector = await broker_with(t=[1])
        elector.outcomes = {}
        ((_, ((_, code, _),)),) = (await elect(broker, request_for(("t", [0]))))[1]
        assert code == ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(3))
def test_every_version_can_be_read_and_written(version: int) -> None:
    async def scenario() -> None:
        broker, _ = await broker_with(t=[0], u=[NOT_NEEDED])
        sent: Any = request_for(("t", [0]), ("u", [0]))
        received = parse(ElectLeadersRequest, serialize(sent, version), version)
        _, topics = await elect(broker, received, version)
        assert topics == [("t", [(0, 0, None)]), ("u", [(0, ErrorCode.ELECTION_NOT_NEEDED, str(NOT_NEEDED))])]

    asyncio.run(scenario())
