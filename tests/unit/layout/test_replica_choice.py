"""Which replica a conversion takes, and where it is afterwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.layout.errors import NotConvertible
from barnabas.layout.replica_choice import Candidate, in_order_of_trust, keep, spread
from barnabas.metadata.znodes.topics import PartitionState
from barnabas.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)


def replica(node: int, end: int = 10, epoch: int = 5, high_watermark: int = 10) -> Candidate:
    return Candidate(node, end, epoch, high_watermark)


def trusted(leader: int, isr: tuple[int, ...], *candidates: Candidate) -> list[int]:
    return [replica.node for replica in in_order_of_trust(ORDERS, PartitionState(leader, 5, isr, 1), candidates)]


def test_the_leader_comes_first() -> None:
    assert trusted(2, (1, 2, 3), replica(1, end=12), replica(2), replica(3))[0] == 2


def test_without_a_leader_the_longest_log_of_the_isr_comes_first() -> None:
    assert trusted(-1, (1, 3), replica(1, end=10), replica(2, end=99), replica(3, end=12)) == [3, 1, 2]


def test_a_later_epoch_counts_more_than_a_longer_log() -> None:
    assert trusted(-1, (1, 3), replica(1, end=11, epoch=6), replica(3, end=12, epoch=5)) == [1, 3]


def test_a_leader_that_is_not_in_sync_does_not_come_first() -> None:
    assert trusted(2, (1,), replica(1), replica(2, end=99)) == [1, 2]


def test_a_partition_without_a_log_of_its_isr_is_refused() -> None:
    with pytest.raises(NotConvertible, match="no replica of orders-0 is clean: its ISR is 3, but there are logs of 1, 2 only"):
        trusted(3, (3,), replica(1), replica(2))


def test_a_partition_of_which_nothing_is_there_is_refused() -> None:
    with pytest.raises(NotConvertible, match="there are logs of no broker only"):
        trusted(3, (3,))


def test_a_leader_that_lacks_acknowledged_records_is_refused() -> None:
    with pytest.raises(NotConvertible, match="that of broker 1 ends at 10, but records up to 12 were acknowledged"):
        trusted(1, (1, 2), replica(1, end=10), replica(2, end=12, high_watermark=12))


def test_one_replica_becomes_three_with_preferred_leaders_all_around() -> None:
    placed = [spread(1, 3, range(1, 4), first) for first in range(4)]
    assert [placement.replicas for placement in placed] == [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 2, 3)]
    assert all(each.homes == {1: 1} for each in placed)


def test_where_the_first_broker_gets_no_replica_the_preferred_leader_gets_the_log() -> None:
    assert spread(0, 2, range(1, 6), 2).homes == {0: 3}


def test_replicas_stay_with_their_brokers() -> None:
    placed = keep([replica(2), replica(3), replica(1)], (1, 2, 3), 3, range(1, 6), 4)
    assert placed.replicas == (1, 2, 3) and placed.homes == {1: 1, 2: 2, 3: 3}


def test_the_only_one_in_sync_takes_the_place_of_one_that_is_not() -> None:
    placed = keep([replica(3), replica(1), replica(2)], (1, 2, 3), 2, range(1, 3), 0)
    assert placed.replicas == (1, 2) and placed.homes == {1: 1, 3: 2}


@given(
    st.lists(st.integers(1, 8), unique=True, min_size=1, max_size=8).flatmap(
        lambda replicas: st.tuples(st.just(replicas), st.permutations(replicas), st.integers(0, len(replicas)))
    ),
    st.integers(1, 8),
    st.integers(0, 100),
    st.data(),
)
def test_the_most_trusted_replicas_are_kept_each_on_a_broker_of_its_own(
    found: tuple[list[int], list[int], int], brokers: int, first: int, data: st.DataObject
) -> None:
    replicas, trust, missing = found
    ordered = [replica(node) for node in trust[: len(trust) - missing]]
    factor = data.draw(st.integers(1, brokers))
    placed = keep(ordered, replicas, factor, range(1, brokers + 1), first)
    assert len(placed.replicas) == len(set(placed.replicas)) == factor
    assert set(placed.homes) == {candidate.node for candidate in ordered[:factor]}
    assert len(set(placed.homes.values())) == len(placed.homes)
    assert set(placed.homes.values()) <= set(placed.replicas) <= set(range(1, brokers + 1))
    assert all(placed.homes[node] == node for node in placed.homes if node <= brokers)
