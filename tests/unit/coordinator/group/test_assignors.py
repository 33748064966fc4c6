"""The server-side assignors, with the worked examples of Kafka's own tests."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.group.assignors import MemberSpec, PartitionAssignor
from barnabas.coordinator.group.assignors.range import RangeAssignor
from barnabas.coordinator.group.assignors.uniform import UniformAssignor
from barnabas.uuid import Uuid

T1, T2, T3 = (Uuid(bytes(15) + bytes([number])) for number in (1, 2, 3))
Plain = dict[str, dict[Uuid, set[int]]]


def assign(
    assignor: PartitionAssignor, counts: dict[Uuid, int], wants: dict[str, set[Uuid]], has: Plain | None = None, **instances: str
) -> Plain:
    specs = {
        member: MemberSpec(
            frozenset(topics), {topic: frozenset(some) for topic, some in (has or {}).get(member, {}).items()}, instances.get(member)
        )
        for member, topics in wants.items()
    }
    same = len({frozenset(topics) for topics in wants.values()}) <= 1
    assigned = assignor.assign(specs, homogeneous=same, partition_count=counts.get)
    return {member: {topic: set(some) for topic, some in topics.items()} for member, topics in assigned.items()}


# -- range


def test_range_cuts_each_topic_into_runs_and_the_first_members_get_the_rest() -> None:
    got = assign(RangeAssignor(), {T1: 3, T3: 2}, {"A": {T1, T3}, "B": {T1, T3}})
    assert got == {"A": {T1: {0, 1}, T3: {0}}, "B": {T1: {2}, T3: {1}}}


def test_range_cuts_by_subscribers_where_members_want_different_topics() -> None:
    got = assign(RangeAssignor(), {T1: 3, T2: 3, T3: 2}, {"A": {T1, T2}, "B": {T3}, "C": {T2, T3}})
    assert got == {"A": {T1: {0, 1, 2}, T2: {0, 1}}, "B": {T3: {0}}, "C": {T2: {2}, T3: {1}}}


def test_range_leaves_members_without_where_there_are_more_of_them_than_partitions() -> None:
    got = assign(RangeAssignor(), {T1: 3, T3: 2}, {name: {T1, T3} for name in "ABCD"})
    assert got == {"A": {T1: {0}, T3: {0}}, "B": {T1: {1}, T3: {1}}, "C": {T1: {2}}, "D": {}}


def test_range_puts_static_members_first_by_instance() -> None:
    got = assign(RangeAssignor(), {T1: 3}, {"A": {T1}, "B": {T1}, "C": {T1}}, C="i1", A="i2")
    assert got == {"C": {T1: {0}}, "A": {T1: {1}}, "B": {T1: {2}}}


def test_range_has_nothing_for_nobody() -> None:
    assert assign(RangeAssignor(), {T1: 3}, {}) == {}


# -- uniform, all want the same


def test_uniform_gives_everyone_the_same_number() -> None:
    got = assign(UniformAssignor(), {T1: 3, T3: 6}, {name: {T1, T3} for name in "ABC"})
    assert sorted(sum(len(some) for some in topics.values()) for topics in got.values()) == [3, 3, 3]


def test_uniform_keeps_what_members_have() -> None:
    has: Plain = {"A": {T1: {0, 1}, T2: {0, 1}}, "B": {T1: {2}, T2: {2}}}
    got = assign(UniformAssignor(), {T1: 3, T2: 3}, {"A": {T1, T2}, "B": {T1, T2}}, has)
    assert got == {"A": {T1: {0, 1}, T2: {0}}, "B": {T1: {2}, T2: {1, 2}}}


def test_uniform_gives_a_new_member_its_part_and_moves_no_more() -> None:
    has: Plain = {"A": {T1: {0, 2}, T2: {0}}, "B": {T1: {1}, T2: {1, 2}}}
    got = assign(UniformAssignor(), {T1: 3, T2: 3}, {name: {T1, T2} for name in "ABC"}, has)
    assert got == {"A": {T1: {0, 2}}, "B": {T1: {1}, T2: {1}}, "C": {T2: {0, 2}}}


def test_uniform_gives_what_a_member_left_to_those_who_stay() -> None:
    has: Plain = {"A": {T1: {0}, T2: {0}}, "B": {T1: {1}, T2: {1}}}
    got = assign(UniformAssignor(), {T1: 3, T2: 3}, {"A": {T1, T2}, "B": {T1, T2}}, has)
    assert got == {"A": {T1: {0, 2}, T2: {0}}, "B": {T1: {1}, T2: {1, 2}}}


def test_uniform_takes_back_topics_nobody_wants_any_more() -> None:
    has: Plain = {"A": {T1: {0}, T2: {0}}, "B": {T1: {1}, T2: {1}}}
    got = assign(UniformAssignor(), {T1: 2, T2: 2}, {"A": {T2}, "B": {T2}}, has)
    assert got == {"A": {T2: {0}}, "B": {T2: {1}}}


# -- uniform, different wishes


def test_uniform_gives_a_topic_only_to_those_who_want_it() -> None:
    got = assign(UniformAssignor(), {T1: 3, T3: 6}, {"A": {T3}, "B": {T1, T3}, "C": {T1}})
    assert all(T1 not in got["A"] and T3 not in got["C"] for _ in [0])
    assert sorted(sum(len(some) for some in topics.values()) for topics in got.values()) == [3, 3, 3]


WISHES = st.dictionaries(st.sampled_from("ABCDEF"), st.sets(st.sampled_from([T1, T2, T3])), min_size=1)
COUNTS = st.fixed_dictionaries({T1: st.integers(1, 9), T2: st.integers(1, 9), T3: st.integers(1, 9)})


@settings(max_examples=300, deadline=None)
@given(COUNTS, WISHES, WISHES)
def test_uniform_assigns_every_partition_once_to_someone_who_wants_it_before_and_after_a_change(
    counts: dict[Uuid, int], wishes: dict[str, set[Uuid]], changed: dict[str, set[Uuid]]
) -> None:
    assignor = UniformAssignor()
    first = assign(assignor, counts, wishes)
    check(first, counts, wishes)
    second = assign(assignor, counts, changed, first)
    check(second, counts, changed)
    assert assign(assignor, counts, changed, second) == second


@settings(max_examples=200, deadline=None)
@given(COUNTS, WISHES)
def test_range_assigns_every_partition_once_to_someone_who_wants_it(counts: dict[Uuid, int], wishes: dict[str, set[Uuid]]) -> None:
    check(assign(RangeAssignor(), counts, wishes), counts, wishes)


def check(assigned: Plain, counts: dict[Uuid, int], wishes: dict[str, set[Uuid]]) -> None:
    given_away = [(topic, partition) for topics in assigned.values() for topic, some in topics.items() for partition in some]
    subscribed = set().union(*wishes.values())
    assert len(given_away) == len(set(given_away))
    assert set(given_away) == {(topic, partition) for topic in subscribed for partition in range(counts[topic])}
    assert all(topic in wishes[member] for member, topics in assigned.items() for topic in topics)
