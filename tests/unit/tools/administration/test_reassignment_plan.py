"""Plans of kafka-reassign-partitions, with the examples of the specification."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import InvalidReplicationFactor
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.tools.administration import reassignment_plan as plans
from barnabas.tools.administration.reassignment_plan import PartitionReplica
from barnabas.tools.command_line.failures import AdminCommandFailed, AdminOperation, BadArgument
from barnabas.tools.command_line.json_plan import WrongJson
from barnabas.topic_partition import TopicPartition

P0, P1, P2 = (TopicPartition("topic-throttle", number) for number in range(3))


def test_a_plan_may_leave_the_directories_out() -> None:
    plan = plans.parse_plan('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,0]}]}')
    assert plan.partitions == [(TopicPartition("t", 0), [2, 0])]
    assert plan.log_dirs == {}


def test_any_stands_for_a_directory_of_the_brokers_choice() -> None:
    plan = plans.parse_plan('{"partitions":[{"topic":"t","partition":3,"replicas":[2,0],"log_dirs":["any","/disk1"]}]}')
    assert plan.log_dirs == {PartitionReplica("t", 3, 0): "/disk1"}


def test_what_is_printed_is_a_plan_again() -> None:
    text = plans.plan_json({P1: [1, 2], P0: [0, 1]}, {PartitionReplica("topic-throttle", 1, 2): "/disk"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"topic-throttle","partition":0,"replicas":[0,1],"log_dirs":["any","any"]},'
        '{"topic":"topic-throttle","partition":1,"replicas":[1,2],"log_dirs":["any","/disk"]}]}'
    )
    plan = plans.parse_plan(text)
    assert dict(plan.partitions) == {P0: [0, 1], P1: [1, 2]}
    assert plan.log_dirs == {PartitionReplica("topic-throttle", 1, 2): "/disk"}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"version":1}', "Partition reassignment list cannot be empty"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "Partition replica list cannot be empty"),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}',
            "Partition reassignment contains duplicate topic partitions: t-0",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2,1]}]}',
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1",
        ),
    ],
)
def test_a_plan_that_cannot_be_executed_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(AdminCommandFailed) as refused:
        plans.check_plan(plans.parse_plan(text))
    assert str(refused.value) == refusal


def test_as_many_directories_as_replicas_are_needed() -> None:
    with pytest.raises(AdminCommandFailed) as refused:
        plans.parse_plan('{"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}')
    assert str(refused.value) == "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition t-0"


@given(st.text(max_size=40))
def test_whatever_stands_in_a_file_is_a_plan_or_refused(text: str) -> None:
    for parse in (plans.parse_plan, plans.parse_topics):
        try:
            parse(text)
        except (AdminOperation, AdminCommandFailed, WrongJson):
            pass


@given(st.integers(min_value=0, max_value=80))
def test_a_plan_that_breaks_off_anywhere_is_refused(length: int) -> None:
    whole = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["a","b"]}]}'
    with pytest.raises((AdminOperation, WrongJson)):
        plans.parse_plan(whole[:length])


def test_the_end_of_a_broken_file_is_told() -> None:
    with pytest.raises(AdminOperation) as refused:
        plans.parse_plan('{"version":1,\n"partitions":[\n')
    assert "expected close marker for Array" in str(refused.value)
    assert "line: 2, column: 14" in str(refused.value)
    assert "line: 3, column: 1" in str(refused.value)


@pytest.mark.parametrize(("text", "brokers"), [("0,2", [0, 2]), ("7", [7]), ("1,2,", [1, 2])])
def test_brokers_are_listed_with_commas(text: str, brokers: list[int]) -> None:
    assert plans.parse_brokers(text) == brokers


@pytest.mark.parametrize("text", ["a", "", "1,,2", "1.5", "1, 2"])
def test_what_is_no_number_is_no_broker(text: str) -> None:
    with pytest.raises(BadArgument, match="For input string"):
        plans.parse_brokers(text)


def test_a_broker_is_listed_once() -> None:
    with pytest.raises(AdminCommandFailed, match=r"Broker list contains duplicate entries: \[1\]"):
        plans.parse_brokers("1,2,1")


def test_partitions_of_a_topic_go_to_the_given_brokers_with_as_many_replicas_as_before() -> None:
    """The example of the specification: from brokers 0, 1, 2 to 0 and 2 alone."""
    current = {TopicPartition("topic-reassign", number): [number % 3, (number + 1) % 3] for number in range(4)}
    proposed = plans.propose(current, [BrokerMetadata(0), BrokerMetadata(2)], Random(1))
    assert set(proposed) == set(current)
    assert all(sorted(replicas) == [0, 2] for replicas in proposed.values())


@given(st.integers(1, 8), st.integers(1, 12), st.integers(1, 3), st.integers())
def test_leaders_are_spread_over_racks_and_brokers(brokers: int, partitions: int, racks: int, seed: int) -> None:
    factor = min(brokers, 2)
    current = {TopicPartition("t", number): list(range(factor)) for number in range(partitions)}
    places = [BrokerMetadata(number, f"rack{number % racks}") for number in range(brokers)]
    proposed = plans.propose(current, places, Random(seed))
    leaders = [replicas[0] for replicas in proposed.values()]
    assert max(map(leaders.count, leaders)) - 1 <= partitions // brokers
    if factor == 2 and len({place.rack for place in places}) > 1:
        assert all(replicas[0] % racks != replicas[1] % racks for replicas in proposed.values())


def test_too_few_brokers_for_the_replicas_are_refused() -> None:
    current = {TopicPartition("t", 0): [0, 1]}
    with pytest.raises(InvalidReplicationFactor) as refused:
        plans.propose(current, [BrokerMetadata(0)], Random(1))
    assert str(refused.value) == "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered."
    with pytest.raises(InvalidReplicationFactor, match="All brokers are currently fenced"):
        plans.propose(current, [], Random(1))


def test_racks_of_some_brokers_only_are_refused() -> None:
    with pytest.raises(AdminOperation, match="Add --disable-rack-aware in command line"):
        plans.check_racks([BrokerMetadata(0, "a"), BrokerMetadata(1)])


def test_a_plan_is_compact_json() -> None:
    assert json.loads(plans.plan_json({}, {})) == {"version": 1, "partitions": []}
