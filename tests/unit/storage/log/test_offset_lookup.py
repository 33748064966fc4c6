from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import KafkaStorageError
from barnabas.records.batch import LOG_APPEND_TIME
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.log import Log
from barnabas.storage.log.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    offset_for_timestamp,
    offsets_before,
)
from tests.unit.storage.logs import (
    NOW,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    make_log,
    path,
    restarted,
    write_file,
)


@pytest.fixture
def log() -> Log:
    """Records at 100, 200, … 900, three to a segment, of epochs 0, 1 and 2."""
    log = make_log(settings=config(segment_bytes=300))
    for n in range(9):
        append(log, batch([b"%d" % n], timestamp=100 * (n + 1), size=100), epoch=n // 3)
    return log


def find(log: Log, timestamp: int) -> tuple[int, int, int] | None:
    position = offset_for_timestamp(log, timestamp)
    return None if position is None else tuple(position)  # type: ignore[return-value]


# -- by time


@pytest.mark.parametrize(("timestamp", "offset"), [(0, 0), (100, 0), (101, 1), (300, 2), (301, 3), (850, 8), (900, 8)])
def test_the_first_record_at_or_after_a_time_is_the_answer(log: Log, timestamp: int, offset: int) -> None:
    assert find(log, timestamp) == (100 * (offset + 1), offset, offset // 3)


def test_no_record_may_be_that_young(log: Log) -> None:
    assert find(log, 901) is None


def test_an_empty_log_has_no_record_of_any_time() -> None:
    disk = SimulatedFiles(clock=lambda: 50)
    assert find(make_log(disk), 1000) is None


def test_records_before_the_log_start_do_not_count(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(4, "test")
    assert find(log, 0) == find(log, 450) == (500, 4, 1)


def test_timestamps_that_do_not_rise_are_answered_by_the_first_that_is_late_enough() -> None:
    log = make_log()
    for timestamp in (500, 300, 900, 400):
        append(log, batch(timestamp=timestamp))
    assert find(log, 400) == (500, 0, 0)
    assert find(log, 600) == (900, 2, 0)


def test_a_record_inside_a_batch_is_found() -> None:
    log = make_log()
    append(log, batch(4, timestamps=[100, 400, 200, 300]))
    assert find(log, 150) == (400, 1, 0)


def test_a_record_inside_a_compressed_batch_is_found() -> None:
    log = make_log()
    append(log, batch(4, timestamps=[100, 200, 300, 400], codec=4))
    assert find(log, 250) == (300, 2, 0)


def test_with_log_append_time_all_records_of_a_batch_have_its_time() -> None:
    log = make_log(settings=config(timestamp_type=LOG_APPEND_TIME))
    append(log, batch(3), now_ms=1000)
    append(log, batch(3), now_ms=2000)
    assert find(log, 1500) == (2000, 3, 0)


def test_the_answer_is_the_same_after_a_restart() -> None:
    disk = SimulatedFiles()
    log = make_log(disk, config(segment_bytes=300))
    for n in range(9):
        append(log, batch(timestamp=100 * (n + 1), size=100))
    log.close(NOW)
    again = make_log(restarted(disk), config(segment_bytes=300), clean=True)
    assert [find(again, t) for t in (0, 301, 899)] == [(100, 0, 0), (400, 3, 0), (900, 8, 0)]


@pytest.mark.parametrize("content", [b"", b"\xff" * 36, (50_000).to_bytes(8, "big") + bytes(4), (250).to_bytes(8, "big") + b"\0\0\0\2"])
def test_a_garbage_time_index_changes_no_answer(content: bytes) -> None:
    disk = SimulatedFiles()
    settings_ = config(segment_bytes=300, index_interval_bytes=0)
    log = make_log(disk, settings_)
    for n in range(9):
        append(log, batch(timestamp=100 * (n + 1), size=100))
    log.close(NOW)
    files = restarted(disk)
    for base in (0, 3, 6):
        write_file(files, path(base, ".timeindex"), content)
        files.set_modified_ms(path(base, ".log"), 10_000)
    again = make_log(files, settings_, clean=True)
    expected = [(100, 0, 0), (200, 1, 0), (300, 2, 0)]
    assert [find(again, t) for t in (0, 101, 300)] == expected
    assert again.segments.first.largest_timestamp in (300, 10_000)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), min_size=1, max_size=15), st.integers(0, 300), st.integers(0, 60))
def test_lookups_equal_a_linear_search(layout: list[list[int]], interval: int, start: int) -> None:
    log = make_log(settings=config(index_interval_bytes=interval, segment_bytes=400))
    everything: list[int] = []
    for timestamps in layout:
        append(log, batch(len(timestamps), timestamps=timestamps))
        everything += timestamps
    commit_all(log)
    log.increment_log_start_offset(min(start, log.log_end_offset - 1), "test")
    for target in range(0, 52):
        expected = next((o for o in range(log.log_start_offset, log.log_end_offset) if everything[o] >= target), None)
        position = offset_for_timestamp(log, target)
        assert (None if position is None else position.offset) == expected


