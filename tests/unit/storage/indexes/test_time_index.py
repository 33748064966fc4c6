"""The time index: timestamps rise, one slot is kept for the roll, lookups equal a linear scan."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptIndex, IndexEntryOutOfOrder, IndexOffsetOverflow
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.indexes.pages import IndexPages
from barnabas.storage.indexes.time_index import TimeIndex, TimestampOffset

BASE = 45
PATH = "/00000000000000000045.timeindex"
NOTHING = TimestampOffset(-1, BASE)
COUNTS = [0, 1, 2, 681, 682, 683, 684, 1365, 1400, 2731]  # around the warm section and the pages, both of 682 entries


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def index(disk: SimulatedFiles) -> TimeIndex:
    return TimeIndex(disk, PATH, BASE, 30 * 12)


def fill(index: TimeIndex, count: int) -> None:
    for n in range(1, count + 1):
        index.maybe_append(n * 10, BASE + n * 10)


def entry_bytes(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, relative) for timestamp, relative in entries)


def on_disk(disk: SimulatedFiles, content: bytes) -> TimeIndex:
    disk.write_atomically(PATH, content)
    return TimeIndex(disk, PATH, BASE)


def test_the_file_holds_timestamps_of_eight_bytes_and_relative_offsets_of_four(disk: SimulatedFiles, index: TimeIndex) -> None:
    index.maybe_append(1_700_000_000_000, BASE + 258)
    index.flush()
    assert disk.read_bytes(PATH) == bytes.fromhex("0000018bcfe56800 00000102")


def test_a_lookup_gives_the_floor_or_no_timestamp_at_the_base_offset(index: TimeIndex) -> None:
    assert index.lookup(100) == NOTHING
    fill(index, 29)
    assert index.lookup(9) == NOTHING
    assert index.lookup(25) == TimestampOffset(20, BASE + 20)
    assert index.lookup(30) == TimestampOffset(30, BASE + 30)
    assert index.lookup(10**15) == TimestampOffset(290, BASE + 290)


def test_a_ceiling_lookup_gives_the_next_entry(index: TimeIndex) -> None:
    assert index.lookup_ceiling(1) is None
    fill(index, 3)
    assert index.lookup_ceiling(20) == TimestampOffset(20, BASE + 20)
    assert index.lookup_ceiling(21) == TimestampOffset(30, BASE + 30)
    assert index.lookup_ceiling(31) is None


def test_entries_are_numbered(index: TimeIndex) -> None:
    fill(index, 4)
    assert [index.entry(n) for n in range(4)] == [TimestampOffset(n * 10, BASE + n * 10) for n in range(1, 5)]
    with pytest.raises(ValueError, match=f"Attempt to fetch the 4th entry from time index {PATH}"):
        index.entry(4)


def test_the_last_entry_is_remembered(index: TimeIndex) -> None:
    assert index.last_entry == NOTHING
    index.maybe_append(1, BASE + 1)
    assert index.last_entry == TimestampOffset(1, BASE + 1)


def test_an_equal_timestamp_is_passed_over(index: TimeIndex) -> None:
    index.maybe_append(10, BASE + 1)
    index.maybe_append(10, BASE + 1)
    index.maybe_append(10, BASE + 2)
    assert (index.entries, index.last_entry) == (1, TimestampOffset(10, BASE + 1))


def test_records_without_timestamps_leave_the_index_empty(index: TimeIndex) -> None:
    index.maybe_append(-1, BASE + 1)
    assert index.entries == 0


def test_a_smaller_offset_is_refused(index: TimeIndex) -> None:
    index.maybe_append(10, BASE + 5)
    with pytest.raises(IndexEntryOutOfOrder) as failure:
        index.maybe_append(20, BASE + 4)
    assert str(failure.value) == f"Attempt to append an offset (49) to slot 1 no larger than the last offset appended (50) to {PATH}"


def test_a_smaller_timestamp_is_refused(index: TimeIndex) -> None:
    index.maybe_append(10, BASE + 5)
    with pytest.raises(ValueError) as failure:
        index.maybe_append(9, BASE + 6)
    assert str(failure.value) == f"Attempt to append a timestamp (9) to slot 1 no larger than the last timestamp appended (10) to {PATH}"


def test_an_offset_out_of_reach_overflows(index: TimeIndex) -> None:
    with pytest.raises(IndexOffsetOverflow, match=f"Integer overflow for offset: {BASE + 2**31}"):
        index.maybe_append(10, BASE + 2**31)
    assert (index.entries, index.last_entry) == (0, NOTHING)


@pytest.mark.parametrize(("max_size", "max_entries"), [(67, 5), (10485760, 873813)])
def test_the_largest_size_is_rounded_down_to_whole_entries(disk: SimulatedFiles, max_size: int, max_entries: int) -> None:
    assert TimeIndex(disk, PATH, BASE, max_size).max_entries == max_entries


def test_the_last_slot_is_kept_for_the_entry_of_the_roll(index: TimeIndex) -> None:
    fill(index, 28)
    assert not index.is_full
    fill_last = 29
    index.maybe_append(fill_last * 10, BASE + fill_last * 10)
    assert index.is_full
    with pytest.raises(ValueError, match=r"Attempt to append to a full time index \(size = 29\)\."):
        index.maybe_append(10_000, 1000)
    with pytest.raises(IndexEntryOutOfOrder):
        index.maybe_append(10_000, 280, skip_full_check=True)
    index.maybe_append(10_000, 1000, skip_full_check=True)
    assert index.entries == 30


def test_truncation_goes_by_offset(index: TimeIndex) -> None:
    fill(index, 29)
    index.truncate_to(BASE + 291)
    assert index.entries == 29
    index.truncate_to(BASE + 25)
    assert (index.entries, index.last_entry) == (2, TimestampOffset(20, BASE + 20))
    index.truncate_to(BASE + 20)
    assert (index.entries, index.last_entry) == (1, TimestampOffset(10, BASE + 10))
    index.truncate_to(BASE + 10)
    assert (index.entries, index.last_entry) == (0, NOTHING)


def test_truncation_removes_every_entry_with_the_same_offset(index: TimeIndex) -> None:
    for timestamp, offset in ((10, 50), (20, 51), (30, 51), (40, 51), (50, 52)):
        index.maybe_append(timestamp, offset)
    index.truncate_to(51)
    assert (index.entries, index.last_entry) == (1, TimestampOffset(10, 50))


@settings(max_examples=25)
@given(count=st.sampled_from(COUNTS), rng=st.randoms(use_true_random=False), rolled=st.booleans(), reopened=st.booleans(), data=st.data())
def test_lookups_equal_a_linear_scan_also_after_truncation(
    count: int, rng: random.Random, rolled: bool, reopened: bool, data: st.DataObject
) -> None:
    disk = SimulatedFiles()
    index = TimeIndex(disk, PATH, BASE, pages=IndexPages(max_pages=2))
    entries, timestamp, offset = [], 0, BASE
    for _ in range(count):
        timestamp, offset = timestamp + rng.randint(1, 4), offset + rng.randint(0, 3)
        entries.append(TimestampOffset(timestamp, offset))
        index.maybe_append(timestamp, offset)
    if data.draw(st.booleans(), "truncate"):
        cut = data.draw(st.integers(BASE, offset + 1), "cut")
        index.truncate_to(cut)
        entries = [entry for entry in entries if entry.offset < cut]
    if rolled:
        index.trim_to_valid_size()
    if reopened:
        index.close()
        index = TimeIndex(disk, PATH, BASE)
    assert (index.entries, index.last_entry) == (len(entries), entries[-1] if entries else NOTHING)
    near = [entry.timestamp + step for entry in (entries[:1] + entries[-684:-681] + entries[-1:]) for step in (-1, 0, 1)]
    for target in near + data.draw(st.lists(st.integers(-1, timestamp + 2), min_size=20, max_size=20)):
        assert index.lookup(target) == max((e for e in entries if e.timestamp <= target), default=NOTHING)
        assert index.lookup_ceiling(target) == min((e for e in entries if e.timestamp >= target), default=None)


@pytest.mark.parametrize("entries", [0, 1, 682, 2000])
def test_the_zeros_at_the_end_of_an_active_index_of_kafka_are_trimmed(disk: SimulatedFiles, entries: int) -> None:
    content = entry_bytes(*((n * 100, n) for n in range(1, entries + 1)))
    index = on_disk(disk, content + bytes(10485756 - len(content)))
    assert index.entries == entries
    index.sanity_check()
    assert disk.size(PATH) == len(content)


def test_a_lone_entry_with_timestamp_zero_at_the_base_offset_is_not_taken_for_padding(disk: SimulatedFiles, index: TimeIndex) -> None:
    index.maybe_append(0, BASE)
    index.close()
    assert TimeIndex(disk, PATH, BASE).last_entry == TimestampOffset(0, BASE)


def test_a_last_timestamp_below_the_first_is_corrupt(disk: SimulatedFiles) -> None:
    with pytest.raises(CorruptIndex) as failure:
        on_disk(disk, entry_bytes((10, 1), (20, 2), (9, 3))).sanity_check()
    assert str(failure.value) == (
        f"Corrupt time index found, time index file ({PATH}) has non-zero size but the last timestamp is 9"
        " which is less than the first timestamp 10"
    )


def test_a_last_offset_below_the_base_offset_is_corrupt(disk: SimulatedFiles) -> None:
    with pytest.raises(CorruptIndex) as failure:
        on_disk(disk, entry_bytes((10, 1), (20, -2))).sanity_check()
    assert str(failure.value) == (
        f"Corrupt time index found, time index file ({PATH}) has non-zero size but the last offset is 43"
        " which is less than the first offset 45"
    )


def test_a_broken_length_is_corrupt(disk: SimulatedFiles) -> None:
    with pytest.raises(CorruptIndex) as failure:
        on_disk(disk, entry_bytes((10, 1)) + b"abcd").sanity_check()
    assert str(failure.value) == f"Time index file {PATH} is corrupt, found 16 bytes which is neither positive nor a multiple of 12"


@pytest.mark.parametrize("last", [(20, 5), (15, 5), (30, 1)])
def test_a_last_entry_that_is_not_above_the_one_before_is_corrupt(disk: SimulatedFiles, last: tuple[int, int]) -> None:
    with pytest.raises(CorruptIndex, match="is not above the one before"):
        on_disk(disk, entry_bytes((10, 1), (20, 2), last)).sanity_check()


@given(content=st.binary(max_size=200))
def test_no_garbage_makes_an_index_hang_or_fail_otherwise_than_as_corrupt(content: bytes) -> None:
    index = on_disk(SimulatedFiles(), content)
    try:
        index.sanity_check()
    except CorruptIndex:
        index.reset()
        index.sanity_check()
    index.lookup(7)
    index.lookup_ceiling(7)
    index.truncate_to(BASE + 3)


def test_the_roll_and_the_close_both_append_the_largest_timestamp_and_it_stands_once(disk: SimulatedFiles, index: TimeIndex) -> None:
    index.maybe_append(10, BASE + 3, skip_full_check=True)
    index.trim_to_valid_size()
    index.maybe_append(10, BASE + 3, skip_full_check=True)
    index.close()
    assert disk.read_bytes(PATH) == entry_bytes((10, 3))
