from __future__ import annotations

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import SegmentOffsetOverflow
from barnabas.records.batch import NO_TIMESTAMP, read_batches
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.indexes.time_index import TimestampOffset
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.segment import Segment, SegmentRead
from tests.unit.storage.logs import (
    NOW,
    batch,
    config,
    index_entries,
    make_segment,
    names_in,
    path,
    restarted,
    time_entries,
    watch,
)
from tests.unit.storage.segments.segment_files import filled, offsets, put, reopened

# -- appending


def test_a_new_segment_has_its_log_and_both_indexes_but_no_transaction_index(disk: SimulatedFiles) -> None:
    make_segment(disk, 40)
    prefix = "0" * 18 + "40"
    assert names_in(disk) == [f"{prefix}.index", f"{prefix}.log", f"{prefix}.timeindex"]


def test_appending_nothing_does_nothing(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    segment.append([], [])
    assert segment.size == 0
    assert segment.max_timestamp == TimestampOffset(NO_TIMESTAMP, 0)


def test_what_is_appended_stands_in_the_file_as_it_is(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    first, second = batch(2), batch(1, offset=2)
    put(segment, first)
    put(segment, second)
    assert disk.read_bytes(path(0, ".log")) == first + second


@pytest.mark.parametrize("offset", [2**31 - 1, 2**31 + 99])
def test_the_last_offset_within_reach_of_a_relative_offset_is_taken(disk: SimulatedFiles, offset: int) -> None:
    segment = make_segment(disk, max(0, offset - 2**31 + 1))
    put(segment, batch(offset=offset))
    assert segment.next_offset() == offset + 1


@pytest.mark.parametrize(("base_offset", "offset"), [(0, 2**31), (100, 99)])
def test_an_offset_out_of_reach_is_refused_and_nothing_is_written(disk: SimulatedFiles, base_offset: int, offset: int) -> None:
    segment = make_segment(disk, base_offset)
    with pytest.raises(SegmentOffsetOverflow) as refused:
        put(segment, batch(offset=offset))
    assert refused.value.base_offset == base_offset
    assert path(base_offset, ".log") in str(refused.value)
    assert segment.size == 0


def test_the_interval_is_tested_before_the_append_is_counted(disk: SimulatedFiles) -> None:
    """The first entry comes with the first append that finds more than index.interval.bytes written since the last."""
    segment = filled(disk, 4, settings=config(index_interval_bytes=199), size=100)
    assert index_entries(segment) == [(2, 200)]


def test_an_interval_that_is_just_reached_is_not_passed(disk: SimulatedFiles) -> None:
    segment = filled(disk, 4, settings=config(index_interval_bytes=200), size=100)
    assert index_entries(segment) == [(3, 300)]


def test_the_count_starts_again_after_an_entry(disk: SimulatedFiles) -> None:
    segment = filled(disk, 9, settings=config(index_interval_bytes=199), size=100)
    assert index_entries(segment) == [(2, 200), (4, 400), (6, 600), (8, 800)]


def test_an_entry_names_the_last_offset_and_the_first_byte_of_a_batch(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, settings=config(index_interval_bytes=0))
    put(segment, batch(3, size=100))
    put(segment, batch(4, offset=3, size=100) + batch(5, offset=7, size=100))
    assert index_entries(segment) == [(6, 100), (11, 200)]


def test_a_time_index_entry_names_the_largest_timestamp_so_far_and_the_end_of_its_batch(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, settings=config(index_interval_bytes=150))
    for offset, timestamp in enumerate([50, 90, 70, 60]):
        put(segment, batch(offset=offset, timestamp=timestamp, size=100))
    assert index_entries(segment) == [(2, 200)]
    assert time_entries(segment) == [(90, 1)]


def test_an_equal_timestamp_does_not_move_the_largest(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(offset=0, timestamp=70))
    put(segment, batch(offset=1, timestamp=70))
    assert segment.max_timestamp == TimestampOffset(70, 0)


def test_the_largest_timestamp_is_the_last_time_index_entry_when_a_segment_is_rolled(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    for offset, timestamp in enumerate([50, 90, 70]):
        put(segment, batch(offset=offset, timestamp=timestamp))
    assert time_entries(segment) == []
    segment.close_indexes()
    assert time_entries(segment) == [(90, 1)]


def test_the_largest_timestamp_is_the_last_time_index_entry_when_a_segment_is_closed(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(timestamp=90))
    segment.close()
    assert reopened(restarted(disk)).max_timestamp == TimestampOffset(90, 0)


def test_rolling_and_closing_write_the_final_entry_once(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(timestamp=90))
    segment.close_indexes()
    segment.close()
    assert len(disk.read_bytes(path(0, ".timeindex"))) == 12


def test_a_segment_without_timestamps_gets_no_time_index_entry(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, settings=config(index_interval_bytes=0))
    for offset in range(3):
        put(segment, batch(offset=offset, magic=0))
    segment.close_indexes()
    assert time_entries(segment) == []
    assert len(index_entries(segment)) == 2


def test_closing_a_segment_that_was_never_used_does_not_open_its_indexes(disk: SimulatedFiles) -> None:
    filled(disk, 3).close()
    segment = reopened(disk)
    before = disk.events
    segment.close()
    assert disk.events == before


# -- when to roll


def should_roll(
    segment: Segment, settings: LogConfig, added: int = 100, last_offset: int = 1, timestamp: int = NOW, now_ms: int = NOW
) -> bool:
    return segment.should_roll(settings, added, last_offset, timestamp, now_ms)


def test_a_segment_is_rolled_when_an_append_would_pass_its_size(disk: SimulatedFiles) -> None:
    segment = filled(disk, 9, size=100)
    assert not should_roll(segment, config(segment_bytes=1000))
    assert should_roll(segment, config(segment_bytes=999))


def test_a_segment_is_rolled_when_a_record_is_too_much_younger_than_its_first_batch(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    settings = config(segment_ms=10_000)
    assert not should_roll(segment, settings, timestamp=NOW + 10_000, now_ms=NOW + 10**9)
    assert should_roll(segment, settings, timestamp=NOW + 10_001)


def test_a_segment_without_timestamps_is_rolled_by_the_clock(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(magic=0))
    settings = config(segment_ms=10_000)
    assert not should_roll(segment, settings, timestamp=NO_TIMESTAMP, now_ms=NOW + 10_000)
    assert should_roll(segment, settings, timestamp=NO_TIMESTAMP, now_ms=NOW + 10_001)


def test_an_empty_segment_does_not_grow_old(disk: SimulatedFiles) -> None:
    assert not should_roll(make_segment(disk), config(segment_ms=1), timestamp=NOW + 10**9, now_ms=NOW + 10**9)


def test_the_jitter_of_a_segment_is_taken_off_its_age(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, jitter_ms=4_000)
    put(segment, batch(timestamp=NOW))
    settings = config(segment_ms=10_000)
    assert not should_roll(segment, settings, timestamp=NOW + 6_000)
    assert should_roll(segment, settings, timestamp=NOW + 6_001)


def test_the_age_is_counted_from_the_first_batch_also_after_a_restart(disk: SimulatedFiles) -> None:
    filled(disk, 3).close()
    segment = reopened(restarted(disk))
    assert segment.first_timestamp == NOW
    assert segment.age_ms(NOW + 50_000, NOW + 7_000) == 7_000


def test_the_first_timestamp_is_found_in_a_batch_larger_than_a_page(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(timestamp=77, size=20_000))
    segment.close()
    assert reopened(disk).first_timestamp == 77


def test_a_segment_is_rolled_when_its_offset_index_is_full(disk: SimulatedFiles) -> None:
    settings = config(index_interval_bytes=0, segment_index_bytes=36)  # 4 entries, and 3 of the time index
    segment = make_segment(disk, settings=settings)
    for offset in range(5):
        assert not should_roll(segment, settings)
        put(segment, batch(offset=offset, timestamp=NOW - offset))
    assert should_roll(segment, settings)


def test_a_segment_is_rolled_when_its_time_index_has_room_for_the_final_entry_only(disk: SimulatedFiles) -> None:
    settings = config(index_interval_bytes=0, segment_index_bytes=36)
    segment = make_segment(disk, settings=settings)
    for offset in range(3):
        assert not should_roll(segment, settings)
        put(segment, batch(offset=offset, timestamp=NOW + offset))
    assert segment.time_index.entries == 2
    assert should_roll(segment, settings)


def test_a_segment_is_rolled_when_an_offset_is_out_of_reach(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, 100)
    assert not should_roll(segment, config(), last_offset=100 + 2**31 - 1)
    assert should_roll(segment, config(), last_offset=100 + 2**31)


# -- reading


def test_a_read_begins_with_the_batch_that_holds_the_offset(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, 50)
    put(segment, batch(3, offset=50) + batch(3, offset=53))
    assert offsets(segment.read(54, 1000, segment.size)) == [53, 54, 55]


def test_an_offset_in_a_gap_is_answered_with_the_next_batch(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, 50)
    put(segment, batch(2, offset=50))
    put(segment, batch(2, offset=60))
    assert offsets(segment.read(55, 1000, segment.size)) == [60, 61]


def test_an_offset_past_the_end_is_in_another_segment(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2)
    assert segment.read(2, 1000, segment.size) is None


def test_an_empty_segment_has_nothing_to_read(disk: SimulatedFiles) -> None:
    assert make_segment(disk).read(0, 1000, 0) is None


def test_a_read_stops_at_the_position_a_reader_may_see(disk: SimulatedFiles) -> None:
    """A size of 100 from position 250 on, up to position 300: 50 bytes."""
    segment = filled(disk, 4, size=125)
    read = segment.read(2, 100, 300)
    assert read is not None and read.records is not None
    assert (read.position, read.records.position, read.records.size) == (250, 250, 50)


def test_a_read_stops_at_its_size_and_may_cut_a_batch(disk: SimulatedFiles) -> None:
    segment = filled(disk, 4, size=100)
    read = segment.read(1, 150, segment.size)
    assert read is not None and read.records is not None
    assert read.records.size == 150 and not read.first_entry_incomplete
    assert offsets(read) == [1]


def test_a_first_batch_larger_than_the_size_is_marked_incomplete(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    read = segment.read(0, 99, segment.size)
    assert read is not None and read.records is not None
    assert read.first_entry_incomplete and read.records.size == 99


def test_one_message_is_given_whole_to_a_reader_who_asks_for_it(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    read = segment.read(0, 1, segment.size, min_one_message=True)
    assert read is not None and not read.first_entry_incomplete
    assert offsets(read) == [0]


def test_one_message_is_not_given_past_the_position_a_reader_may_see(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    read = segment.read(1, 1, 100, min_one_message=True)
    assert read is not None and read.records is not None and read.records.size == 0


def test_a_read_of_no_bytes_still_tells_the_place(disk: SimulatedFiles) -> None:
    assert filled(disk, 2, size=100).read(1, 0, 200) == SegmentRead(100, None, False, 1)


def test_a_read_without_a_bound_gives_nothing_but_the_place(disk: SimulatedFiles) -> None:
    assert filled(disk, 2, size=100).read(1, 1000, None, min_one_message=True) == SegmentRead(100, None, False, 1)


def test_a_negative_size_is_refused(disk: SimulatedFiles) -> None:
    with pytest.raises(ValueError, match=r"Invalid max size -1 for log read from segment .*00000000000000000000\.log"):
        filled(disk, 1).read(0, -1, 100)


def test_a_read_gives_a_slice_of_the_file_and_reads_no_records(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(size=100_000))
    read = watch(disk, "read")
    segment.read(0, 2**30, segment.size)
    assert sum(event.size for event in read) <= 4096


def test_the_bytes_of_a_read_are_given_from_the_page_cache_or_not_at_all(disk: SimulatedFiles) -> None:
    segment = filled(disk, 1)
    read = segment.read(0, 1000, segment.size)
    assert read is not None and read.records is not None
    assert read.records.read_nowait() == read.records.read()
    disk.fail_next("read_nowait", errno.EAGAIN)
    assert read.records.read_nowait() is None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(70, 6000)), min_size=1, max_size=12), st.integers(0, 400))
def test_the_place_of_every_offset_equals_a_linear_scan(layout: list[tuple[int, int, int]], interval: int) -> None:
    disk = SimulatedFiles()
    segment = make_segment(disk, 7, config(index_interval_bytes=interval))
    offset = 7
    for count, gap, size in layout:
        put(segment, batch(count, offset=offset + gap, size=size))
        offset += gap + count
    written = read_batches(disk.read_bytes(path(7, ".log")))
    for target in range(7, offset + 1):
        expected = next(((b.at, b.size, b.last_offset, b.base_offset) for b in written if b.last_offset >= target), None)
        assert segment.locate(target) == expected


# -- the next offset


def test_the_next_offset_of_an_empty_segment_is_its_base_offset(disk: SimulatedFiles) -> None:
    assert make_segment(disk, 33).next_offset() == 33


@pytest.mark.parametrize("interval", [0, 150, 4096])
def test_the_next_offset_follows_the_last_record(disk: SimulatedFiles, interval: int) -> None:
    filled(disk, 9, base_offset=33, settings=config(index_interval_bytes=interval)).close()
    assert reopened(restarted(disk), 33).next_offset() == 42


def test_the_next_offset_is_found_from_the_last_index_entry_on(disk: SimulatedFiles) -> None:
    filled(disk, 2000, settings=config(index_interval_bytes=1000), size=100).close()
    segment = reopened(disk)
    read = watch(disk, "read", ".log")
    assert segment.next_offset() == 2000
    assert sum(event.size for event in read) <= 4096 + 1200


# -- by time


def timed(disk: SimulatedFiles) -> Segment:
    segment = make_segment(disk, settings=config(index_interval_bytes=0))
    put(segment, batch(3, timestamps=[10, 30, 20], leader_epoch=4))
    put(segment, batch(3, offset=3, timestamps=[15, 40, 60], leader_epoch=5))
    put(segment, batch(1, offset=6, timestamps=[60], leader_epoch=6))
    return segment


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(0, (10, 0, 4)), (11, (30, 1, 4)), (30, (30, 1, 4)), (31, (40, 4, 5)), (60, (60, 5, 5)), (61, None)],
)
def test_the_first_record_at_or_after_a_time_is_found(disk: SimulatedFiles, timestamp: int, expected: tuple[int, int, int] | None) -> None:
    assert timed(disk).find_by_timestamp(timestamp, 0) == expected


def test_records_before_the_first_offset_asked_for_are_passed_over(disk: SimulatedFiles) -> None:
    assert timed(disk).find_by_timestamp(10, 2) == (20, 2, 4)
    assert timed(SimulatedFiles()).find_by_timestamp(60, 6) == (60, 6, 6)
    assert timed(SimulatedFiles()).find_by_timestamp(10, 7) is None


def test_the_first_record_with_the_largest_timestamp_is_found(disk: SimulatedFiles) -> None:
    assert timed(disk).find_max_timestamp() == (60, 5, 5)


def test_an_empty_segment_has_no_largest_timestamp(disk: SimulatedFiles) -> None:
    assert make_segment(disk).find_max_timestamp() is None


def test_records_of_format_v0_have_no_largest_timestamp(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(magic=0))
    assert segment.find_max_timestamp() is None


def test_retention_goes_by_the_largest_timestamp(disk: SimulatedFiles) -> None:
    assert timed(disk).largest_timestamp == 60


def test_retention_goes_by_the_time_of_modification_where_records_have_no_timestamp(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(magic=0))
    disk.set_modified_ms(path(0, ".log"), 12_345)
    assert segment.largest_timestamp == 12_345
