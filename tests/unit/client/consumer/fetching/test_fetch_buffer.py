"""What has been fetched and not been read: order, room, and what is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch
from barnabas.client.consumer.fetching.fetch_buffer import FetchBuffer
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def fetch(partition: TopicPartition, offset: int, count: int = 10, error: int = 0) -> CompletedFetch:
    data = build([(1, None, b"x", ())] * count, base_offset=offset) if count else b""
    return CompletedFetch(partition.topic, partition.partition, offset, Records(data), (), error)


def filled(*fetches: tuple[TopicPartition, CompletedFetch]) -> FetchBuffer:
    buffer = FetchBuffer()
    for partition, fetch in fetches:
        buffer.add(partition, fetch)
    return buffer


def test_fetching_goes_on_behind_what_is_here() -> None:
    buffer = filled((A, fetch(A, 5)), (A, fetch(A, 15)))
    assert buffer.next_offset(A, 5) == 25
    assert buffer.next_offset(A, 9) == 25  # in the midst of reading the first
    assert buffer.next_offset(B, 3) == 3


def test_what_does_not_go_on_from_the_position_does_not_count() -> None:
    assert filled((A, fetch(A, 5))).next_offset(A, 40) == 40
    assert filled((A, fetch(A, 5))).next_offset(A, 4) == 4
    assert filled((A, fetch(A, 5)), (A, fetch(A, 30))).next_offset(A, 5) == 5


def test_two_fetches_of_a_partition_are_enough_and_an_error_is_too() -> None:
    assert not filled((A, fetch(A, 0))).is_full_for(A)
    assert filled((A, fetch(A, 0)), (A, fetch(A, 10))).is_full_for(A)
    assert filled((A, fetch(A, 0, 0, error=1))).is_full_for(A)
    assert not filled((A, fetch(A, 0)), (A, fetch(A, 10))).is_full_for(B)


def test_what_is_passed_over_stays_and_goes_to_the_end() -> None:
    first, second, third = fetch(A, 0), fetch(B, 0), fetch(A, 10)
    buffer = filled((A, first), (B, second), (A, third))
    assert buffer.first([first]) is second
    assert buffer.first([first, second, third]) is None
    buffer.to_end([first, third])
    assert buffer.first() is second
    buffer.remove(B, second)
    assert buffer.first() is first


def test_removing_what_is_gone_harms_nothing_else() -> None:
    """The loop may drop a partition while a poll reads from it."""
    mine, other = fetch(A, 0), fetch(B, 0)
    buffer = filled((A, mine), (B, other))
    buffer.drop(A)
    buffer.remove(A, mine)
    buffer.to_end([mine])
    assert len(buffer) == 1
    assert buffer.first() is other
    assert buffer.size_bytes == other.size


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "drop", "retain", "end"]), st.sampled_from([A, B])), max_size=30))
def test_its_size_is_that_of_what_is_in_it(steps: list[tuple[str, TopicPartition]]) -> None:
    buffer = FetchBuffer()
    held: list[tuple[TopicPartition, CompletedFetch]] = []
    for what, partition in steps:
        if what == "add":
            held.append((partition, fetch(partition, 0, 3)))
            buffer.add(*held[-1])
        elif what == "remove" and held:
            buffer.remove(*held.pop(0))
        elif what == "drop":
            buffer.drop(partition)
            held = [each for each in held if each[0] != partition]
        elif what == "retain":
            buffer.retain([partition])
            held = [each for each in held if each[0] == partition]
        elif what == "end" and held:
            buffer.to_end([held[0][1]])
            held.append(held.pop(0))
        assert len(buffer) == len(held)
        assert buffer.size_bytes == sum(each.size for _, each in held)
        assert buffer.first() is (held[0][1] if held else None)
