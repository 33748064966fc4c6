"""What a reset of offsets does: how far it goes, what it skips, what is read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.administration.offset_resets import OffsetChange, changes, in_range, parse_datetime, parse_duration_ms, shifted
from barnabas.topic_partition import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def test_a_reset_to_the_start_reads_again_what_was_read() -> None:
    change = OffsetChange(A, 70, 10, 10, 100)
    assert (change.skipped, change.read_again, change.lag_before, change.lag_after) == (0, 60, 30, 90)


def test_a_reset_to_the_end_skips_what_was_not_read() -> None:
    change = OffsetChange(A, 70, 100, 10, 100)
    assert (change.skipped, change.read_again, change.lag_before, change.lag_after) == (30, 0, 30, 0)


def test_records_that_retention_has_deleted_are_not_skipped_by_the_reset() -> None:
    assert OffsetChange(A, 5, 60, 50, 100).skipped == 10


def test_a_partition_without_an_offset_has_read_nothing() -> None:
    change = OffsetChange(A, None, 40, 10, 100)
    assert (change.skipped, change.read_again, change.lag_before, change.lag_after) == (30, 0, None, 60)


def test_an_offset_beyond_the_end_of_the_log_was_not_read() -> None:
    assert OffsetChange(A, 500, 10, 10, 100).read_again == 90


offsets = st.integers(0, 1000)


@given(st.one_of(st.none(), offsets), offsets, st.tuples(offsets, offsets).map(sorted))
def test_a_reset_within_the_log_either_skips_or_reads_again(before: int | None, target: int, log: list[int]) -> None:
    after = in_range({A: target}, {A: log[0]}, {A: log[1]})[A]
    change = OffsetChange(A, before, after, *log)
    assert not (change.skipped and change.read_again)
    assert 0 <= change.skipped <= log[1] - log[0]
    assert 0 <= change.read_again <= log[1] - log[0]


def test_changes_are_sorted_by_partition() -> None:
    rows = changes({B: 3}, {B: 1, A: 2}, {A: 0, B: 0}, {A: 9, B: 9})
    assert rows == [OffsetChange(A, None, 2, 0, 9), OffsetChange(B, 3, 1, 0, 9)]


def test_a_shift_needs_a_committed_offset() -> None:
    assert shifted({A: 10}, [A], -3) == {A: 7}
    with pytest.raises(KeyError):
        shifted({A: 10}, [A, B], 1)


@pytest.mark.parametrize("text", ["2020-01-01", "T", "2020-02-30T00:00:00.000", "2020-01-01T00:00:00.1000"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_datetime(text)


def test_durations_and_times_are_those_of_iso_8601() -> None:
    assert parse_duration_ms("P1DT2H") == 26 * 3_600_000
    assert parse_datetime("1970-01-01T01:00:00.005+01:00") == 5
