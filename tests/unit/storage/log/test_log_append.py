from __future__ import annotations

import random

import pytest

from barnabas.errors import (
    CorruptRecord,
    InconsistentTopicId,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    OffsetsOutOfOrder,
    OutOfOrderSequence,
    RecordBatchTooLarge,
    RecordTooLarge,
    UnexpectedAppendOffset,
)
from barnabas.records.batch import LOG_APPEND_TIME, read_batches
from barnabas.records.codecs.compression import LZ4, ZSTD
from barnabas.records.reader import read_records
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.log import Log
from barnabas.uuid import Uuid
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    append,
    append_many,
    batch,
    batches_of,
    config,
    make_log,
    marker,
    offsets_of,
    path,
    produced,
    records,
    restarted,
    values,
)

# -- as leader


def test_records_get_the_next_offsets(log: Log) -> None:
    assert offsets_of(append(log, batch(3))) == (0, 2)
    assert offsets_of(append(log, batch(2))) == (3, 4)
    assert log.log_end_offset == 5
    assert [offset for offset, _ in records(log)] == [0, 1, 2, 3, 4]


def test_an_append_says_what_became_of_it(log: Log) -> None:
    append_many(log, 4)
    log.update_high_watermark(2)
    log.increment_log_start_offset(1, "test")
    data = batch(3, timestamps=[NOW, NOW + 5, NOW + 1])
    info = append(log, data)
    assert (info.first_offset, info.last_offset, info.max_timestamp, info.log_append_time) == (4, 6, NOW + 5, -1)
    assert (info.log_start_offset, info.size, info.batches, info.duplicate) == (1, len(data), 1, False)


def test_the_leader_epoch_is_written_into_the_batch(log: Log) -> None:
    append(log, epoch=7)
    assert batches_of(log)[0].leader_epoch == 7


def test_a_part_of_a_request_can_be_appended_without_copying_it_out(log: Log) -> None:
    data = batch([b"mine"])
    log.append_as_leader(LogAppend(b"head" + data + b"tail", NOW, start=4, end=4 + len(data)), 0)
    assert values(log) == [b"mine"]


@pytest.mark.parametrize("data", [b"", b"short", batch(2)[:50]])
def test_nothing_is_appended_where_there_is_no_whole_batch(log: Log, data: bytes) -> None:
    info = append(log, data)
    assert (info.first_offset, info.last_offset, info.batches, info.size) == (-1, -1, 0, 0)
    assert log.log_end_offset == 0 and log.size == 0


def test_several_batches_of_the_new_format_in_one_append_are_refused(log: Log) -> None:
    with pytest.raises(InvalidRecord):
        append(log, batch() + batch())
    assert log.size == 0


def test_a_batch_larger_than_a_message_may_be_is_refused(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(max_message_bytes=200))
    append(log, batch(size=200))
    with pytest.raises(RecordTooLarge, match="is 201 bytes which exceeds the maximum configured value of 200"):
        append(log, batch(size=201))
    assert log.log_end_offset == 1


def test_a_batch_that_grows_by_recompression_is_measured_again(disk: SimulatedFiles) -> None:
    value = b"a" * 2000
    compressed = batch([value], codec=ZSTD)
    log = make_log(disk, config(max_message_bytes=1000, codec=0))
    assert len(compressed) < 1000
    with pytest.raises(RecordTooLarge, match="exceeds the maximum configured size of 1000"):
        append(log, compressed)
    assert log.size == 0


def test_an_append_larger_than_a_segment_is_another_error(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_bytes=300))
    append(log, batch(size=300))
    with pytest.raises(
        RecordBatchTooLarge, match="301 bytes in append to partition orders-0, which exceeds the maximum configured segment"
    ):
        append(log, batch(size=301))
    assert log.log_end_offset == 1 and len(log.segments) == 1


def test_a_corrupt_batch_is_refused(log: Log) -> None:
    data = bytearray(batch())
    data[-1] ^= 1
    with pytest.raises(CorruptRecord):
        append(log, bytes(data))
    assert log.size == 0


def test_a_timestamp_too_far_in_the_future_is_refused(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(timestamp_after_max_ms=1000))
    append(log, batch(timestamp=NOW + 1000))
    with pytest.raises(InvalidTimestamp):
        append(log, batch(timestamp=NOW + 1001))


def test_with_log_append_time_the_clock_replaces_the_timestamps(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(timestamp_type=LOG_APPEND_TIME))
    info = append(log, batch(2, timestamp=5), now_ms=NOW + 9)
    assert (info.max_timestamp, info.log_append_time) == (NOW + 9, NOW + 9)
    data = disk.read_bytes(path(0, ".log"))
    assert [r.timestamp for r in read_records(data, read_batches(data)[0])] == [NOW + 9, NOW + 9]


def test_the_compression_of_the_topic_replaces_that_of_the_producer(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(codec=LZ4))
    append(log, batch([b"value" * 100]))
    assert batches_of(log)[0].codec == LZ4
    assert values(log) == [b"value" * 100]