# -- questions of their own


def test_the_latest_is_the_log_end_with_the_latest_epoch(log: Log) -> None:
    assert find(log, LATEST) == (-1, 9, 2)


def test_the_earliest_is_the_log_start_with_its_epoch(log: Log) -> None:
    assert find(log, EARLIEST) == (-1, 0, 0)
    commit_all(log)
    log.increment_log_start_offset(5, "test")
    assert find(log, EARLIEST) == find(log, EARLIEST_LOCAL) == (-1, 5, 1)


def test_the_epoch_of_the_earliest_is_unknown_where_old_formats_come_first() -> None:
    log = make_log()
    log.append_as_follower(batch(magic=1), NOW)
    log.append_as_follower(batch(offset=1, leader_epoch=3), NOW)
    assert find(log, EARLIEST) == (-1, 0, -1)


def test_an_empty_log_has_both_at_its_start() -> None:
    log = make_log(log_start_offset=7)
    assert find(log, EARLIEST) == find(log, LATEST) == (-1, 7, -1)


def test_the_largest_timestamp_is_found_in_whatever_segment() -> None:
    log = make_log(settings=config(segment_bytes=300))
    for n, timestamp in enumerate([100, 900, 200, 300, 400, 500]):
        append(log, batch([b"%d" % n], timestamp=timestamp, size=100))
    assert find(log, MAX_TIMESTAMP) == (900, 1, 0)


def test_of_several_records_with_the_largest_timestamp_the_first_is_meant() -> None:
    log = make_log()
    append(log, batch(3, timestamps=[5, 9, 9]))
    append(log, batch(2, timestamps=[9, 9]))
    assert find(log, MAX_TIMESTAMP) == (9, 1, 0)


def test_an_empty_log_has_no_largest_timestamp() -> None:
    assert find(make_log(), MAX_TIMESTAMP) is None


@pytest.mark.parametrize("question", [LATEST_TIERED, EARLIEST_PENDING_UPLOAD])
def test_nothing_is_in_remote_storage(log: Log, question: int) -> None:
    assert find(log, question) == (-1, -1, -1)


def test_a_disk_that_fails_is_reported() -> None:
    disk, host = SimulatedFiles(), RecordingHost()
    log = make_log(disk, host=host)
    append_many(log, 3)
    disk.fail_next("read")
    with pytest.raises(KafkaStorageError, match="while fetching offset by timestamp"):
        offset_for_timestamp(log, NOW)
    assert len(host.failures) == 1


def test_a_closed_log_gives_no_answer(log: Log) -> None:
    log.close(NOW)
    with pytest.raises(KafkaStorageError, match="closed"):
        offset_for_timestamp(log, 5)


# -- as ListOffsets version 0 asks


def three_segments() -> Log:
    """Segments at 0, 3 and 6, last written at 1000, 2000 and 3000; seven records."""
    disk = SimulatedFiles()
    log = make_log(disk, config(segment_bytes=300))
    for _ in range(7):
        append(log, batch(size=100))
    for base, modified_ms in ((0, 1000), (3, 2000), (6, 3000)):
        disk.set_modified_ms(path(base, ".log"), modified_ms)
    return log


def test_the_base_offsets_of_segments_written_before_a_time_come_newest_first() -> None:
    log = three_segments()
    assert offsets_before(log, 2500, 10, 9000) == [3, 0]
    assert offsets_before(log, 2000, 10, 9000) == [3, 0]
    assert offsets_before(log, 999, 10, 9000) == []


def test_the_log_end_is_as_old_as_now() -> None:
    assert offsets_before(three_segments(), 9000, 10, 9000) == [7, 6, 3, 0]
    assert offsets_before(three_segments(), 8999, 10, 9000) == [6, 3, 0]


def test_no_more_offsets_are_given_than_asked_for() -> None:
    assert offsets_before(three_segments(), LATEST, 2, 9000) == [7, 6]
    assert offsets_before(three_segments(), LATEST, 1, 9000) == [7]


def test_the_earliest_is_the_first_segment_or_the_log_start() -> None:
    log = three_segments()
    assert offsets_before(log, EARLIEST, 5, 9000) == [0]
    commit_all(log)
    log.increment_log_start_offset(2, "test")
    assert offsets_before(log, EARLIEST, 5, 9000) == [2]


def test_an_empty_active_segment_adds_no_log_end() -> None:
    log = three_segments()
    log.roll(NOW)
    assert offsets_before(log, LATEST, 10, 9000) == [7, 6, 3, 0]
