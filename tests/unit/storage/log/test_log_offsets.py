from __future__ import annotations

import pytest

from barnabas.errors import OffsetOutOfRange
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset
from tests.unit.storage.logs import NOW, Producer, append, append_many, batch, commit_all, config, make_log, produced, records, restarted


@pytest.fixture
def log() -> Log:
    """Ten records of a batch each, in segments of three."""
    log = make_log(settings=config(segment_bytes=300))
    for n in range(10):
        append(log, batch([b"%d" % n], size=100))
    return log


# -- places


def test_an_offset_without_a_place_says_so() -> None:
    assert not LogOffset(5).has_position
    assert LogOffset(5, 0, 0).has_position


def test_places_are_compared_by_segment() -> None:
    older, newer = LogOffset(5, 0, 100), LogOffset(5, 5, 0)
    assert older.on_older_segment(newer) and not newer.on_older_segment(older) and not older.on_older_segment(older)
    assert older.on_same_segment(LogOffset(9, 0, 300)) and not older.on_same_segment(newer)


def test_an_offset_without_a_place_is_on_no_segment() -> None:
    assert not LogOffset(5).on_older_segment(LogOffset(6, 6, 0))
    assert not LogOffset(5).on_same_segment(LogOffset(5))


def test_the_distance_of_two_offsets_on_one_segment_is_in_bytes() -> None:
    assert LogOffset(9, 0, 300).bytes_after(LogOffset(5, 0, 100)) == 200


def test_there_is_no_distance_across_segments() -> None:
    with pytest.raises(ValueError, match="not known to be on the same segment"):
        LogOffset(9, 5, 0).bytes_after(LogOffset(5, 0, 100))


# -- the high watermark


def test_the_high_watermark_begins_at_the_log_start() -> None:
    assert make_log(log_start_offset=0).high_watermark == 0
    assert make_log(log_start_offset=50).high_watermark == 50


def test_what_a_leader_says_is_kept_within_the_log(log: Log) -> None:
    assert log.update_high_watermark(4) == 4
    assert log.update_high_watermark(400) == 10
    log.increment_log_start_offset(3, "test")
    assert log.update_high_watermark(1) == 3


def test_a_high_watermark_at_the_log_end_has_the_place_of_the_log_end(log: Log) -> None:
    log.update_high_watermark(10)
    assert log.fetch_high_watermark() == log.end == LogOffset(10, 9, 100)


def test_the_place_of_the_high_watermark_is_looked_up(log: Log) -> None:
    log.update_high_watermark(4)
    assert log.fetch_high_watermark() == LogOffset(4, 3, 100)


def test_looking_up_the_place_does_not_move_the_high_watermark() -> None:
    log = make_log()
    append(log, batch(3))
    append(log, batch(5))
    log.update_high_watermark(4)
    log.truncate_to(6, NOW)  # cuts the second batch as a whole: there is nothing at offset 4 any more
    assert log.fetch_high_watermark().offset == 4
    assert log.high_watermark == 4


def test_a_leader_moves_the_high_watermark_forward_and_is_told_the_old_one(log: Log) -> None:
    assert log.maybe_increment_high_watermark(LogOffset(4)) == LogOffset(0, 0, 0)
    assert log.high_watermark == 4


def test_a_leader_does_not_move_it_back_or_to_where_it_is(log: Log) -> None:
    log.update_high_watermark(6)
    assert log.maybe_increment_high_watermark(LogOffset(5)) is None
    assert log.maybe_increment_high_watermark(LogOffset(6)) is None
    assert log.high_watermark == 6


def test_a_leader_cannot_move_it_past_the_log_end(log: Log) -> None:
    with pytest.raises(ValueError, match="High watermark 11 update exceeds current log end offset 10"):
        log.maybe_increment_high_watermark(LogOffset(11))


def test_the_same_offset_on_a_newer_segment_is_a_step_forward() -> None:
    log = make_log()
    append_many(log, 3)
    old = log.end
    log.maybe_increment_high_watermark(old)
    log.roll(NOW)
    log._high_watermark = old  # as a leader has it who learnt of it before the roll
    assert log.maybe_increment_high_watermark(log.end) == old
    assert log.fetch_high_watermark() == LogOffset(3, 3, 0)


def test_a_roll_takes_the_high_watermark_at_the_end_along() -> None:
    log = make_log()
    append_many(log, 3)
    commit_all(log)
    log.roll(NOW)
    assert log.fetch_high_watermark() == LogOffset(3, 3, 0)
    append_many(log, 1)
    assert [o for o, _ in records(log, FetchIsolation.HIGH_WATERMARK)] == [0, 1, 2]
    commit_all(log)
    assert [o for o, _ in records(log, FetchIsolation.HIGH_WATERMARK)] == [0, 1, 2, 3]


def test_a_high_watermark_below_the_end_stays_where_it_is_when_the_log_rolls() -> None:
    log = make_log()
    append_many(log, 3)
    log.update_high_watermark(2)
    place = log.fetch_high_watermark()
    log.roll(NOW)
    assert log.fetch_high_watermark() == place


def test_a_negative_high_watermark_is_refused() -> None:
    log = make_log()
    with pytest.raises(ValueError, match="non-negative"):
        log._set_high_watermark(LogOffset(-1))


def test_appending_does_not_move_the_high_watermark(log: Log) -> None:
    log.update_high_watermark(10)
    append(log)
    assert log.high_watermark == 10


