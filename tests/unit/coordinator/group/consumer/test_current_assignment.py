"""One member on its way to its target: the steps of a reconciliation, one by one."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember, MemberState
from barnabas.coordinator.group.consumer.current_assignment import NO_EPOCH, Owned, Reconciliation
from barnabas.errors import FencedMemberEpoch
from barnabas.uuid import Uuid

T1, T2 = (Uuid(bytes(15) + bytes([number])) for number in (1, 2))
Plain = dict[Uuid, set[int]]


def member(state: MemberState = MemberState.STABLE, epoch: int = 10, pending: Plain | None = None, **_: object) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "m",
        epoch,
        epoch,
        state,
        assigned_partitions={T1: frozenset({1, 2, 3})},
        partitions_pending_revocation={topic: frozenset(some) for topic, some in (pending or {}).items()},
    )


def step(
    before: ConsumerGroupMember,
    target: Plain,
    epoch: int = 11,
    owned: Owned | None = None,
    held_by_others: frozenset[tuple[Uuid, int]] = frozenset(),
    changed: bool = False,
    topics: frozenset[Uuid] = frozenset({T1, T2}),
) -> ConsumerGroupMember:
    return Reconciliation(
        epoch,
        {topic: frozenset(some) for topic, some in target.items()},
        topics,
        lambda topic, partition: 10 if (topic, partition) in held_by_others else NO_EPOCH,
        owned,
        changed,
    ).next(before)


def seen(after: ConsumerGroupMember) -> tuple[MemberState, int, Plain, Plain]:
    assigned = {topic: set(some) for topic, some in after.assigned_partitions.items()}
    return after.state, after.member_epoch, assigned, {topic: set(some) for topic, some in after.partitions_pending_revocation.items()}


def test_a_member_at_its_target_stays_as_it_is() -> None:
    before = member()
    assert step(before, {T1: {1, 2, 3}}, epoch=10) is before


def test_the_same_partitions_at_a_new_epoch_only_move_the_epoch() -> None:
    assert seen(step(member(), {T1: {1, 2, 3}})) == (MemberState.STABLE, 11, {T1: {1, 2, 3}}, {})


def test_what_is_free_is_taken_at_once() -> None:
    assert seen(step(member(), {T1: {1, 2, 3, 4}, T2: {5}})) == (MemberState.STABLE, 11, {T1: {1, 2, 3, 4}, T2: {5}}, {})


def test_what_is_to_go_is_given_back_before_the_epoch_moves() -> None:
    after = step(member(), {T1: {2, 3, 4}})
    assert seen(after) == (MemberState.UNREVOKED_PARTITIONS, 10, {T1: {2, 3}}, {T1: {1}})
    assert step(after, {T1: {2, 3, 4}}, owned={T1: [1, 2, 3]}) is after


def test_a_member_that_gave_back_moves_on() -> None:
    before = member(MemberState.UNREVOKED_PARTITIONS, pending={T1: {4}})
    assert seen(step(before, {T1: {1, 2, 3, 5}}, owned={T1: [1, 2, 3]})) == (MemberState.STABLE, 11, {T1: {1, 2, 3, 5}}, {})


def test_a_partition_it_was_about_to_give_back_and_gets_again_is_no_obstacle() -> None:
    before = member(MemberState.UNREVOKED_PARTITIONS, pending={T1: {4}})
    after = step(before, {T1: {1, 2, 3, 4}}, owned={T1: [1, 2, 3]}, held_by_others=frozenset({(T1, 4)}))
    assert seen(after) == (MemberState.STABLE, 11, {T1: {1, 2, 3, 4}}, {})


def test_what_others_hold_is_waited_for() -> None:
    after = step(member(), {T1: {1, 2, 3, 4}, T2: {1}}, held_by_others=frozenset({(T2, 1)}))
    assert seen(after) == (MemberState.UNRELEASED_PARTITIONS, 11, {T1: {1, 2, 3, 4}}, {})
    assert seen(step(after, {T1: {1, 2, 3, 4}, T2: {1}})) == (MemberState.STABLE, 11, {T1: {1, 2, 3, 4}, T2: {1}}, {})


def test_a_topic_that_is_no_longer_wanted_is_given_back_though_the_target_has_it() -> None:
    after = step(member(), {T1: {1, 2, 3}}, epoch=10, changed=True, topics=frozenset({T2}))
    assert seen(after) == (MemberState.UNREVOKED_PARTITIONS, 10, {}, {T1: {1, 2, 3}})


def test_what_was_dropped_already_is_only_taken_off_the_list() -> None:
    after = step(member(), {T1: {1, 2, 3}}, epoch=10, owned={}, changed=True, topics=frozenset({T2}))
    assert seen(after) == (MemberState.STABLE, 10, {}, {})


def test_a_member_in_a_state_from_the_future_has_to_start_anew() -> None:
    with pytest.raises(FencedMemberEpoch, match="in a unknown state"):
        step(member(MemberState.UNKNOWN), {T1: {1}}, owned={T1: [1]})
    assert step(member(MemberState.UNKNOWN), {T1: {1, 2, 3}}, owned={}).member_epoch == 11


def test_a_state_nobody_knows_is_read_as_unknown() -> None:
    assert MemberState.of(99) is MemberState.UNKNOWN
