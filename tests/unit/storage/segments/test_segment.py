from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord, SegmentOffsetOverflow
from barnabas.records.batch import NO_TIMESTAMP, read_batches
from barnabas.records.reader import records_of
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.indexes.time_index import TimestampOffset
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.leader_epochs import EpochEntry, LeaderEpochCache
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.state import CompletedTxn
from barnabas.storage.segments.segment import Segment, SegmentRead
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    batch,
    config,
    flip,
    index_entries,
    make_producers,
    make_segment,
    marker,
    names_in,
    path,
    produced,
    restarted,
    time_entries,
    watch,
    write_file,
)


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def put(segment: Segment, data: bytes) -> None:
    """Writes batches as one append."""
    segment.append([data], read_batches(data))


def filled(disk: SimulatedFiles, count: int, *, base_offset: int = 0, settings: LogConfig | None = None, size: int = 100) -> Segment:
    """So many batches of one record, one per append, a second apart."""
    segment = make_segment(disk, base_offset, settings)
    for n in range(count):
        put(segment, batch([b"%d" % (base_offset + n)], offset=base_offset + n, timestamp=NOW + 1000 * n, size=size))
    return segment


def reopened(disk: SimulatedFiles, base_offset: int = 0, settings: LogConfig | None = None) -> Segment:
    return make_segment(disk, base_offset, settings, create=False)


def offsets(found: SegmentRead | None) -> list[int]:
    assert found is not None
    return [] if found.records is None else [record.offset for record in records_of(found.records.read())]


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
    found = segment.read(2, 100, 300)
    assert found is not None and found.records is not None
    assert (found.position, found.records.position, found.records.size) == (250, 250, 50)


def test_a_read_stops_at_its_size_and_may_cut_a_batch(disk: SimulatedFiles) -> None:
    segment = filled(disk, 4, size=100)
    found = segment.read(1, 150, segment.size)
    assert found is not None and found.records is not None
    assert found.records.size == 150 and not found.first_entry_incomplete
    assert offsets(found) == [1]


def test_a_first_batch_larger_than_the_size_is_marked_incomplete(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    found = segment.read(0, 99, segment.size)
    assert found is not None and found.records is not None
    assert found.first_entry_incomplete and found.records.size == 99


def test_one_message_is_given_whole_to_a_reader_who_asks_for_it(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    found = segment.read(0, 1, segment.size, min_one_message=True)
    assert found is not None and not found.first_entry_incomplete
    assert offsets(found) == [0]


def test_one_message_is_not_given_past_the_position_a_reader_may_see(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    found = segment.read(1, 1, 100, min_one_message=True)
    assert found is not None and found.records is not None and found.records.size == 0


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
    found = segment.read(0, 1000, segment.size)
    assert found is not None and found.records is not None
    assert found.records.read_nowait() == found.records.read()
    disk.fail_next("read_nowait", errno.EAGAIN)
    assert found.records.read_nowait() is None


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


# -- recovery


def test_recovery_of_a_sound_segment_cuts_nothing(disk: SimulatedFiles) -> None:
    segment = filled(disk, 5)
    size = segment.size
    assert segment.recover(make_producers(disk), None) == 0
    assert segment.size == size


@pytest.mark.parametrize("interval", [0, 99, 100, 250, 4096])
def test_recovery_rebuilds_the_indexes_that_appending_made(disk: SimulatedFiles, interval: int) -> None:
    settings = config(index_interval_bytes=interval)
    segment = filled(disk, 30, settings=settings)
    segment.close()
    before = disk.read_bytes(path(0, ".index")), disk.read_bytes(path(0, ".timeindex"))
    again = reopened(disk, settings=settings)
    write_file(disk, path(0, ".index"), b"garbage!" * 9)
    write_file(disk, path(0, ".timeindex"), b"garbage too!" * 7)
    again.recover(make_producers(disk), None)
    again.close()
    assert (disk.read_bytes(path(0, ".index")), disk.read_bytes(path(0, ".timeindex"))) == before


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.tuples(st.integers(70, 900), st.integers(-1, 40)), min_size=1, max_size=4), min_size=1, max_size=12),
    st.integers(0, 800),
)
def test_recovery_rebuilds_any_indexes_however_the_batches_were_appended(appends: list[list[tuple[int, int]]], interval: int) -> None:
    disk = SimulatedFiles()
    segment = make_segment(disk, settings=config(index_interval_bytes=interval))
    offset = 0
    for layout in appends:
        put(segment, b"".join(batch(offset=offset + n, timestamp=at, size=size) for n, (size, at) in enumerate(layout)))
        offset += len(layout)
    segment.close_indexes()
    before = index_entries(segment), time_entries(segment)
    segment.recover(make_producers(disk), None)
    assert (index_entries(segment), time_entries(segment)) == before