def test_a_high_watermark_above_a_gap_is_readable_up_to_it() -> None:
    log = make_log()
    for offset in (0, 5, 9):
        log.append_as_follower(batch(offset=offset), NOW)
    log.update_high_watermark(7)
    assert [o for o, _ in records(log, FetchIsolation.HIGH_WATERMARK)] == [0, 5]


# -- the log start offset


def test_deleting_records_raises_the_log_start(log: Log) -> None:
    commit_all(log)
    assert log.increment_log_start_offset(4, "client delete records request")
    assert log.log_start_offset == 4
    assert [o for o, _ in records(log)] == [4, 5, 6, 7, 8, 9]


def test_the_log_start_does_not_go_back(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(4, "test")
    assert not log.increment_log_start_offset(4, "test")
    assert not log.increment_log_start_offset(2, "test")
    assert log.log_start_offset == 4


def test_the_log_start_cannot_pass_the_high_watermark(log: Log) -> None:
    log.update_high_watermark(5)
    with pytest.raises(OffsetOutOfRange, match="Cannot increment the log start offset to 6 of partition orders-0 since it is larger than"):
        log.increment_log_start_offset(6, "test")
    assert log.log_start_offset == 0


def test_all_records_can_be_deleted(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(10, "test")
    assert records(log) == []
    assert append(log).first_offset == 10


def test_epochs_below_the_log_start_are_forgotten() -> None:
    log = make_log()
    for epoch in (1, 1, 3, 5, 5):
        append(log, epoch=epoch)
    commit_all(log)
    log.increment_log_start_offset(3, "test")
    assert log.epochs.entries == [EpochEntry(5, 3)]
    log.increment_log_start_offset(4, "test")
    assert log.epochs.entries == [EpochEntry(5, 4)]


def test_deleted_records_leave_their_producers(log: Log) -> None:
    data = produced(3, 0)
    append(log, data)
    commit_all(log)
    log.increment_log_start_offset(11, "test")
    assert append(log, data).duplicate


def test_a_log_start_in_the_first_segment_is_found_again_from_its_checkpoint() -> None:
    disk = SimulatedFiles()
    log = make_log(disk)
    append_many(log, 5)
    log.close(NOW)
    again = make_log(restarted(disk), clean=True, log_start_offset=3)
    assert (again.log_start_offset, again.high_watermark) == (3, 3)
    assert [o for o, _ in records(again)] == [3, 4]


def test_the_log_start_is_never_below_the_first_segment() -> None:
    disk = SimulatedFiles()
    log = make_log(disk)
    append_many(log, 5)
    commit_all(log)
    log.roll(NOW)
    log.increment_log_start_offset(5, "test")
    log.delete_old_segments(NOW)
    append_many(log, 1)
    assert make_log(restarted(disk)).log_start_offset == 5


# -- the last stable offset


def test_without_transactions_it_is_the_high_watermark(log: Log) -> None:
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4
    assert log.fetch_last_stable_offset() == LogOffset(4, 3, 100)


def test_an_open_transaction_holds_it_back() -> None:
    log = make_log()
    append_many(log, 2)
    producer = Producer(log, 1)
    producer.write(3)
    append_many(log, 2)
    commit_all(log)
    assert log.last_stable_offset == 2
    assert log.fetch_last_stable_offset().offset == 2


def test_it_never_passes_the_high_watermark() -> None:
    log = make_log()
    append_many(log, 5)
    Producer(log, 1).write()
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5
    log.update_high_watermark(6)
    assert log.last_stable_offset == 5


def test_a_decided_transaction_holds_it_back_until_its_marker_is_replicated() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write(2)
    producer.commit()
    log.update_high_watermark(2)
    assert log.last_stable_offset == 0
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_the_oldest_of_several_transactions_holds_it_back() -> None:
    log = make_log()
    first, second = Producer(log, 1), Producer(log, 2)
    first.write()
    second.write()
    first.write()
    second.commit()
    commit_all(log)
    assert log.last_stable_offset == 0
    first.abort()
    commit_all(log)
    assert log.last_stable_offset == 5


def test_a_transaction_whose_beginning_was_deleted_holds_it_back_at_the_log_start() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write(4)
    append_many(log, 4)
    commit_all(log)
    log.increment_log_start_offset(6, "test")
    assert log.last_stable_offset == 6
    assert log.fetch_last_stable_offset().has_position
    producer.commit()
    commit_all(log)
    assert log.last_stable_offset == 9


def test_it_has_its_place_also_after_a_restart() -> None:
    disk = SimulatedFiles()
    log = make_log(disk)
    append(log, batch(size=100))
    Producer(log, 1).write()
    append_many(log, 2)
    log.close(NOW)
    again = make_log(restarted(disk), clean=True)
    commit_all(again)
    assert again.fetch_last_stable_offset() == LogOffset(1, 0, 100)


def test_the_four_offsets_stand_in_order(log: Log) -> None:
    Producer(log, 1).write()
    append_many(log, 3)
    log.update_high_watermark(12)
    log.increment_log_start_offset(2, "test")
    assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
    assert repr(log) == (
        "Log(dir=/data/orders-0, topic=orders, partition=0, highWatermark=12, lastStableOffset=10, logStartOffset=2, logEndOffset=14)"
    )
