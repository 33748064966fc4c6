"""What a cleaning keeps, what it drops, and what it leaves as it was."""

from __future__ import annotations

import errno
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.errors import CorruptRecord
from barnabas.records.batch import LOG_APPEND_TIME
from barnabas.records.builder import BatchBuilder, encode_batch
from barnabas.records.reader import read_records, records_of
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.compaction.cleaner import Cleaning, CleaningAborted, Step, exhaust, group_segments
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.storage.cleaning import batches, clean, cleaned_files, compact_config, compact_log, headers, keyed, keyed_batch, put, roll
from tests.unit.storage.logs import (
    DAY,
    DIRECTORY,
    NOW,
    RecordingHost,
    append,
    batch,
    flip,
    index_entries,
    make_log,
    names_in,
    path,
    time_entries,
)

CODECS = pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    log = compact_log()
    put(log, a="1", b="1")
    put(log, a="2", c="1")
    roll(log)
    assert clean(log).end_offset == 4
    assert keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1")]


def test_what_comes_after_the_cleaned_part_is_not_touched() -> None:
    log = compact_log()
    put(log, a="1")
    put(log, a="2")
    roll(log)
    put(log, a="3")
    clean(log)
    assert keyed(log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_a_later_cleaning_drops_from_the_clean_part_what_the_dirty_part_supersedes() -> None:
    log = compact_log()
    put(log, a="1", b="1")
    roll(log)
    clean(log)
    put(log, a="2")
    roll(log)
    assert clean(log, first_dirty=2).end_offset == 3
    assert keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_records_without_a_key_are_dropped_and_counted() -> None:
    log = make_log(SimulatedFiles())  # a topic that was not compacted when they were written
    append(log, keyed_batch([(None, "x"), ("a", "1")]))
    roll(log)
    log.update_config(compact_config())
    assert clean(log).stats.invalid_messages == 1
    assert keyed(log) == [(1, b"a", b"1")]


# -- batches


@CODECS
def test_a_batch_that_loses_nothing_is_the_same_byte_for_byte(codec: int) -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1", "b": "2"}, codec=codec))
    roll(log)
    before = log.files.read_bytes(path(0, ".log"))
    clean(log)
    assert log.files.read_bytes(path(0, ".log")) == before


@CODECS
def test_a_batch_that_loses_records_keeps_its_offsets_its_producer_and_its_codec(codec: int) -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1", "b": "1", "c": "1"}, producer_id=7, producer_epoch=3, base_sequence=0, codec=codec), epoch=5)
    put(log, a="2", c="2")
    roll(log)
    clean(log)
    kept = headers(log)[0]
    assert (kept.base_offset, kept.last_offset, kept.count) == (0, 2, 1)
    assert (kept.producer_id, kept.producer_epoch, kept.base_sequence, kept.last_sequence) == (7, 3, 0, 2)
    assert (kept.codec, kept.leader_epoch) == (codec, 5)


def test_timestamps_and_headers_survive_the_loss_of_the_first_record() -> None:
    log = compact_log()
    builder = BatchBuilder()
    builder.append(NOW, b"a", b"1")
    builder.append(NOW - 500, b"b", b"2", [("h", b"x"), ("n", None)])
    builder.append(NOW + 900, b"c", b"3")
    append(log, builder.build())
    put(log, a="2")
    roll(log)
    clean(log)
    data, kept = batches(log)[0]
    assert [(r.timestamp, r.headers) for r in read_records(data, kept)] == [(NOW - 500, [("h", b"x"), ("n", None)]), (NOW + 900, [])]
    assert (kept.base_timestamp, kept.max_timestamp) == (NOW - 500, NOW + 900)


def test_log_append_time_stays_the_time_of_every_record() -> None:
    log = compact_log(timestamp_type=LOG_APPEND_TIME)
    append(log, keyed_batch({"a": "1", "b": "1"}, timestamp=5), now_ms=NOW + 50)
    put(log, a="2")
    roll(log)
    clean(log)
    data, kept = batches(log)[0]
    assert (kept.timestamp_type, kept.max_timestamp) == (LOG_APPEND_TIME, NOW + 50)
    assert [record.timestamp for record in read_records(data, kept)] == [NOW + 50]


def test_a_batch_larger_than_the_read_buffer_is_cleaned_too() -> None:
    log = compact_log()
    put(log, a="x" * 20_000, b="1")
    put(log, a="2")
    roll(log)
    clean(log, settings=CleanerConfig(io_buffer_size=1))
    assert keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


# -- tombstones


def test_a_tombstone_outlives_the_cleaning_that_first_meets_it_by_the_delete_retention() -> None:
    log = compact_log(delete_retention_ms=DAY)
    put(log, a="1")
    put(log, a=None)
    roll(log)
    clean(log, now_ms=NOW + 7)
    assert keyed(log) == [(1, b"a", None)]
    assert headers(log)[0].delete_horizon_ms == NOW + 7 + DAY


def test_the_delete_horizon_takes_the_field_of_the_base_timestamp_but_not_the_timestamps() -> None:
    log = compact_log()
    append(log, keyed_batch({"a": None, "b": "1"}, timestamp=NOW - 3))
    roll(log)
    clean(log)
    data, kept = batches(log)[0]
    assert [record.timestamp for record in read_records(data, kept)] == [NOW - 3, NOW - 3]
    assert kept.max_timestamp == NOW - 3


def test_the_delete_horizon_is_set_once() -> None:
    log = compact_log(delete_retention_ms=DAY)
    append(log, keyed_batch({"a": None, "b": "1"}))
    roll(log)
    clean(log)
    before = log.files.read_bytes(path(0, ".log"))
    clean(log, now_ms=NOW + 1)
    assert log.files.read_bytes(path(0, ".log")) == before


def test_a_batch_keeps_its_delete_horizon_when_it_loses_records_later() -> None:
    log = compact_log(delete_retention_ms=DAY)
    append(log, keyed_batch({"a": None, "b": "1"}))
    roll(log)
    clean(log)
    put(log, b="2")
    roll(log)
    clean(log, first_dirty=2, now_ms=NOW + 1)
    assert headers(log)[0].delete_horizon_ms == NOW + DAY
    assert keyed(log) == [(0, b"a", None), (2, b"b", b"2")]


@pytest.mark.parametrize(("now_ms", "kept"), [(NOW + DAY - 1, [(0, b"a", None)]), (NOW + DAY, [])])
def test_a_tombstone_goes_when_its_horizon_is_reached(now_ms: int, kept: list[tuple[int, bytes, None]]) -> None:
    log = compact_log(delete_retention_ms=DAY)
    put(log, a=None)
    put(log, z="1")
    roll(log)
    clean(log)
    clean(log, now_ms=now_ms)
    assert keyed(log) == [*kept, (1, b"z", b"1")]


# -- what must not be forgotten


def test_the_last_batch_of_a_producer_stays_as_a_header_for_its_sequence() -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1", "b": "1"}, producer_id=7, producer_epoch=0, base_sequence=0))
    put(log, a="2", b="2")
    roll(log)
    clean(log)
    kept = headers(log)[0]
    assert (kept.count, kept.size, kept.base_offset, kept.last_offset, kept.last_sequence) == (0, 61, 0, 1, 1)
    assert (kept.base_timestamp, kept.max_timestamp) == (-1, NOW)
    append(log, keyed_batch({"c": "1"}, producer_id=7, producer_epoch=0, base_sequence=2))


def test_a_producer_finds_its_sequence_after_a_restart_on_a_compacted_log() -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1"}, producer_id=7, producer_epoch=0, base_sequence=0))
    put(log, a="2")
    roll(log)
    clean(log)
    log.close()
    for name in names_in(log.files):
        if name.endswith(".snapshot"):
            log.files.remove(f"{DIRECTORY}/{name}")
    log = make_log(log.files, compact_config())
    entry = log.producers.last_entry(7)
    assert entry is not None
    assert (entry.last_sequence, entry.last_data_offset) == (0, 0)


def test_the_last_batch_of_a_forgotten_producer_goes() -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1"}, producer_id=7, producer_epoch=0, base_sequence=0))
    put(log, a="2")
    roll(log)
    log.producers.remove_expired(NOW + 2 * DAY, 0)
    clean(log)
    assert [kept.base_offset for kept in headers(log)] == [1]


def test_the_last_batch_before_the_uncleanable_part_stays_so_that_the_end_is_known() -> None:
    log = compact_log(delete_retention_ms=0)
    put(log, a="1")
    put(log, b=None)
    roll(log)
    clean(log)
    clean(log, now_ms=NOW + 1)
    assert [(kept.base_offset, kept.count) for kept in headers(log)] == [(0, 1), (1, 0)]
    assert log.segments.first.next_offset() == 2


# -- segments


def group(
    *sizes: int, max_size: int = 10, index_sizes: tuple[int, ...] = (), bases: tuple[int, ...] = (), end: int = 100
) -> list[list[int]]:
    """The sizes of segments, grouped."""
    segments = [
        SimpleNamespace(
            size=size,
            base_offset=bases[number] if bases else number,
            offset_index=SimpleNamespace(size_in_bytes=index_sizes[number] if index_sizes else 0),
            time_index=SimpleNamespace(size_in_bytes=0),
        )
        for number, size in enumerate(sizes)
    ]
    return [[segment.size for segment in group] for group in group_segments(cast(Any, segments), max_size, 100, end)]


def test_segments_are_grouped_up_to_the_size_of_one() -> None:
    assert group(4, 4, 3, 7, 3, 10) == [[4, 4], [3, 7], [3], [10]]


def test_a_segment_that_is_too_large_is_a_group_of_its_own() -> None:
    assert group(20, 4, 20) == [[20], [4], [20]]


def test_segments_are_grouped_up_to_the_size_of_an_index() -> None:
    assert group(1, 1, 1, index_sizes=(60, 40, 60)) == [[1, 1], [1]]


def test_a_group_spans_no_more_offsets_than_an_index_can_express() -> None:
    reach = 2**31 - 1
    assert group(1, 1, 1, bases=(0, 10, reach + 1), end=reach + 5) == [[1, 1], [1]]
    assert group(1, 1, 1, bases=(0, 10, reach + 2), end=reach + 5) == [[1], [1, 1]]


def test_an_empty_segment_joins_the_group_however_many_offsets_it_spans() -> None:
    assert group(1, 0, 1, bases=(0, 10, 2**32), end=2**32 + 1) == [[1, 0], [1]]


def test_no_segments_make_no_groups() -> None:
    assert group() == []


def two_segments(host: RecordingHost | None = None, **settings: Any) -> Log:
    log = compact_log(host=host, **settings)
    put(log, a="1", b="1")
    roll(log)
    put(log, a="2")
    roll(log)
    return log


def test_small_segments_become_one() -> None:
    log = two_segments()
    clean(log)
    assert log.segments.base_offsets == [0, 3]
    assert keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_segments_that_do_not_fit_in_one_stay_apart() -> None:
    log = compact_log(segment_bytes=2_000_000)
    for value in ("x", "y"):
        put(log, **{value: value * 1_000_000})
        roll(log)
    clean(log)
    assert log.segments.base_offsets == [0, 1, 2]


def test_a_cleaned_segment_is_as_old_as_the_newest_it_was_made_from() -> None:
    log = two_segments()
    for segment, age in zip(log.segments, (5, 3, 0), strict=True):
        log.files.set_modified_ms(segment.file.path, NOW - age)
    clean(log)
    assert log.segments.first.modified_ms == NOW - 3


def test_the_replaced_segments_and_their_snapshots_are_deleted_later() -> None:
    host = RecordingHost()
    log = two_segments(host)
    assert "00000000000000000002.snapshot" in names_in(log.files)
    clean(log)
    assert {"00000000000000000000.log.deleted", "00000000000000000002.log.deleted", "00000000000000000002.snapshot.deleted"} <= set(
        names_in(log.files)
    )
    host.delete_due(0)
    left = [name for name in names_in(log.files) if name.startswith("0")]
    assert left == [
        f"{base:020d}{kind}"
        for base in (0, 3)
        for kind in (".index", ".log", ".snapshot", ".timeindex")
        if (base, kind) != (0, ".snapshot")
    ]


def test_who_reads_a_segment_that_is_replaced_reads_it_to_the_end() -> None:
    log = two_segments(RecordingHost())
    before = log.read(0, 10_000, FetchIsolation.LOG_END)
    size = log.segments.first.size
    clean(log)
    assert before.records is not None
    assert len(before.records.read()) == size


def test_every_batch_is_indexed_as_if_it_had_been_appended_alone() -> None:
    log = compact_log(index_interval_bytes=150)
    for number in range(10):
        put(log, **{f"key{number}": "1"})
    roll(log)
    entries = index_entries(log.segments.first)
    assert len(entries) > 2
    clean(log)
    assert index_entries(log.segments.first) == entries


def test_the_last_entry_of_the_time_index_is_the_largest_timestamp() -> None:
    log = compact_log()
    append(log, keyed_batch({"a": "1"}, timestamp=NOW + 9))
    append(log, keyed_batch({"b": "1"}, timestamp=NOW))
    roll(log)
    clean(log)
    assert time_entries(log.segments.first) == [(NOW + 9, 0)]


def test_a_gap_at_the_end_of_the_dirty_part_is_clean_too() -> None:
    log = compact_log()
    put(log, a="1")
    log.roll(NOW, 10)
    assert clean(log).end_offset == 10


def test_an_offset_in_a_gap_leads_to_the_next_record() -> None:
    log = compact_log(index_interval_bytes=0)
    for number in range(20):
        put(log, **{f"key{number % 3}": str(number)})
    roll(log)
    clean(log)
    for offset in range(18):
        fetched = log.read(offset, 10_000, FetchIsolation.LOG_END)
        assert fetched.records is not None
        assert next(records_of(fetched.records.read())).offset == 17


# -- a map that is too small


def test_a_full_map_ends_the_cleaning_where_it_stopped_and_the_next_one_goes_on() -> None:
    log = compact_log()
    for number in range(12):
        put(log, **{f"key{number % 6}": str(number)})
    roll(log)
    small = CleanerConfig(dedupe_buffer_size=5 * 24)
    first = clean(log, settings=small)
    assert first.end_offset == 4
    assert [offset for offset, *_ in keyed(log)] == list(range(12))
    second = clean(log, 4, settings=small)
    assert second.end_offset == 8
    third = clean(log, 8, settings=small)
    assert third.end_offset == 12
    assert [offset for offset, *_ in keyed(log)] == [6, 7, 8, 9, 10, 11]


# -- trouble


def test_a_damaged_batch_stops_the_cleaning_with_file_and_position() -> None:
    log = compact_log()
    put(log, a="1")
    first_size = log.segments.first.size
    put(log, a="2")
    roll(log)
    flip(log.files, path(0, ".log"), first_size + 65)
    with pytest.raises(CorruptRecord, match=rf"stored crc = \d+, computed crc = \d+\) in log segment .*0\.log at position {first_size}"):
        clean(log)


def test_a_damaged_batch_in_the_clean_part_does_not_get_a_new_checksum() -> None:
    log = compact_log()
    put(log, a="1", b="1")
    roll(log)
    put(log, a="2")
    roll(log)
    flip(log.files, path(0, ".log"), 65)
    with pytest.raises(CorruptRecord, match=r"in log segment .*0\.log at position 0"):
        clean(log, first_dirty=2)


def test_a_batch_that_holds_more_than_its_records_stops_the_cleaning() -> None:
    log = compact_log()
    put(log, a="1", b="1")
    whole = log.files.read_bytes(path(0, ".log"))
    log.truncate_to(0, NOW)
    log.active_segment.file.append_bytes(encode_batch(whole[61:], 0, 0, 1, NOW, NOW, 1, leader_epoch=0))
    log.roll(NOW, 2)
    with pytest.raises(CorruptRecord, match="9 bytes follow the last of 1 records"):
        clean(log)


def test_a_batch_cut_short_stops_the_cleaning() -> None:
    log = compact_log()
    put(log, a="1")
    roll(log)
    log.segments.first.file.truncate(log.segments.first.size - 1)
    with pytest.raises(
        CorruptRecord, match=r"Log segment may be corrupt, batch size 70 > 69 bytes left in segment for log segment .*0\.log"
    ):
        clean(log)


def test_a_cleaning_abandoned_at_any_step_leaves_the_log_as_it_was() -> None:
    log = two_segments()
    before = {name: log.files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(log.files)}
    steps = 0
    while True:
        cleaning = Cleaning(log, 0, 3, CleanerConfig(), NOW)
        if not _advance(cleaning, steps):
            break
        cleaning.abandon()
        assert {name: log.files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(log.files)} == before
        steps += 1
    assert steps > 3
    assert keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def _advance(cleaning: Cleaning, steps: int) -> bool:
    for _ in range(steps):
        step = cleaning.advance(NOW, 0)
        if step is None:
            return False
        if step.blocking is not None:
            step.blocking.run()
    return True


def test_a_read_that_would_wait_for_the_disk_is_left_to_a_thread() -> None:
    files = SimulatedFiles(lambda: NOW)
    log = compact_log(files)
    put(log, a="1")
    put(log, a="2")
    roll(log)
    files.fail_when(lambda event: event.kind == "read_nowait", errno.EAGAIN)
    cleaning = Cleaning(log, 0, 2, CleanerConfig(), NOW)
    step = cleaning.advance(NOW, 0)
    assert step is not None
    assert step.blocking is not None
    step.blocking.run()
    exhaust(cleaning, NOW)
    assert keyed(log) == [(1, b"a", b"2")]


def test_a_sync_that_fails_leaves_the_log_as_it_was() -> None:
    files = SimulatedFiles(lambda: NOW)
    log = compact_log(files)
    put(log, a="1")
    put(log, a="2")
    roll(log)
    files.fail_when(lambda event: event.kind == "sync" and event.path.endswith(".cleaned"))
    with pytest.raises(OSError, match="Input/output error"):
        clean(log)
    assert keyed(log) == [(0, b"a", b"1"), (1, b"a", b"2")]
    assert cleaned_files(log) == []


def test_a_blocking_step_that_was_not_run_is_an_error_and_not_a_swap() -> None:
    log = two_segments()
    cleaning = Cleaning(log, 0, 3, CleanerConfig(), NOW)
    while (step := cleaning.advance(NOW, 0)) is not None and step.blocking is None:
        pass
    with pytest.raises(RuntimeError, match="was not run"):
        cleaning.advance(NOW, 0)
    assert log.segments.base_offsets == [0, 2, 3]


def test_a_segment_whose_offsets_overflow_is_split_and_the_cleaning_starts_again() -> None:
    log = compact_log()
    put(log, a="1")
    log.active_segment.file.append_bytes(keyed_batch({"a": "2"}, base_offset=2**31 + 5, leader_epoch=0))
    log.roll(NOW, 2**31 + 6)
    with pytest.raises(CleaningAborted):
        clean(log)
    assert log.segments.base_offsets == [0, 2**31 + 5, 2**31 + 6]
    assert cleaned_files(log) == []
    clean(log)
    assert keyed(log) == [(2**31 + 5, b"a", b"2")]


# -- slices


def test_a_cleaning_goes_in_slices_that_say_what_they_read_and_wrote() -> None:
    log = compact_log()
    for number in range(40):
        put(log, **{f"key{number}": "x" * 4000})
    roll(log)
    size = log.segments.first.size
    cleaning = Cleaning(log, 0, 40, CleanerConfig(), NOW)
    steps: list[Step] = []
    while (step := cleaning.advance(NOW, 0)) is not None:
        steps.append(step)
        if step.blocking is not None:
            step.blocking.run()
    assert sum(step.bytes for step in steps) == 3 * size
    assert max(step.bytes for step in steps) < 3 * 16 * 1024
    assert sum(step.blocking is not None for step in steps) == 1


def test_the_stats_tell_what_was_read_and_written_and_how_long_it_took() -> None:
    log = two_segments()
    size = log.size
    cleaning = Cleaning(log, 0, 3, CleanerConfig(), NOW, 0)
    now_ms = 0
    while (step := cleaning.advance(NOW, now_ms)) is not None:
        now_ms += 1000
        if step.blocking is not None:
            step.blocking.run()
    stats = cleaning.stats
    assert (stats.messages_read, stats.messages_written, stats.map_messages_read) == (3, 2, 3)
    assert (stats.bytes_read, stats.map_bytes_read, stats.bytes_written) == (size, size, log.size)
    assert stats.elapsed_seconds * 1000 == now_ms
    assert 0 < stats.map_seconds < stats.elapsed_seconds
    text = stats.describe("orders-0", 0, 3)
    assert "cleaned log orders-0 (dirty section = [0, 3])" in text
    assert "(33.3% fewer messages)" in text


def test_offsets_grow_through_the_whole_cleaned_log() -> None:
    log = compact_log()
    for number in range(30):
        append(log, batch([b"v"], key=b"%d" % (number % 7)))
        if number % 10 == 9:
            roll(log)
    clean(log)
    assert all(before.last_offset < after.base_offset for before, after in pairwise(headers(log)))
