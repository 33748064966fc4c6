from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.batch import read_batches
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from tests.unit.storage.logs import batch, make_segment


def segments_at(*bases: int) -> Segments:
    disk = SimulatedFiles()
    made = Segments()
    for base in bases:
        made.add(make_segment(disk, base))
    return made


def base_of(segment: Segment | None) -> int | None:
    return None if segment is None else segment.base_offset


def test_segments_stand_in_the_order_of_their_base_offsets() -> None:
    made = segments_at(251, 0, 133)
    assert made.base_offsets == [0, 133, 251]
    assert [segment.base_offset for segment in made] == [0, 133, 251]
    assert (made.first.base_offset, made.active.base_offset, len(made)) == (0, 251, 3)


def test_an_offset_belongs_to_the_last_segment_that_begins_at_or_before_it() -> None:
    made = segments_at(0, 133, 251)
    assert [base_of(made.floor(offset)) for offset in (0, 132, 133, 268, 10**12)] == [0, 0, 133, 251, 251]


def test_no_segment_holds_an_offset_below_the_first() -> None:
    assert segments_at(10, 20).floor(9) is None


def test_the_higher_segment_begins_strictly_after_an_offset() -> None:
    made = segments_at(0, 133, 251)
    assert [base_of(made.higher(offset)) for offset in (-1, 0, 132, 133, 251)] == [0, 133, 133, 251, None]


def test_the_lower_segment_begins_strictly_before_an_offset() -> None:
    made = segments_at(0, 133, 251)
    assert [base_of(made.lower(offset)) for offset in (0, 1, 133, 500)] == [None, 0, 0, 251]


def test_a_segment_takes_the_place_of_one_with_the_same_base_offset() -> None:
    made = segments_at(0, 10)
    replacement = make_segment(SimulatedFiles(), 10)
    made.add(replacement)
    assert made.base_offsets == [0, 10]
    assert made.get(10) is replacement


def test_a_removed_segment_is_not_found_any_more() -> None:
    made = segments_at(0, 10, 20)
    made.remove(10)
    made.remove(11)
    assert made.base_offsets == [0, 20]
    assert made.get(10) is None
    assert 10 not in made and 20 in made


def test_a_range_of_offsets_begins_with_the_segment_that_holds_its_start() -> None:
    made = segments_at(0, 10, 20, 30)
    assert [s.base_offset for s in made.between(15, 30)] == [10, 20]
    assert [s.base_offset for s in made.between(15, 31)] == [10, 20, 30]
    assert [s.base_offset for s in made.between(10, 11)] == [10]


def test_a_range_that_starts_below_all_segments_begins_with_the_first() -> None:
    assert [s.base_offset for s in segments_at(10, 20).between(0, 20)] == [10]


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5)])
def test_an_empty_range_has_no_segments(start: int, end: int) -> None:
    assert segments_at(0, 10).between(start, end) == []


def test_the_segments_from_an_offset_on_begin_there_or_later() -> None:
    made = segments_at(0, 10, 20)
    assert [s.base_offset for s in made.from_base(10)] == [10, 20]
    assert [s.base_offset for s in made.from_base(11)] == [20]


def test_the_size_is_that_of_all_segments_together() -> None:
    made = segments_at(0, 10)
    data = batch()
    made.first.append([data], read_batches(data))
    later = batch(offset=10)
    made.active.append([later], read_batches(later))
    assert made.size == 2 * len(data)


def test_nothing_is_left_after_clear() -> None:
    made = segments_at(0, 10)
    made.clear()
    assert len(made) == 0 and made.base_offsets == [] and made.floor(5) is None


@settings(max_examples=100)
@given(st.sets(st.integers(0, 50), min_size=1, max_size=12), st.integers(-2, 55), st.integers(-2, 55))
def test_lookups_equal_a_linear_search(bases: set[int], offset: int, end: int) -> None:
    made = segments_at(*bases)
    ordered = sorted(bases)
    assert base_of(made.floor(offset)) == max((b for b in ordered if b <= offset), default=None)
    assert base_of(made.higher(offset)) == min((b for b in ordered if b > offset), default=None)
    assert base_of(made.lower(offset)) == max((b for b in ordered if b < offset), default=None)
    floor = max((b for b in ordered if b <= offset), default=ordered[0])
    expected = [b for b in ordered if floor <= b < end] if end > offset else []
    assert [s.base_offset for s in made.between(offset, end)] == expected
