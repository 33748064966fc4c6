from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import KafkaStorageError, OffsetOutOfRange
from barnabas.records.codecs.compression import LZ4
from barnabas.records.reader import records_of
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.fetch import FetchData, FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset
from tests.unit.storage.logs import (
    NOW,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    make_log,
    records,
    restarted,
    scanned,
)

LOG_END, HIGH_WATERMARK, TXN_COMMITTED = FetchIsolation.LOG_END, FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED


@pytest.fixture
def log() -> Log:
    """Ten records of a batch each, in segments of three."""
    log = make_log(settings=config(segment_bytes=300, index_interval_bytes=0))
    for n in range(10):
        append(log, batch([b"%d" % n], size=100))
    assert log.segments.base_offsets == [0, 3, 6, 9]
    return log


def offsets(fetched: FetchData) -> list[int]:
    return [] if fetched.records is None else [record.offset for record in records_of(fetched.records.read())]


def test_a_read_gives_the_batches_of_one_segment_from_the_offset_on(log: Log) -> None:
    assert offsets(log.read(4, 10_000, LOG_END)) == [4, 5]


def test_a_read_tells_the_place_where_it_begins(log: Log) -> None:
    assert log.read(4, 10_000, LOG_END).offset == LogOffset(4, 3, 100)


def test_a_read_at_the_log_end_is_empty_and_tells_its_place(log: Log) -> None:
    assert log.read(10, 1000, LOG_END) == FetchData(LogOffset(10, 9, 100), None)


def test_an_empty_log_can_be_read_at_its_end() -> None:
    assert make_log().read(0, 1000, LOG_END) == FetchData(LogOffset(0, 0, 0), None)


def test_an_offset_past_the_log_end_is_out_of_range(log: Log) -> None:
    with pytest.raises(OffsetOutOfRange, match="offset 11 for partition orders-0, but we only have log segments upto 10"):
        log.read(11, 1000, LOG_END)


def test_an_offset_past_the_log_end_is_out_of_range_for_every_reader(log: Log) -> None:
    for isolation in FetchIsolation:
        with pytest.raises(OffsetOutOfRange):
            log.read(11, 1000, isolation)


