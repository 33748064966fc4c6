"""The planners of `barnabas balance` and `barnabas drain`: for any cluster, and for a few that everybody has seen."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tools.balancing.balance_planner import BalancePlanner
from barnabas.tools.balancing.cluster_load import BrokerPlace, ClusterLoad, PartitionLoad, carried
from barnabas.tools.balancing.drain_planner import CannotDrain, DrainPlanner
from barnabas.tools.balancing.load_board import DIMENSIONS, LoadBoard
from barnabas.tools.balancing.plan import Plan
from barnabas.topic_partition import TopicPartition

MB = 2**20


@st.composite
def clusters(draw: st.DrawFn) -> ClusterLoad:
    """Up to six brokers, with racks or without, and partitions of any size, any number of replicas and any traffic."""
    ids = draw(st.lists(st.integers(0, 20), min_size=1, max_size=6, unique=True))
    racks = draw(st.sampled_from([None, ["a"], ["a", "b"], ["a", "b", "c"]]))
    brokers = tuple(BrokerPlace(broker, None if racks is None else draw(st.sampled_from(racks))) for broker in ids)
    partitions = []
    for number in range(draw(st.integers(0, 14))):
        replicas = draw(st.permutations(ids))[: draw(st.integers(1, len(ids)))]
        size, rate = draw(st.sampled_from([0, 5, 100, 4000])) * MB, draw(st.sampled_from([0, 10, MB, 50 * MB]))
        name = TopicPartition(draw(st.sampled_from(["a", "b"])), number)
        partitions.append(PartitionLoad(name, tuple(replicas), draw(st.sampled_from(replicas)), size, rate))
    return ClusterLoad(brokers, tuple(partitions))


def racks_of(load: ClusterLoad, replicas: Sequence[int]) -> int:
    racks = {broker.id: broker.rack for broker in load.brokers}
    return len({racks[broker] for broker in replicas if racks.get(broker) is not None})


def after(plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    return {**plan.load.assignment, **plan.targets}


def score(load: ClusterLoad, assignment: Mapping[TopicPartition, tuple[int, ...]]) -> float:
    moved = [PartitionLoad(one.partition, assignment[one.partition], one.leader, one.bytes, one.rate) for one in load.partitions]
    return LoadBoard(ClusterLoad(load.brokers, tuple(moved)), load.ids).score()


def check_replicas(plan: Plan) -> None:
    for partition, replicas in after(plan).items():
        assert len(replicas) == len(set(replicas)) == len(plan.load.assignment[partition])
        assert set(replicas) <= set(plan.load.ids)


@given(clusters())
@settings(max_examples=300, deadline=None)
def test_a_balanced_plan_keeps_every_replica_and_every_rack(load: ClusterLoad) -> None:
    plan = BalancePlanner(load).plan()
    check_replicas(plan)
    for partition, replicas in after(plan).items():
        assert racks_of(load, replicas) >= racks_of(load, load.assignment[partition])


@given(clusters())
@settings(max_examples=300, deadline=None)
def test_a_balanced_plan_is_never_worse_than_before(load: ClusterLoad) -> None:
    """As a whole, and for the broker that carries most of anything, unless that is near the mean."""
    plan = BalancePlanner(load).plan()
    assert score(load, after(plan)) <= score(load, load.assignment) + 1e-9
    limits = LoadBoard(load, load.ids).limits
    for broker in carried(load, after(plan)).values():
        amounts = (broker.replicas, broker.leaders, broker.bytes, broker.traffic)
        assert all(amounts[dimension] <= limits[dimension] + 1e-6 for dimension in DIMENSIONS)


@given(clusters(), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_the_same_cluster_in_any_order_gives_the_same_plan(load: ClusterLoad, seed: int) -> None:
    chance = random.Random(seed)
    shuffled = ClusterLoad(
        tuple(chance.sample(load.brokers, len(load.brokers))), tuple(chance.sample(load.partitions, len(load.partitions)))
    )
    assert BalancePlanner(load).plan().moves == BalancePlanner(shuffled).plan().moves


@given(clusters())
@settings(max_examples=200, deadline=None)
def test_a_balanced_cluster_is_left_alone(load: ClusterLoad) -> None:
    plan = BalancePlanner(load).plan()
    moved = tuple(PartitionLoad(one.partition, after(plan)[one.partition], None, one.bytes, one.rate) for one in load.partitions)
    again = BalancePlanner(ClusterLoad(load.brokers, moved)).plan()
    assert again.copies == 0


@given(clusters(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_drained_broker_has_nothing_and_nothing_else_was_moved(load: ClusterLoad, data: st.DataObject) -> None:
    broker = data.draw(st.sampled_from(load.ids))
    try:
        plan = DrainPlanner(load, broker).plan()
    except CannotDrain:
        lengths = [len(one.replicas) for one in load.partitions if broker in one.replicas]
        assert len(load.ids) == 1 or max(lengths) >= len(load.ids)
        return
    check_replicas(plan)
    assert plan.copies == sum(broker in one.replicas for one in load.partitions)
    for one in load.partitions:
        replicas = after(plan)[one.partition]
        assert broker not in replicas
        if broker not in one.replicas:
            assert replicas == one.replicas
        kept = [other for other in one.replicas if other != broker]
        possible = [[*kept, other] for other in load.ids if other != broker and other not in kept]
        assert set(kept) <= set(replicas)
        if broker in one.replicas:
            assert racks_of(load, replicas) == max(racks_of(load, choice) for choice in possible)


def equal(brokers: int, partitions: int, size: int = MB, rate: int = 0) -> ClusterLoad:
    """Partitions with three replicas on the first three brokers; all others are empty."""
    loads = [
        PartitionLoad(TopicPartition("t", number), tuple((number + shift) % 3 + 1 for shift in range(3)), number % 3 + 1, size, rate)
        for number in range(partitions)
    ]
    return ClusterLoad(tuple(BrokerPlace(broker) for broker in range(1, brokers + 1)), tuple(loads))


def test_a_fourth_broker_gets_about_a_quarter_and_nothing_moves_between_the_others() -> None:
    plan = BalancePlanner(equal(4, 16, 100 * MB)).plan()
    assert {one.leaders for one in plan.after().values()} == {4}
    assert {broker: one.replicas for broker, one in plan.after().items()} == {1: 12, 2: 13, 3: 12, 4: 11}  # within 10 % of 12
    assert plan.copies == 11
    assert {broker for move in plan.moves for broker in move.adding} == {4}


def test_a_large_partition_counts_for_as_much_as_many_small_ones() -> None:
    sizes = {1: [4000], 2: [1000, 1000, 1000, 1000], 3: []}
    loads = [
        PartitionLoad(TopicPartition(f"t{broker}", number), (broker,), broker, size * MB)
        for broker, listed in sizes.items()
        for number, size in enumerate(listed)
    ]
    plan = BalancePlanner(ClusterLoad(tuple(map(BrokerPlace, sizes)), tuple(loads))).plan()
    assert {broker: one.bytes // MB for broker, one in plan.after().items()} == {1: 4000, 2: 2000, 3: 2000}


def test_leaders_move_without_a_copy_also_over_a_broker_between() -> None:
    """Broker 1 leads two partitions more than broker 3, which has no replica of any of them."""
    replicas = [(1, 2), (1, 2), (1, 2), (2, 3), (2, 3), (3, 2)]
    loads = [PartitionLoad(TopicPartition("t", number), one, one[0]) for number, one in enumerate(replicas)]
    plan = BalancePlanner(ClusterLoad(tuple(map(BrokerPlace, (1, 2, 3))), tuple(loads))).plan()
    assert {broker: one.leaders for broker, one in plan.after().items()} == {1: 2, 2: 2, 3: 2}


def test_traffic_of_leaders_is_evened_by_leaders() -> None:
    rates = [8 * MB, 8 * MB, 0, 0]
    firsts = [1, 1, 2, 2]
    loads = [
        PartitionLoad(TopicPartition("t", number), (first, 3 - first), first, MB, rate)
        for number, (first, rate) in enumerate(zip(firsts, rates, strict=True))
    ]
    plan = BalancePlanner(ClusterLoad((BrokerPlace(1), BrokerPlace(2)), tuple(loads))).plan()
    assert plan.copies == 0
    assert plan.after()[1].traffic == plan.after()[2].traffic


def test_a_broker_without_room_gets_nothing() -> None:
    load = equal(3, 9, 100 * MB)
    full = ClusterLoad((*load.brokers, BrokerPlace(4, None, 350 * MB)), load.partitions)
    plan = BalancePlanner(full).plan()
    assert plan.after()[4].bytes <= 315 * MB
    assert plan.copies == 3


def cordoned(load: ClusterLoad, *brokers: int) -> ClusterLoad:
    return replace(load, brokers=tuple(replace(one, is_cordoned=one.id in brokers) for one in load.brokers))


@given(clusters(), st.data())
@settings(max_examples=200, deadline=None)
def test_a_cordoned_broker_gets_nothing_and_keeps_what_it_has(load: ClusterLoad, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(load.ids)))
    broker = data.draw(st.sampled_from(load.ids))
    plans = [BalancePlanner(cordoned(load, *chosen)).plan()]
    with suppress(CannotDrain):
        plans.append(DrainPlanner(cordoned(load, *chosen), broker).plan())
        assert not any(broker in replicas for replicas in after(plans[1]).values())
    for plan in plans:
        check_replicas(plan)
        assert not any(chosen & set(move.adding) for move in plan.moves)
    assert not any(chosen & set(move.removing) for move in plans[0].moves)
    assert all(move.after[0] in {move.before[0], *load.ids} - (chosen - {move.before[0]}) for move in plans[0].moves)


def test_a_cordoned_broker_is_no_part_of_the_mean() -> None:
    load = equal(4, 16, 100 * MB)
    assert BalancePlanner(cordoned(load, 4)).plan().moves == ()


def test_replicas_of_a_dead_broker_are_copied_from_the_others() -> None:
    load = equal(4, 6)
    dead = ClusterLoad(tuple(broker for broker in load.brokers if broker.id != 2), load.partitions)
    plan = DrainPlanner(dead, 2).plan()
    assert plan.copies == 6
    assert {one for replicas in plan.targets.values() for one in replicas} == {1, 3, 4}


@pytest.mark.parametrize(
    ("load", "broker", "text"),
    [
        (equal(3, 2), 2, "without broker 2, 2 brokers cannot keep the 3 replicas of t: start another broker, or lower their "),
        (ClusterLoad((BrokerPlace(7),), ()), 7, "broker 7 is the only broker: start another one before you drain it"),
        (
            cordoned(equal(4, 2), 4),
            2,
            "without broker 2, 2 brokers without a cordon cannot keep the 3 replicas of t: start another broker, or lower their ",
        ),
        (
            cordoned(equal(2, 0), 1),
            2,
            "all brokers but 2 are cordoned, and get no replicas: remove cordoned.log.dirs of one before you drain it",
        ),
    ],
)
def test_a_drain_that_is_impossible_names_the_reason_and_the_fix(load: ClusterLoad, broker: int, text: str) -> None:
    with pytest.raises(CannotDrain) as refused:
        DrainPlanner(load, broker).plan()
    assert str(refused.value).startswith(text)


def test_one_partition_with_more_replicas_than_the_last_of_its_topic_makes_a_drain_impossible() -> None:
    load = equal(3, 2)
    first, last = load.partitions
    uneven = ClusterLoad(load.brokers, (first, replace(last, replicas=last.replicas[:2])))
    with pytest.raises(CannotDrain, match="without broker 2, 2 brokers cannot keep the 3 replicas of t: "):
        DrainPlanner(uneven, 2).plan()


def test_a_partition_without_a_leader_cannot_be_drained() -> None:
    load = ClusterLoad((BrokerPlace(1), BrokerPlace(2)), (PartitionLoad(TopicPartition("t", 0), (3,), None),))
    with pytest.raises(CannotDrain, match=r"t-0 cannot be copied without a leader"):
        DrainPlanner(load, 3).plan()


def test_a_large_cluster_is_even_after_few_moves() -> None:
    chance = random.Random(3)
    brokers = tuple(BrokerPlace(number, f"rack-{number % 3}") for number in range(30))
    loads = tuple(
        PartitionLoad(
            TopicPartition("t", number), tuple(chance.sample(range(25), 3)), None, chance.randrange(1000) * MB, chance.randrange(MB)
        )
        for number in range(600)
    )
    plan = BalancePlanner(ClusterLoad(brokers, loads)).plan()
    bytes_after = [one.bytes for one in plan.after().values()]
    mean = sum(bytes_after) / 30
    assert all(abs(size - mean) < 0.15 * mean for size in bytes_after)
    assert plan.copies < 600  # of 1800
