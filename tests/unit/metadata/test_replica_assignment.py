"""Replica assignment: Kafka's worked examples, and what holds for every cluster."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import InvalidPartitions, InvalidReplicationFactor
from barnabas.metadata.replica_assignment import (
    BrokerMetadata,
    IncompleteRacks,
    assign_replicas_to_brokers,
    rack_alternated,
    without_partial_racks,
)

SIX_IN_THREE_RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


class Fixed(Random):
    """Chance that gives what it was told to."""

    def __init__(self, *drawn: int) -> None:
        super().__init__()
        self._drawn = list(drawn)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self._drawn.pop(0)


def brokers(*ids: int, racks: dict[int, str] | None = None) -> list[BrokerMetadata]:
    return [BrokerMetadata(broker_id, (racks or {}).get(broker_id)) for broker_id in ids]


def test_the_table_of_five_brokers_and_ten_partitions() -> None:
    assert assign_replicas_to_brokers(brokers(0, 1, 2, 3, 4), 10, 3, Random(), fixed_start_index=0) == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


def test_three_brokers_from_the_third_on_with_a_shift_of_two() -> None:
    assert assign_replicas_to_brokers(brokers(0, 1, 2), 2, 3, Fixed(2, 2)) == {0: (2, 0, 1), 1: (0, 1, 2)}


def test_indexes_are_places_in_the_list_of_brokers_and_not_ids() -> None:
    assert assign_replicas_to_brokers(brokers(2, 5, 8), 1, 3, Fixed(2, 2)) == {0: (8, 2, 5)}


def test_three_partitions_of_two_replicas_on_three_brokers() -> None:
    assert assign_replicas_to_brokers(brokers(0, 1, 2), 3, 2, Fixed(1, 1)) == {0: (1, 0), 1: (2, 1), 2: (0, 2)}


@pytest.mark.parametrize("start", range(3))
@pytest.mark.parametrize("shift", range(3))
def test_brokers_have_as_many_directories_as_each_other_or_one_more(start: int, shift: int) -> None:
    four_of_two = assign_replicas_to_brokers(brokers(0, 1, 2), 4, 2, Fixed(start, shift))
    three_of_three = assign_replicas_to_brokers(brokers(0, 1, 2), 3, 3, Fixed(start, shift))
    directories = [
        Counter(broker for replicas in assignment.values() for broker in replicas) for assignment in (four_of_two, three_of_three)
    ]
    assert [sorted(count.values()) for count in directories] == [[2, 3, 3], [3, 3, 3]]


def test_the_shift_grows_with_every_round() -> None:
    assignment = assign_replicas_to_brokers(brokers(0, 1, 2), 6, 2, Random(), fixed_start_index=0)
    assert [assignment[partition] for partition in (0, 3)] == [(0, 1), (0, 2)]


def test_added_partitions_go_on_where_the_others_ended() -> None:
    whole = assign_replicas_to_brokers(brokers(0, 1, 2), 5, 2, Random(), fixed_start_index=0)
    added = assign_replicas_to_brokers(brokers(0, 1, 2), 3, 2, Random(), fixed_start_index=0, start_partition_id=2)
    assert list(added) == [2, 3, 4]
    assert added == {partition: whole[partition] for partition in (2, 3, 4)}


def test_brokers_alternate_by_rack() -> None:
    assert rack_alternated(SIX_IN_THREE_RACKS) == [0, 3, 1, 5, 4, 2]
    assert rack_alternated({broker: f"rack{broker // 3}" for broker in range(9)}) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert rack_alternated({0: "a", 1: "a", 2: "a", 3: "b"}) == [0, 3, 1, 2]


def test_six_brokers_in_three_racks() -> None:
    assignment = assign_replicas_to_brokers(brokers(*range(6), racks=SIX_IN_THREE_RACKS), 7, 3, Random(), fixed_start_index=0)
    assert assignment == {0: (0, 3, 1), 1: (3, 1, 5), 2: (1, 5, 4), 3: (5, 4, 2), 4: (4, 2, 0), 5: (2, 0, 3), 6: (0, 4, 2)}


def test_racks_of_some_brokers_only_are_refused() -> None:
    with pytest.raises(IncompleteRacks):
        assign_replicas_to_brokers(brokers(0, 1, racks={0: "a"}), 1, 1, Random())


def test_racks_of_some_brokers_only_can_be_left_out_of_account() -> None:
    assert without_partial_racks(brokers(0, 1, racks={0: "a"})) == brokers(0, 1)
    assert without_partial_racks(brokers(0, 1, racks={0: "a", 1: "b"})) == brokers(0, 1, racks={0: "a", 1: "b"})


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(InvalidPartitions):
        assign_replicas_to_brokers(brokers(0), 0, 1, Random())
    with pytest.raises(InvalidReplicationFactor):
        assign_replicas_to_brokers(brokers(0), 1, 0, Random())
    with pytest.raises(InvalidReplicationFactor, match=r"Replication factor: 2 larger than available brokers: 1\."):
        assign_replicas_to_brokers(brokers(0), 1, 2, Random())


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[BrokerMetadata], int, int]:
    count = draw(st.integers(1, 9))
    with_racks = draw(st.booleans())
    racks = {broker_id: f"r{draw(st.integers(0, 3))}" for broker_id in range(count)} if with_racks else {}
    return brokers(*range(count), racks=racks), draw(st.integers(1, 30)), draw(st.integers(1, count))


@given(clusters(), st.integers())
def test_every_partition_has_different_brokers_and_leaders_are_spread_evenly(
    cluster: tuple[list[BrokerMetadata], int, int], seed: int
) -> None:
    members, partitions, replication_factor = cluster
    assignment = assign_replicas_to_brokers(members, partitions, replication_factor, Random(seed))
    assert list(assignment) == list(range(partitions))
    assert all(len(set(replicas)) == replication_factor for replicas in assignment.values())
    leaders = Counter({member.id: 0 for member in members})
    leaders.update(replicas[0] for replicas in assignment.values())
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(clusters(), st.integers())
def test_every_rack_has_a_replica_where_there_are_enough(cluster: tuple[list[BrokerMetadata], int, int], seed: int) -> None:
    members, partitions, replication_factor = cluster
    racks = {member.id: member.rack for member in members}
    rack_count = len(set(racks.values()))
    if racks[0] is None:
        return
    for replicas in assign_replicas_to_brokers(members, partitions, replication_factor, Random(seed)).values():
        assert len({racks[replica] for replica in replicas}) == min(rack_count, replication_factor)
