"""How ranges of offsets are cut into tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_barnabas.read.ranges import OffsetRange, RangePartition, split_ranges

SIZES = st.lists(st.integers(0, 10_000), min_size=1, max_size=8)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange("t", number, 100, 100 + size, "id") for number, size in enumerate(sizes)]


def cut(sizes: list[int], least: int | None = None, most: int | None = None) -> list[tuple[int, int, int]]:
    return [(one.partition, one.start, one.end) for one in split_ranges(ranges_of(sizes), least, most)]


def test_each_partition_is_one_task_and_empty_ones_are_none() -> None:
    assert cut([10, 0, 5]) == [(0, 100, 110), (2, 100, 105)]


def test_enough_partitions_are_not_cut() -> None:
    assert cut([10, 20], least=2) == [(0, 100, 110), (1, 100, 120)]


def test_one_partition_is_cut_into_as_many_tasks_as_wanted() -> None:
    assert cut([10], least=3) == [(0, 100, 103), (0, 103, 106), (0, 106, 110)]


def test_large_partitions_share_what_small_ones_leave() -> None:
    assert [one[0] for one in cut([1, 100, 100], least=5)] == [0, 1, 1, 2, 2]


def test_there_are_no_more_tasks_than_offsets() -> None:
    assert cut([2], least=10) == [(0, 100, 101), (0, 101, 102)]


def test_a_task_has_no_more_than_so_many_offsets() -> None:
    assert [end - start for _, start, end in cut([10, 3], most=4)] == [3, 3, 4, 3]


@given(SIZES, st.one_of(st.none(), st.integers(1, 40)), st.one_of(st.none(), st.integers(1, 3000)))
def test_the_pieces_are_the_ranges(sizes: list[int], least: int | None, most: int | None) -> None:
    pieces = split_ranges(ranges_of(sizes), least, most)
    assert all(piece.size > 0 for piece in pieces)
    assert most is None or all(piece.size <= most for piece in pieces)
    for whole in ranges_of(sizes):
        mine = [piece for piece in pieces if piece.partition == whole.partition]
        ends = [whole.start, *(piece.end for piece in mine)]
        assert [piece.start for piece in mine] == ends[:-1]
        assert ends[-1] == (whole.end if mine else whole.start)
        assert bool(mine) == (whole.size > 0)


def test_a_partition_of_spark_holds_a_range() -> None:
    (one,) = ranges_of([5])
    assert RangePartition(one).range is one
    assert str(one) == "t-0[100, 105)"