def test_the_compression_of_the_producer_is_kept_by_default(log: Log) -> None:
    append(log, batch([b"value" * 100], codec=ZSTD))
    assert batches_of(log)[0].codec == ZSTD


def test_a_new_configuration_holds_for_the_next_append(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(max_message_bytes=1000))
    log.update_config(config(max_message_bytes=100))
    with pytest.raises(RecordTooLarge):
        append(log, batch(size=500))


def test_a_compacted_topic_refuses_records_without_a_key(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(cleanup_policy=frozenset({"compact"})))
    with pytest.raises(InvalidRecord):
        append(log, batch())
    append(log, batch(key=b"k"))


def test_old_formats_are_taken_and_written_in_the_new_one(log: Log) -> None:
    info = append(log, batch(3, magic=1))
    assert (info.first_offset, info.last_offset, info.converted_records) == (0, 2, 3)
    assert [b.magic for b in batches_of(log)] == [2]


# -- leader epochs


def test_an_epoch_is_noted_where_it_begins(log: Log) -> None:
    append(log, epoch=1)
    append(log, epoch=1)
    append(log, epoch=4)
    assert log.epochs.entries == [EpochEntry(1, 0), EpochEntry(4, 2)]
    assert log.latest_epoch == 4


def test_a_follower_notes_the_epochs_in_the_batches(log: Log) -> None:
    log.append_as_follower(batch(2, leader_epoch=3) + batch(offset=2, leader_epoch=5) + batch(offset=3, leader_epoch=5), NOW)
    assert log.epochs.entries == [EpochEntry(3, 0), EpochEntry(5, 2)]


def test_old_formats_from_a_leader_clear_the_epochs(log: Log) -> None:
    append(log, epoch=3)
    log.append_as_follower(batch(offset=1, magic=1), NOW)
    assert log.epochs.entries == []
    assert log.files.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n0\n"


# -- as follower


def test_a_follower_keeps_the_bytes_it_is_given(log: Log, disk: SimulatedFiles) -> None:
    data = batch(2, offset=0, leader_epoch=1) + batch(3, offset=2, leader_epoch=1, codec=ZSTD)
    info = log.append_as_follower(data, NOW)
    assert (info.first_offset, info.last_offset, info.batches, info.size) == (0, 4, 2, len(data))
    assert disk.read_bytes(path(0, ".log")) == data


def test_a_follower_accepts_gaps(log: Log) -> None:
    log.append_as_follower(batch(offset=5) + batch(offset=9), NOW)
    assert log.log_end_offset == 10
    assert [offset for offset, _ in records(log)] == [5, 9]


def test_a_batch_cut_short_at_the_end_is_trimmed(log: Log, disk: SimulatedFiles) -> None:
    whole = batch(2)
    info = log.append_as_follower(whole + batch(2, offset=2)[:-3], NOW)
    assert (info.last_offset, info.size) == (1, len(whole))
    assert disk.read_bytes(path(0, ".log")) == whole


def test_a_follower_given_less_than_one_batch_does_nothing(log: Log) -> None:
    assert log.append_as_follower(batch()[:-1], NOW).batches == 0
    assert log.size == 0


@pytest.mark.parametrize("second", [0, 1, 2])
def test_offsets_that_do_not_rise_are_refused(log: Log, second: int) -> None:
    with pytest.raises(OffsetsOutOfOrder, match="orders-0"):
        log.append_as_follower(batch(3) + batch(2, offset=second), NOW)
    assert log.size == 0


def test_a_batch_that_reaches_back_into_the_one_before_is_refused(log: Log) -> None:
    with pytest.raises(OffsetsOutOfOrder):
        log.append_as_follower(batch(3) + batch(9, offset=2), NOW)
    assert log.size == 0


def test_an_append_below_the_log_end_offset_is_refused_with_its_offsets(log: Log) -> None:
    append(log, batch(5))
    with pytest.raises(UnexpectedAppendOffset, match="First offset 3 is less than the next offset 5") as refused:
        log.append_as_follower(batch(2, offset=3) + batch(2, offset=5), NOW)
    assert (refused.value.first_offset, refused.value.last_offset) == (3, 6)
    assert log.log_end_offset == 5


def test_an_old_batch_that_ends_below_the_log_end_offset_is_refused(log: Log) -> None:
    append(log, batch(5))
    with pytest.raises(UnexpectedAppendOffset, match="Last offset of the first batch 4 is less than the next offset 5"):
        log.append_as_follower(batch(offset=4, magic=1), NOW)


def test_batches_of_a_later_epoch_are_left_for_the_next_fetch(log: Log) -> None:
    data = batch(leader_epoch=3) + batch(offset=1, leader_epoch=4) + batch(offset=2, leader_epoch=5)
    assert log.append_as_follower(data, NOW, leader_epoch=4).last_offset == 1
    assert log.log_end_offset == 2
    assert log.latest_epoch == 4