def test_appending_goes_on_after_recovery_as_if_nothing_had_happened(disk: SimulatedFiles) -> None:
    settings = config(index_interval_bytes=250)
    whole = filled(SimulatedFiles(), 9, settings=settings)
    segment = filled(disk, 5, settings=settings)
    segment.recover(make_producers(disk), None)
    for n in range(5, 9):
        put(segment, batch([b"%d" % n], offset=n, timestamp=NOW + 1000 * n, size=100))
    assert index_entries(segment) == index_entries(whole)


def test_a_torn_tail_is_cut_at_the_last_whole_batch(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3, size=100)
    segment.file.append_bytes(batch(offset=3, size=100)[:60])
    assert segment.recover(make_producers(disk), None) == 60
    assert segment.size == 300
    assert segment.next_offset() == 3


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff" * 50, b"x", b"\0" * 8 + b"\0\0\0\x20" + b"\0\0\0\0\x09" + b"\0" * 40])
def test_a_tail_that_is_no_batch_is_cut_off(disk: SimulatedFiles, tail: bytes) -> None:
    segment = filled(disk, 3, size=100)
    segment.file.append_bytes(tail)
    assert segment.recover(make_producers(disk), None) == len(tail)
    assert segment.next_offset() == 3


def test_a_damaged_batch_takes_all_after_it_along(disk: SimulatedFiles) -> None:
    filled(disk, 5, size=100).close()
    flip(disk, path(0, ".log"), 290)
    segment = reopened(disk)
    assert segment.recover(make_producers(disk), None) == 300
    assert segment.next_offset() == 2


def test_damage_in_a_segment_larger_than_a_chunk_cuts_only_what_follows(disk: SimulatedFiles) -> None:
    filled(disk, 30, size=100_000).close()
    flip(disk, path(0, ".log"), 2_750_000)
    segment = reopened(disk)
    assert segment.recover(make_producers(disk), None) == 300_000
    assert segment.next_offset() == 27


def test_a_batch_larger_than_a_chunk_is_recovered(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(size=3_000_000))
    put(segment, batch(offset=1))
    assert segment.recover(make_producers(disk), None) == 0
    assert segment.next_offset() == 2


@pytest.mark.parametrize("lower", [0, 1, 2])
def test_an_offset_that_does_not_rise_is_damage(disk: SimulatedFiles, lower: int) -> None:
    """The base offset is not covered by the checksum of a batch: only the order gives a wrong one away."""
    segment = filled(disk, 3, size=100)
    segment.file.append_bytes(batch(offset=lower, size=100) + batch(offset=4, size=100))
    assert segment.recover(make_producers(disk), None) == 200
    assert segment.next_offset() == 3


def test_an_offset_below_the_base_offset_is_damage(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, base_offset=50, size=100)
    segment.file.append_bytes(batch(offset=3, size=100))
    assert segment.recover(make_producers(disk), None) == 100
    assert segment.next_offset() == 52


@pytest.mark.parametrize("wrong", [2 + 2**20, 2 + 2**40])
def test_an_offset_that_is_followed_by_a_lower_one_is_damage(disk: SimulatedFiles, wrong: int) -> None:
    segment = filled(disk, 2, size=100)
    segment.file.append_bytes(batch(offset=wrong, size=100) + batch(offset=3, size=100) + batch(offset=4, size=100))
    assert segment.recover(make_producers(disk), None) == 300
    assert segment.next_offset() == 2


