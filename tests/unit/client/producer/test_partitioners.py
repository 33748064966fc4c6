"""Keys go where every Kafka client sends them; records without a key stay together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer.partitioners import RoundRobinPartitioner, StickyPartitioner, murmur2, partition_for_key
from tests.unit.client.producer.parts import cluster


@pytest.mark.parametrize(
    ("key", "java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_numbers_of_kafka(key: bytes, java: int) -> None:
    assert murmur2(key) == java & 0xFFFFFFFF


@given(st.binary(max_size=40), st.integers(1, 1000))
def test_a_key_has_one_partition_among_those_there_are(key: bytes, count: int) -> None:
    assert 0 <= partition_for_key(key, count) < count
    assert partition_for_key(key, count) == partition_for_key(key, count)


def test_round_robin_passes_over_partitions_without_a_leader() -> None:
    partitioner = RoundRobinPartitioner()
    known = cluster({"t": [1, None, 2]})
    assert [partitioner.partition("t", None, None, None, None, known) for _ in range(4)] == [0, 2, 0, 2]


def test_round_robin_takes_all_where_none_has_a_leader() -> None:
    partitioner = RoundRobinPartitioner()
    known = cluster({"t": [None, None, None]})
    assert [partitioner.partition("t", None, None, None, None, known) for _ in range(4)] == [0, 1, 2, 0]


def test_round_robin_counts_for_each_topic_apart() -> None:
    partitioner = RoundRobinPartitioner()
    known = cluster({"t": [1, 1], "u": [1, 1]})
    assert [partitioner.partition(topic, None, None, None, None, known) for topic in "tutu"] == [0, 0, 1, 1]


def sticky(*random: int, size: int = 100) -> StickyPartitioner:
    numbers = iter(random)
    return StickyPartitioner("t", size, lambda: next(numbers))


def test_records_without_a_key_stay_with_one_partition() -> None:
    partitioner = sticky(1)
    known = cluster({"t": [1, 1, 1]})
    assert partitioner.current(known) == 1
    partitioner.appended(99, known, may_switch=True)
    assert partitioner.current(known) == 1


def test_they_move_on_when_a_batch_is_full() -> None:
    partitioner = sticky(1, 2)
    known = cluster({"t": [1, 1, 1]})
    partitioner.current(known)
    partitioner.appended(100, known, may_switch=True)
    assert partitioner.current(known) == 2


def test_they_do_not_leave_a_batch_half_full_before_twice_its_size() -> None:
    partitioner = sticky(1, 2)
    known = cluster({"t": [1, 1, 1]})
    partitioner.current(known)
    partitioner.appended(150, known, may_switch=False)
    assert partitioner.current(known) == 1
    partitioner.appended(50, known, may_switch=False)
    assert partitioner.current(known) == 2


def test_only_partitions_with_a_leader_are_chosen() -> None:
    assert sticky(1).current(cluster({"t": [1, None, 2]})) == 2


def test_all_partitions_are_chosen_from_if_none_has_a_leader() -> None:
    assert sticky(5).current(cluster({"t": [None, None, None]})) == 2


@pytest.mark.parametrize(("random", "chosen"), [(0, 0), (3, 0), (4, 1), (5, 2), (7, 2), (8, 0)])
def test_short_queues_are_chosen_more_often(random: int, chosen: int) -> None:
    """The queues 0, 3, 1 weigh 4, 1, 3, as in Kafka's own example."""
    partitioner = sticky(random)
    partitioner.update_load([0, 3, 1], [0, 1, 2])
    assert partitioner.current(cluster({"t": [1, 1, 1]})) == chosen


def test_equal_queues_weigh_the_same() -> None:
    partitioner = sticky(2)
    partitioner.update_load([2, 2, 2], [0, 1, 2])
    assert partitioner.current(cluster({"t": [1, 1, 1]})) == 2


def test_a_partition_that_is_left_out_is_not_chosen() -> None:
    partitioner = sticky(1)
    partitioner.update_load([2, 2], [0, 2], excluded=True)
    assert partitioner.current(cluster({"t": [1, 1, 1]})) == 2
