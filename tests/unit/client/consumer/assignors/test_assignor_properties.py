"""What holds of every assignment, whatever the group."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.assignors import (
    AbstractPartitionAssignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
)
from barnabas.client.consumer.assignors.sticky_assignor import write_user_data
from barnabas.topic_partition import TopicPartition

Topics = dict[str, list[frozenset[str]]]
Group = dict[str, Subscription]
Result = dict[str, list[TopicPartition]]

NAMES = ("t0", "t1", "t2", "t3")
RACKS = ("a", "b", "c")


@st.composite
def groups(draw: st.DrawFn) -> tuple[Topics, Group]:
    racks = st.frozensets(st.sampled_from(RACKS), min_size=1) if draw(st.booleans()) else st.just(frozenset[str]())
    topics = {name: draw(st.lists(racks, min_size=1, max_size=8)) for name in NAMES}
    same = draw(st.booleans())
    subscribed = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    members = {
        f"m{number}": Subscription(
            tuple(sorted(subscribed if same else draw(st.sets(st.sampled_from(NAMES), min_size=1)))),
            rack_id=draw(st.one_of(st.none(), st.sampled_from(RACKS))),
        )
        for number in range(draw(st.integers(1, 7)))
    }
    return topics, members


def run(assignor: AbstractPartitionAssignor, topics: Topics, members: Group) -> Result:
    subscribed = {topic for one in members.values() for topic in one.topics}
    return assignor.assign_partitions({topic: racks for topic, racks in topics.items() if topic in subscribed}, members)


def owning(members: Group, result: Result, generation: int) -> Group:
    """The same members, telling what they own in every way there is."""
    return {
        name: replace(
            one,
            owned_partitions=tuple(result.get(name, ())),
            user_data=write_user_data(result.get(name, ()), generation),
            generation_id=generation,
        )
        for name, one in members.items()
    }


def everything(topics: Topics, members: Group) -> list[TopicPartition]:
    subscribed = {topic for one in members.values() for topic in one.topics}
    return sorted(TopicPartition(topic, number) for topic in subscribed for number in range(len(topics[topic])))


def check(topics: Topics, members: Group, result: Result) -> None:
    assert sorted(one for got in result.values() for one in got) == everything(topics, members)
    assert all(one.topic in members[member].topics for member, got in result.items() for one in got)


def kept(before: Result, after: Result) -> int:
    return sum(len(set(before.get(member, ())) & set(got)) for member, got in after.items())


@given(groups())
def test_every_partition_goes_to_exactly_one_member_that_wants_it(case: tuple[Topics, Group]) -> None:
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()):
        check(*case, run(assignor, *case))


@given(groups())
def test_range_gives_members_of_a_topic_shares_that_differ_by_one(case: tuple[Topics, Group]) -> None:
    topics, members = case
    result = run(RangeAssignor(), topics, members)
    for topic in {topic for one in members.values() for topic in one.topics}:
        shares = Counter({member: 0 for member, one in members.items() if topic in one.topics})
        shares.update(member for member, got in result.items() for one in got if one.topic == topic)
        assert max(shares.values()) - min(shares.values()) <= 1


@given(groups())
def test_sticky_is_as_even_as_can_be_where_all_want_the_same(case: tuple[Topics, Group]) -> None:
    topics, members = case
    members = {name: replace(one, topics=members["m0"].topics) for name, one in members.items()}
    shares = [len(got) for got in run(StickyAssignor(), topics, members).values()]
    assert max(shares) - min(shares) <= 1


@given(groups())
def test_sticky_changes_nothing_when_nothing_has_changed(case: tuple[Topics, Group]) -> None:
    topics, members = case
    members = {name: replace(one, rack_id=None) for name, one in members.items()}
    first = run(StickyAssignor(), topics, members)
    second = run(StickyAssignor(), topics, owning(members, first, 1))
    assert kept(first, second) == len(everything(topics, members))


@given(groups())
def test_sticky_moves_nothing_of_those_that_stay_when_one_leaves(case: tuple[Topics, Group]) -> None:
    topics, members = case
    members = {name: replace(one, rack_id=None, topics=members["m0"].topics) for name, one in members.items()}
    first = run(StickyAssignor(), topics, members)
    left = {name: one for name, one in members.items() if name != "m0"}
    if not left:
        return
    second = run(StickyAssignor(), topics, owning(left, first, 1))
    check(topics, left, second)
    assert kept(first, second) == sum(len(first[name]) for name in left)


@given(groups(), groups())
def test_a_cooperative_group_gets_there_without_a_partition_ever_having_two_owners(
    case: tuple[Topics, Group], later: tuple[Topics, Group]
) -> None:
    """From one group to another: members come, go and change what they want."""
    topics, members = case
    owned = run(CooperativeStickyAssignor(), topics, members)
    members = {name: replace(one, rack_id=None) for name, one in later[1].items()}
    rounds = [owned]
    for generation in range(1, 12):
        current = owning(members, {name: rounds[-1].get(name, []) for name in members}, generation)
        current = {name: _dropped(one) for name, one in current.items()}
        rounds.append(run(CooperativeStickyAssignor(), topics, current))
        if rounds[-1] == rounds[-2]:
            break
    check(topics, members, rounds[-1])
    for before, after in pairwise(rounds):
        holders = {one: member for member, got in before.items() if member in members for one in got if one.topic in members[member].topics}
        assert all(holders.get(one, member) == member for member, got in after.items() for one in got)


def _dropped(one: Subscription) -> Subscription:
    """A member gives up what it no longer subscribes to before it joins."""
    return replace(one, owned_partitions=tuple(owned for owned in one.owned_partitions if owned.topic in one.topics))