def test_nothing_is_appended_if_all_batches_are_of_a_later_epoch(log: Log) -> None:
    assert log.append_as_follower(batch(leader_epoch=9), NOW, leader_epoch=8).batches == 0
    assert log.size == 0 and log.epochs.entries == []


def test_a_corrupt_batch_of_the_leader_is_refused_and_nothing_before_it_is_written(log: Log) -> None:
    damaged = bytearray(batch(offset=1))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecord, match="orders-0"):
        log.append_as_follower(batch() + bytes(damaged), NOW)
    assert log.size == 0


def test_a_follower_takes_batches_of_any_size_its_leader_took(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(max_message_bytes=100))
    log.append_as_follower(batch(size=500), NOW)
    assert log.log_end_offset == 1


def test_a_fetch_full_of_markers_is_looked_at_once(log: Log) -> None:
    """Every marker is read from the same bytes; copying them for each would take the square of the time."""
    data = b"".join(marker(producer, False, offset=producer) for producer in range(2000))
    log.append_as_follower(data + b"torn", NOW)
    assert log.log_end_offset == 2000


# -- producers


def test_a_retried_batch_is_answered_with_its_first_offsets_and_not_written_again(log: Log) -> None:
    append(log)
    data = produced(7, 0, 3, timestamp=NOW + 3)
    append(log, data)
    append(log)
    size = log.size
    info = append(log, data)
    assert (info.first_offset, info.last_offset, info.log_append_time, info.duplicate) == (1, 3, NOW + 3, True)
    assert log.size == size and log.log_end_offset == 5


@pytest.mark.parametrize("back", range(5))
def test_any_of_the_last_five_batches_is_recognised(log: Log, back: int) -> None:
    sent = [produced(7, sequence) for sequence in range(6)]
    for data in sent:
        append(log, data)
    assert offsets_of(append(log, sent[5 - back])) == (5 - back, 5 - back)


def test_an_older_retry_is_out_of_order(log: Log) -> None:
    sent = [produced(7, sequence) for sequence in range(6)]
    for data in sent:
        append(log, data)
    with pytest.raises(OutOfOrderSequence):
        append(log, sent[0])
    assert log.log_end_offset == 6


def test_a_retry_is_recognised_after_a_clean_restart(disk: SimulatedFiles, log: Log) -> None:
    data = produced(7, 0, 2)
    append(log, data)
    log.close(NOW)
    again = make_log(restarted(disk), clean=True)
    assert append(again, data).duplicate and again.log_end_offset == 2


def test_a_retry_is_recognised_after_a_crash(disk: SimulatedFiles, log: Log) -> None:
    data = produced(7, 0, 2)
    append(log, data)
    again = make_log(restarted(disk))
    assert append(again, data).duplicate and again.log_end_offset == 2


def test_a_retry_that_finds_the_segment_full_is_still_a_retry(disk: SimulatedFiles) -> None:
    """The producers are asked after the roll: a duplicate may leave an empty segment behind, never a second copy."""
    log = make_log(disk, config(segment_bytes=150))
    data = produced(7, 0, size=150)
    append(log, data)
    assert append(log, data).duplicate
    assert log.segments.base_offsets == [0, 1]
    append(log, produced(7, 1))
    assert [offset for offset, _ in records(log)] == [0, 1]


def test_a_gap_in_the_sequence_is_refused_and_leaves_no_trace(log: Log) -> None:
    append(log, produced(7, 0))
    with pytest.raises(OutOfOrderSequence):
        append(log, produced(7, 5))
    assert log.log_end_offset == 1
    append(log, produced(7, 1))


def test_a_fenced_producer_is_refused(log: Log) -> None:
    append(log, produced(7, 0, epoch=3))
    with pytest.raises(InvalidProducerEpoch):
        append(log, produced(7, 0, epoch=2))
    assert log.log_end_offset == 1


def test_a_follower_remembers_the_producers_of_all_batches(log: Log) -> None:
    log.append_as_follower(produced(1, 0, 2) + produced(2, 0, offset=2) + produced(1, 2, offset=3), NOW)
    assert {i: e.last_sequence for i, e in log.producers.active_producers.items()} == {1: 2, 2: 0}
    assert append(log, produced(1, 2)).duplicate


def test_the_producer_state_covers_records_without_a_producer(log: Log) -> None:
    append(log, batch(4))
    assert log.producers.map_end_offset == 4


# -- the topic id


def test_the_topic_id_is_on_disk_before_the_first_record(disk: SimulatedFiles, log: Log) -> None:
    topic_id = Uuid.random(random.Random())
    log.assign_topic_id(topic_id)
    append(log)
    written = disk.read_bytes(f"{DIRECTORY}/partition.metadata")
    assert written == f"version: 0\ntopic_id: {topic_id}".encode()
    assert make_log(restarted(disk)).topic_id == topic_id


def test_another_topic_id_is_refused(log: Log) -> None:
    log.assign_topic_id(Uuid.random(random.Random()))
    with pytest.raises(InconsistentTopicId):
        log.assign_topic_id(Uuid.random(random.Random()))