def test_an_offset_that_belongs_to_the_next_segment_is_damage(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    segment.file.append_bytes(batch(offset=700, size=100))
    assert segment.recover(make_producers(disk), None, below=500) == 100
    assert segment.next_offset() == 2


def test_gaps_between_batches_are_none(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, 10)
    for offset in (20, 21, 500, 90_000):
        put(segment, batch(offset=offset))
    assert segment.recover(make_producers(disk), None, below=90_001) == 0
    assert segment.next_offset() == 90_001


def test_rising_offsets_out_of_reach_are_an_overflow(disk: SimulatedFiles) -> None:
    segment = filled(disk, 2, size=100)
    segment.file.append_bytes(batch(offset=2**31, size=100) + batch(offset=2**31 + 1, size=100))
    assert segment.has_overflow
    with pytest.raises(SegmentOffsetOverflow):
        segment.recover(make_producers(disk), None)


def test_a_sound_segment_has_no_overflow(disk: SimulatedFiles) -> None:
    assert not filled(disk, 2).has_overflow
    assert not make_segment(SimulatedFiles(), 5).has_overflow


def test_recovery_finds_the_largest_timestamp(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    for offset, timestamp in enumerate([50, 90, 90, 70]):
        put(segment, batch(2, offset=2 * offset, timestamp=timestamp))
    segment.recover(make_producers(disk), None)
    assert segment.max_timestamp == TimestampOffset(90, 3)
    assert time_entries(segment) == [(90, 3)]


def test_recovery_forgets_the_timestamp_of_what_it_cuts(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(timestamp=50, size=100))
    put(segment, batch(offset=1, timestamp=99, size=100))
    flip(disk, path(0, ".log"), 190)
    again = reopened(disk)
    again.recover(make_producers(disk), None)
    assert again.max_timestamp == TimestampOffset(50, 0)


def test_recovery_with_fewer_index_entries_allowed_than_before_still_works(disk: SimulatedFiles) -> None:
    filled(disk, 50, settings=config(index_interval_bytes=0)).close()
    small = config(index_interval_bytes=0, segment_index_bytes=48)
    segment = reopened(disk, settings=small)
    assert segment.recover(make_producers(disk), None) == 0
    assert segment.next_offset() == 50
    assert segment.max_timestamp.timestamp == NOW + 49_000


def test_recovery_notes_the_leader_epochs(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    for offset, epoch in enumerate([-1, 0, 0, 2, 1, 5]):
        put(segment, batch(offset=offset, leader_epoch=epoch))
    epochs = LeaderEpochCache(disk, f"{DIRECTORY}/leader-epoch-checkpoint")
    segment.recover(make_producers(disk), epochs)
    assert epochs.entries == [EpochEntry(0, 1), EpochEntry(2, 3), EpochEntry(5, 5)]


def test_recovery_rebuilds_the_transaction_index_and_the_producers(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, produced(7, 0, 2, transactional=True))
    put(segment, produced(8, 0, 1, transactional=True, offset=2))
    put(segment, marker(7, False, offset=3))
    put(segment, marker(8, True, offset=4))
    segment.txn_index.append(AbortedTxn(99, 1, 2, 3))
    producers = make_producers(disk)
    segment.recover(producers, None)
    assert segment.txn_index.all() == [AbortedTxn(7, 0, 3, 2)]
    assert producers.map_end_offset == 5
    assert producers.last_entry(7) is not None and producers.first_undecided_offset is None


def test_only_aborted_transactions_are_indexed(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    segment.add_aborted(CompletedTxn(1, 0, 5, False), 6)
    segment.add_aborted(CompletedTxn(1, 6, 9, True), 10)
    assert segment.txn_index.all() == [AbortedTxn(1, 6, 9, 10)]


# -- truncation


def test_truncation_removes_the_batch_that_holds_the_offset_and_all_after(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(3, size=100))
    put(segment, batch(3, offset=3, size=100))
    put(segment, batch(3, offset=6, size=100))
    assert segment.truncate_to(4, NOW) == 200
    assert segment.next_offset() == 3


def test_truncation_past_the_end_removes_nothing(disk: SimulatedFiles) -> None:
    segment = filled(disk, 5, settings=config(index_interval_bytes=0))
    before = segment.size, index_entries(segment)
    assert segment.truncate_to(5, NOW) == 0
    assert segment.truncate_to(500, NOW) == 0
    assert (segment.size, index_entries(segment)) == before
    put(segment, batch(offset=5))
    assert segment.next_offset() == 6


def test_truncation_in_a_gap_removes_what_follows_the_gap(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    put(segment, batch(2, size=100))
    put(segment, batch(2, offset=10, size=100))
    assert segment.truncate_to(5, NOW) == 100
    assert segment.next_offset() == 2


def test_truncation_takes_the_index_entries_along(disk: SimulatedFiles) -> None:
    segment = filled(disk, 6, settings=config(index_interval_bytes=0))
    segment.txn_index.append(AbortedTxn(1, 0, 2, 3))
    segment.txn_index.append(AbortedTxn(1, 3, 4, 5))
    segment.truncate_to(3, NOW)
    assert index_entries(segment) == [(1, 100), (2, 200)]
    assert time_entries(segment) == [(NOW + 1000, 1), (NOW + 2000, 2)]
    assert segment.txn_index.all() == [AbortedTxn(1, 0, 2, 3)]


def test_truncation_finds_the_largest_timestamp_of_what_is_left(disk: SimulatedFiles) -> None:
    segment = make_segment(disk, settings=config(index_interval_bytes=150))
    for offset, timestamp in enumerate([50, 90, 70, 60, 95]):
        put(segment, batch(offset=offset, timestamp=timestamp, size=100))
    segment.truncate_to(4, NOW)
    assert segment.max_timestamp == TimestampOffset(90, 1)
    segment.truncate_to(1, NOW)
    assert segment.max_timestamp == TimestampOffset(50, 0)


def test_a_segment_truncated_to_nothing_is_as_new(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    segment.truncate_to(0, NOW + 777)
    assert segment.size == 0
    assert segment.max_timestamp.timestamp == NO_TIMESTAMP
    assert segment.first_timestamp == NO_TIMESTAMP
    assert segment.age_ms(NOW + 1000, NOW + 10**9) == 223


def test_appending_goes_on_after_truncation(disk: SimulatedFiles) -> None:
    segment = filled(disk, 6, settings=config(index_interval_bytes=0), size=100)
    segment.truncate_to(3, NOW)
    put(segment, batch([b"new"], offset=3, size=100))
    put(segment, batch([b"newer"], offset=4, size=100))
    assert index_entries(segment) == [(1, 100), (2, 200), (4, 400)]
    assert offsets(segment.read(0, 1000, segment.size)) == [0, 1, 2, 3, 4]


def test_a_rolled_segment_can_be_truncated_and_written_again(disk: SimulatedFiles) -> None:
    segment = filled(disk, 6, settings=config(index_interval_bytes=0), size=100)
    segment.close_indexes()
    segment.truncate_to(2, NOW)
    put(segment, batch(offset=2, timestamp=NOW + 1500))
    put(segment, batch(offset=3, timestamp=NOW + 1600))
    segment.close_indexes()
    assert segment.max_timestamp == TimestampOffset(NOW + 1600, 3)
    assert time_entries(segment)[-1] == (NOW + 1600, 3)


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


# -- an index that lies


def scrambled_index(disk: SimulatedFiles, content: bytes) -> Segment:
    filled(disk, 40, settings=config(index_interval_bytes=100), size=100).close()
    write_file(disk, path(0, ".index"), content)
    return reopened(disk, settings=config(index_interval_bytes=100))


def entry_bytes(*entries: tuple[int, int]) -> bytes:
    return b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in entries)


GARBAGE = [
    entry_bytes((1, 100_000)),  # past the end
    entry_bytes((10, 3000)),  # a position too high for its offset
    entry_bytes((10, 1050)),  # the middle of a batch
    entry_bytes((2**31 - 1, 1000)),  # an offset the segment does not have
    entry_bytes((5, 500), (38, 7)),
    entry_bytes((30, 3001)),
    b"\xff" * 80,
    random.Random(7).randbytes(400),
    random.Random(8).randbytes(8),
]


@pytest.mark.parametrize("content", GARBAGE)
def test_every_offset_is_found_in_spite_of_a_garbage_index(disk: SimulatedFiles, content: bytes) -> None:
    segment = scrambled_index(disk, content)
    assert [offsets(segment.read(n, 100, segment.size)) for n in range(40)] == [[n] for n in range(40)]
    assert segment.read(40, 100, segment.size) is None


@pytest.mark.parametrize("content", GARBAGE)
def test_the_next_offset_is_found_in_spite_of_a_garbage_index(disk: SimulatedFiles, content: bytes) -> None:
    assert scrambled_index(disk, content).next_offset() == 40


@pytest.mark.parametrize("content", GARBAGE)
def test_records_are_found_by_time_in_spite_of_a_garbage_index(disk: SimulatedFiles, content: bytes) -> None:
    segment = scrambled_index(disk, content)
    found = segment.find_by_timestamp(NOW + 12_000, 0)
    assert found is not None and found.offset == 12


@settings(max_examples=150)
@given(st.binary(max_size=120), st.integers(0, 39))
def test_no_garbage_in_the_index_hides_a_record(content: bytes, offset: int) -> None:
    segment = scrambled_index(SimulatedFiles(), content)
    assert offsets(segment.read(offset, 100, segment.size)) == [offset]
    assert segment.next_offset() == 40


def test_a_garbage_index_is_rebuilt_once(disk: SimulatedFiles) -> None:
    segment = scrambled_index(disk, entry_bytes((1, 100_000)))
    segment.read(20, 100, segment.size)
    segment.close()
    fresh = filled(SimulatedFiles(), 40, settings=config(index_interval_bytes=100), size=100)
    assert index_entries(reopened(disk)) == index_entries(fresh)


def test_damage_in_the_log_is_reported_with_file_and_position_and_costs_no_rebuild(disk: SimulatedFiles) -> None:
    filled(disk, 40, settings=config(index_interval_bytes=100), size=100).close()
    content = bytearray(disk.read_bytes(path(0, ".log")))
    content[1108:1112] = b"\0\0\0\1"  # the length of a batch that has no index entry
    write_file(disk, path(0, ".log"), bytes(content))
    segment = reopened(disk)
    before = disk.read_bytes(path(0, ".index"))
    with pytest.raises(CorruptRecord, match=r"00000000000000000000\.log"):
        segment.read(11, 100, segment.size)
    assert offsets(segment.read(30, 100, segment.size)) == [30], "what an index entry leads to stays readable"
    assert disk.read_bytes(path(0, ".index")) == before


def test_an_index_that_kafka_filled_up_with_zeros_is_read_to_its_last_entry(disk: SimulatedFiles) -> None:
    filled(disk, 40, settings=config(index_interval_bytes=100), size=100).close()
    for suffix in (".index", ".timeindex"):
        content = disk.read_bytes(path(0, suffix))
        write_file(disk, path(0, suffix), content + bytes(10 * 1024 * 1024 - len(content)))
    segment = reopened(disk)
    assert segment.next_offset() == 40
    assert segment.max_timestamp == TimestampOffset(NOW + 39_000, 39)
    put(segment, batch(offset=40))
    assert segment.next_offset() == 41


# -- files


def test_all_files_of_a_segment_take_a_suffix_and_lose_it_again(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    segment.txn_index.append(AbortedTxn(1, 0, 2, 3))
    plain = names_in(disk)
    segment.rename_suffix("", ".cleaned")
    assert names_in(disk) == [f"{name}.cleaned" for name in plain]
    segment.rename_suffix(".cleaned", ".swap")
    assert names_in(disk) == [f"{name}.swap" for name in plain]
    segment.rename_suffix(".swap", "")
    assert names_in(disk) == plain


def test_a_reader_in_the_middle_of_a_segment_goes_on_while_it_is_renamed(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    found = segment.read(0, 1000, segment.size)
    segment.rename_suffix("", ".deleted")
    assert offsets(found) == [0, 1, 2]


def test_the_log_file_is_renamed_first(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    disk.fail_when(lambda event: event.kind == "rename" and event.path.endswith("index"))
    with pytest.raises(OSError):
        segment.rename_suffix("", ".deleted")
    assert path(0, ".log.deleted")[len(DIRECTORY) + 1 :] in names_in(disk)


def test_a_deleted_segment_leaves_no_file(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    segment.txn_index.append(AbortedTxn(1, 0, 2, 3))
    segment.delete()
    assert names_in(disk) == []


def test_deleting_what_is_gone_already_is_no_error(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    for name in names_in(disk):
        disk.remove(f"{DIRECTORY}/{name}")
    segment.delete()


def test_a_segment_follows_its_directory(disk: SimulatedFiles) -> None:
    segment = filled(disk, 3)
    disk.rename(DIRECTORY, "/data/elsewhere-0")
    segment.moved_to("/data/elsewhere-0")
    put(segment, batch(offset=3))
    segment.close()
    assert len(read_batches(disk.read_bytes(path(0, ".log", "/data/elsewhere-0")))) == 4


def test_a_flush_makes_records_and_index_entries_durable(disk: SimulatedFiles) -> None:
    segment = filled(disk, 9, settings=config(index_interval_bytes=0))
    segment.flush()
    disk.sync_dir(DIRECTORY)
    survivor = disk.crash(random.Random(1))
    again = reopened(survivor)
    assert again.next_offset() == 9
    assert index_entries(again) == index_entries(segment)


def test_letting_go_of_a_segment_on_a_failed_disk_writes_nothing(disk: SimulatedFiles) -> None:
    segment = filled(disk, 9, settings=config(index_interval_bytes=0))
    disk.fail_when(lambda event: True)
    segment.close_handlers()
