from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptRecord, SegmentOffsetOverflow
from barnabas.records.batch import NO_TIMESTAMP, read_batches
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.indexes.time_index import TimestampOffset
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.leader_epochs import EpochEntry, LeaderEpochCache
from barnabas.storage.producers.state import CompletedTxn
from barnabas.storage.segments.segment import Segment
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
    time_entries,
    write_file,
)
from tests.unit.storage.segments.segment_files import filled, offsets, put, reopened

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
    position = segment.find_by_timestamp(NOW + 12_000, 0)
    assert position is not None and position.offset == 12


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
    read = segment.read(0, 1000, segment.size)
    segment.rename_suffix("", ".deleted")
    assert offsets(read) == [0, 1, 2]


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