def test_an_offset_below_the_log_start_is_out_of_range(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(4, "test")
    with pytest.raises(OffsetOutOfRange, match="offset 3 for partition orders-0, but we only have log segments starting from offset: 4"):
        log.read(3, 1000, LOG_END)
    assert offsets(log.read(4, 1000, LOG_END)) == [4, 5]


def test_a_follower_reads_up_to_the_log_end(log: Log) -> None:
    log.update_high_watermark(5)
    assert offsets(log.read(4, 1000, LOG_END)) == [4, 5]


def test_a_consumer_reads_up_to_the_high_watermark(log: Log) -> None:
    log.update_high_watermark(5)
    assert offsets(log.read(3, 1000, HIGH_WATERMARK)) == [3, 4]
    assert offsets(log.read(0, 1000, HIGH_WATERMARK)) == [0, 1, 2]


def test_a_consumer_at_the_high_watermark_gets_nothing_and_its_place(log: Log) -> None:
    log.update_high_watermark(5)
    assert log.read(5, 1000, HIGH_WATERMARK) == FetchData(LogOffset(5, 3, 200), None)


def test_a_consumer_past_the_high_watermark_gets_nothing_and_its_place(log: Log) -> None:
    log.update_high_watermark(5)
    assert log.read(7, 1000, HIGH_WATERMARK) == FetchData(LogOffset(7, 6, 100), None)


def test_a_high_watermark_between_two_segments_shows_all_of_the_first(log: Log) -> None:
    log.update_high_watermark(6)
    assert offsets(log.read(3, 1000, HIGH_WATERMARK)) == [3, 4, 5]
    assert log.read(6, 1000, HIGH_WATERMARK).records is None


def test_one_message_is_given_to_a_reader_with_a_small_buffer(log: Log) -> None:
    assert offsets(log.read(4, 1, LOG_END, min_one_message=True)) == [4]


def test_a_reader_with_a_small_buffer_is_told_that_the_first_batch_is_incomplete(log: Log) -> None:
    fetched = log.read(4, 99, LOG_END)
    assert fetched.first_entry_incomplete and fetched.records is not None and fetched.records.size == 99


def test_not_one_message_is_given_past_the_high_watermark(log: Log) -> None:
    log.update_high_watermark(4)
    assert log.read(4, 1, HIGH_WATERMARK, min_one_message=True).records is None


def test_a_high_watermark_inside_a_batch_shows_nothing_of_that_batch() -> None:
    log = make_log()
    append(log, batch(3))
    append(log, batch(3))
    log.update_high_watermark(4)
    assert offsets(log.read(0, 1000, HIGH_WATERMARK)) == [0, 1, 2]
    fetched = log.read(3, 1000, HIGH_WATERMARK)
    assert offsets(fetched) == []


def test_a_read_goes_on_to_the_next_segment_where_compaction_left_a_gap() -> None:
    log = make_log()
    for offset in (0, 1, 20, 21):
        log.append_as_follower(batch(offset=offset), NOW)
        if offset in (1, 20):
            log.roll(NOW)
    assert log.segments.base_offsets == [0, 2, 21]
    assert offsets(log.read(2, 1000, LOG_END)) == [20]
    assert offsets(log.read(19, 1000, LOG_END)) == [20]
    assert log.read(2, 1000, LOG_END).offset == LogOffset(2, 2, 0)


def test_a_read_skips_segments_without_records_at_or_after_the_offset() -> None:
    log = make_log()
    log.append_as_follower(batch(offset=0), NOW)
    log.roll(NOW, 5)
    log.append_as_follower(batch(offset=9), NOW)
    assert log.segments.base_offsets == [0, 5]
    for offset in range(1, 9):
        assert offsets(log.read(offset, 1000, LOG_END)) == [9]


def test_a_read_where_everything_up_to_the_end_is_gone_is_empty_at_the_log_end() -> None:
    log = make_log()
    append(log, batch(4))
    append(log, batch(4))
    log.truncate_to(6, NOW)  # in the middle of the second batch: nothing is left of it
    assert log.log_end_offset == 6
    assert log.read(5, 1000, LOG_END) == FetchData(log.end, None)


def test_a_read_may_begin_in_the_middle_of_a_compressed_batch() -> None:
    log = make_log()
    append(log, batch(5, codec=LZ4))
    assert offsets(log.read(3, 1000, LOG_END)) == [0, 1, 2, 3, 4]


def test_a_reader_goes_on_while_its_segment_is_deleted() -> None:
    host = RecordingHost()
    log = make_log(settings=config(segment_bytes=100), host=host)
    for n in range(3):
        append(log, batch([b"%d" % n], size=100))
    fetched = log.read(0, 1000, LOG_END)
    commit_all(log)
    log.increment_log_start_offset(2, "test")
    log.delete_old_segments(NOW)
    assert offsets(fetched) == [0]


def test_a_closed_log_cannot_be_read(log: Log) -> None:
    log.close(NOW)
    with pytest.raises(KafkaStorageError, match="closed"):
        log.read(0, 1000, LOG_END)


def test_a_disk_that_fails_while_reading_is_reported() -> None:
    disk, host = SimulatedFiles(), RecordingHost()
    log = make_log(disk, host=host)
    append(log)
    disk.fail_next("read")
    with pytest.raises(KafkaStorageError, match="while reading"):
        log.read(0, 1000, LOG_END)
    assert len(host.failures) == 1


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 0, 0, 2, 7]), st.integers(70, 400), st.booleans()), min_size=1, max_size=15),
    st.integers(0, 300),
    st.integers(150, 900),
    st.booleans(),
)
def test_reads_at_every_offset_equal_a_linear_scan(
    layout: list[tuple[int, int, int, bool]], interval: int, segment_bytes: int, reopen: bool
) -> None:
    disk = SimulatedFiles()
    settings_ = config(segment_bytes=max(segment_bytes, 401), index_interval_bytes=interval)
    log = make_log(disk, settings_)
    for count, gap, size, roll in layout:
        log.append_as_follower(batch(count, offset=log.log_end_offset + gap, size=size), NOW)
        if roll and log.active_segment.size:
            log.roll(NOW)
    if reopen:
        log.close(NOW)
        log = make_log(restarted(disk), settings_, clean=True)
    everything = scanned(log)
    for offset in range(log.log_start_offset, log.log_end_offset):
        expected = next((o for o, _ in everything if o >= offset), None)
        got = [o for o in offsets(log.read(offset, 500, LOG_END, min_one_message=True)) if o >= offset]
        assert (got[0] if got else None) == expected
    assert records(log) == everything


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(0, 60), st.integers(0, 60))
def test_no_reader_sees_a_record_from_the_high_watermark_on(counts: list[int], high_watermark: int, rolled_at: int) -> None:
    log = make_log()
    for count in counts:
        append(log, batch(count))
        if log.log_end_offset >= rolled_at and len(log.segments) == 1:
            log.roll(NOW)
    log.update_high_watermark(high_watermark)
    bound = min(high_watermark, log.log_end_offset)
    offsets = [offset for offset, _ in records(log, HIGH_WATERMARK)]
    assert all(offset < bound for offset in offsets)
    whole = [offset for offset, _ in scanned(log) if offset < bound]
    assert len(whole) - len(offsets) < 5, "all but the batch that the high watermark cuts is readable"


def test_appending_many_and_reading_back_in_small_bites_gives_everything() -> None:
    log = make_log(settings=config(segment_bytes=1000, index_interval_bytes=100))
    append_many(log, 200)
    for max_bytes in (1, 77, 250, 10**6):
        assert [offset for offset, _ in records(log, max_bytes=max_bytes)] == list(range(200))
