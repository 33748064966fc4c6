from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import InvalidProducerEpoch, InvalidRecord, InvalidTxnState, TransactionCoordinatorFenced
from barnabas.records.batch import read_batches
from barnabas.records.reader import read_records
from barnabas.records.validation.validator import COORDINATOR
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.storage.logs import (
    NOW,
    Producer,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    file_name,
    make_log,
    marker,
    names_in,
    produced,
    restarted,
)

COMMITTED = FetchIsolation.TXN_COMMITTED


def read_committed(log: Log, max_bytes: int = 10**6) -> list[int]:
    """The offsets of the data that a consumer with read_committed hands on: it leaves out what the aborted list tells it to."""
    offsets: list[int] = []
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, max_bytes, COMMITTED, min_one_message=True)
        data = b"" if fetched.records is None else fetched.records.read()
        batches = [b for b in read_batches(data) if b.last_offset >= offset]
        if not batches:
            return offsets
        assert fetched.aborted is not None
        offsets += _not_aborted(data, batches, fetched.aborted, offset)
        offset = batches[-1].last_offset + 1


def _not_aborted(data: bytes, batches: list, aborted: list[AbortedTxn], offset: int) -> list[int]:  # type: ignore[type-arg]
    """As Kafka's consumer does it: a producer's batches are skipped from the first offset of its aborted transaction up to its marker."""
    pending = sorted(aborted, key=lambda txn: txn.first_offset)
    skipped: set[int] = set()
    kept: list[int] = []
    for read in batches:
        while pending and pending[0].first_offset <= read.last_offset:
            skipped.add(pending.pop(0).producer_id)
        if read.is_control:
            skipped.discard(read.producer_id)
        elif not (read.is_transactional and read.producer_id in skipped):
            kept += [record.offset for record in read_records(data, read) if record.offset >= offset]
    return kept


def test_read_committed_sees_committed_records_and_those_without_a_transaction() -> None:
    log = make_log()
    append(log)
    producer = Producer(log, 1)
    producer.write(2)
    producer.commit()
    append(log)
    commit_all(log)
    assert read_committed(log) == [0, 1, 2, 4]


def test_read_committed_stops_at_an_open_transaction() -> None:
    log = make_log()
    append_many(log, 2)
    Producer(log, 1).write()
    append_many(log, 2)
    commit_all(log)
    assert read_committed(log) == [0, 1]


def test_read_committed_at_the_last_stable_offset_gets_an_empty_list_of_aborted_transactions() -> None:
    log = make_log()
    Producer(log, 1).write()
    commit_all(log)
    fetched = log.read(0, 1000, COMMITTED)
    assert (fetched.records, fetched.aborted) == (None, [])


def test_other_readers_get_no_list_of_aborted_transactions() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write()
    producer.abort()
    commit_all(log)
    assert log.read(0, 1000, FetchIsolation.HIGH_WATERMARK).aborted is None


def test_an_aborted_transaction_is_named_to_whoever_reads_its_records() -> None:
    log = make_log()
    producer = Producer(log, 9)
    producer.write(2)
    append(log)
    producer.abort()
    commit_all(log)
    assert log.read(0, 1000, COMMITTED).aborted == [AbortedTxn(9, 0, 3, 4)]
    assert read_committed(log) == [2]


def test_a_committed_transaction_is_not_in_the_index() -> None:
    disk = SimulatedFiles()
    log = make_log(disk)
    producer = Producer(log, 1)
    producer.write()
    producer.commit()
    assert log.collect_aborted(0, 10) == []
    assert file_name(0, ".txnindex") not in names_in(disk)


def test_the_last_stable_offset_in_the_index_is_that_of_the_oldest_transaction_still_open() -> None:
    log = make_log()
    first, second = Producer(log, 1), Producer(log, 2)
    first.write()
    second.write()
    second.abort()
    first.abort()
    assert log.collect_aborted(0, 10) == [AbortedTxn(2, 1, 2, 0), AbortedTxn(1, 0, 3, 4)]


def test_overlapping_transactions_are_told_apart() -> None:
    log = make_log()
    first, second, third = Producer(log, 1), Producer(log, 2), Producer(log, 3)
    first.write()
    second.write()
    first.write()
    third.write()
    second.abort()
    third.commit()
    first.commit()
    commit_all(log)
    assert read_committed(log) == [0, 2, 3]


def test_several_transactions_of_one_producer_are_told_apart() -> None:
    log = make_log()
    producer = Producer(log, 1)
    for commits in (True, False, True, False):
        producer.write(2)
        producer.commit() if commits else producer.abort()
    commit_all(log)
    assert read_committed(log) == [0, 1, 6, 7]


def test_an_aborted_transaction_is_found_although_its_marker_is_segments_after_its_records() -> None:
    log = make_log()
    producer = Producer(log, 5)
    producer.write(2)
    for _ in range(3):
        log.roll(NOW)
        append(log)
    log.roll(NOW)
    producer.abort()
    commit_all(log)
    assert log.read(0, 1000, COMMITTED).aborted == [AbortedTxn(5, 0, 5, 6)]
    assert read_committed(log) == [2, 3, 4]


def test_no_transaction_is_named_that_has_no_records_in_what_was_read() -> None:
    log = make_log(settings=config(index_interval_bytes=0))
    producer = Producer(log, 5)
    append_many(log, 20)
    producer.write()
    producer.abort()
    commit_all(log)
    assert log.read(0, 200, COMMITTED).aborted == []


def test_the_search_for_aborted_transactions_ends_with_the_first_segment_that_is_enough() -> None:
    log = make_log()
    producer = Producer(log, 5)
    for _ in range(4):
        producer.write()
        producer.abort()
        log.roll(NOW)
    commit_all(log)
    assert log.read(0, 1000, COMMITTED).aborted == [AbortedTxn(5, 0, 1, 2)]
    assert log.read(4, 1000, COMMITTED).aborted == [AbortedTxn(5, 4, 5, 6)]


def test_a_marker_without_a_transaction_changes_nothing() -> None:
    log = make_log()
    append(log)
    log.append_as_leader(LogAppend(marker(7, False), NOW, origin=COORDINATOR), 0)
    commit_all(log)
    assert log.last_stable_offset == 2
    assert log.collect_aborted(0, 10) == []


def test_a_client_may_not_write_markers() -> None:
    log = make_log()
    with pytest.raises(InvalidRecord):
        append(log, marker(7, True))
    assert log.size == 0


def test_a_marker_of_an_older_producer_epoch_is_refused() -> None:
    log = make_log()
    producer = Producer(log, 1, epoch=5)
    producer.write()
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(LogAppend(marker(1, True, epoch=4), NOW, origin=COORDINATOR), 0)
    assert log.log_end_offset == 1


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write()
    log.append_as_leader(LogAppend(marker(1, True, coordinator_epoch=5), NOW, origin=COORDINATOR), 0)
    producer.write()
    with pytest.raises(TransactionCoordinatorFenced):
        log.append_as_leader(LogAppend(marker(1, True, coordinator_epoch=4), NOW, origin=COORDINATOR), 0)


def test_a_record_outside_its_producers_open_transaction_is_refused() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write()
    with pytest.raises(InvalidTxnState):
        append(log, produced(1, 1))
    assert log.log_end_offset == 1


def test_a_transaction_must_be_verified_with_its_coordinator_first() -> None:
    log = make_log(verify_transactions=True)
    data = produced(1, 0, transactional=True)
    with pytest.raises(InvalidTxnState, match="Record was not part of an ongoing transaction"):
        append(log, data)
    guard = log.producers.start_verification(1, 0, 0, False, NOW)
    log.append_as_leader(LogAppend(data, NOW, verification_guard=guard), 0)
    append(log, produced(1, 1, transactional=True))
    assert log.log_end_offset == 2


def test_a_guard_from_before_a_marker_opens_no_transaction() -> None:
    log = make_log(verify_transactions=True)
    guard = log.producers.start_verification(1, 0, 0, False, NOW)
    log.append_as_leader(LogAppend(marker(1, False), NOW, origin=COORDINATOR), 0)
    with pytest.raises(InvalidTxnState):
        log.append_as_leader(LogAppend(produced(1, 0, transactional=True), NOW, verification_guard=guard), 0)
    assert log.log_end_offset == 1


def test_a_follower_follows_transactions() -> None:
    leader, follower = make_log(), make_log()
    one, two = Producer(leader, 1), Producer(leader, 2)
    one.write()
    two.write()
    one.abort()
    two.commit()
    one.write()
    fetched = leader.read(0, 10_000, FetchIsolation.LOG_END)
    assert fetched.records is not None
    follower.append_as_follower(fetched.records.read() + b"cut short", NOW)
    for log in (leader, follower):
        commit_all(log)
    assert follower.last_stable_offset == leader.last_stable_offset == 4
    assert follower.collect_aborted(0, 10) == leader.collect_aborted(0, 10)
    assert read_committed(follower) == read_committed(leader) == [1]


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_are_as_they_were_after_a_restart(clean: bool) -> None:
    disk = SimulatedFiles()
    log = make_log(disk)
    aborted, opened = Producer(log, 1), Producer(log, 2)
    aborted.write()
    aborted.abort()
    log.roll(NOW)
    append(log)
    opened.write()
    append(log)
    if clean:
        log.close(NOW)
    again = make_log(restarted(disk), clean=clean)
    commit_all(again)
    assert again.last_stable_offset == 3
    assert again.collect_aborted(0, 10) == [AbortedTxn(1, 0, 1, 2)]
    opened.log = again
    opened.commit()
    commit_all(again)
    assert read_committed(again) == [2, 3, 4]


def test_a_transaction_index_goes_with_its_segment() -> None:
    disk, host = SimulatedFiles(), RecordingHost()
    log = make_log(disk, host=host)
    producer = Producer(log, 1)
    producer.write()
    producer.abort()
    log.roll(NOW)
    append(log)
    commit_all(log)
    log.increment_log_start_offset(2, "test")
    log.delete_old_segments(NOW)
    host.delete_due(2**62)
    assert not [name for name in names_in(disk) if "txnindex" in name]


def test_the_beginning_of_a_transaction_may_be_deleted_before_it_ends() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write(3)
    log.roll(NOW)
    producer.write(3)
    commit_all(log)
    log.increment_log_start_offset(3, "test")
    log.delete_old_segments(NOW)
    assert log.segments.base_offsets == [3]
    producer.abort()
    commit_all(log)
    assert read_committed(log) == []
    append(log)
    commit_all(log)
    assert read_committed(log) == [7]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["write", "write", "commit", "abort", "plain", "roll"])), max_size=30),
    st.integers(1, 500),
    st.sampled_from(["live", "clean", "crash"]),
    st.integers(0, 200),
)
def test_read_committed_equals_the_history(steps: list[tuple[int, str]], max_bytes: int, ending: str, interval: int) -> None:
    """Against a list of what each transaction wrote: exactly the records of those that committed below the first still open."""
    disk = SimulatedFiles()
    settings_ = config(index_interval_bytes=interval)
    log = make_log(disk, settings_)
    producers = {number: Producer(log, number) for number in (1, 2, 3)}
    opened: dict[int, list[int]] = defaultdict(list)
    committed: list[int] = []
    for number, action in steps:
        if action == "plain":
            committed.append(append(log, batch()).last_offset)
        elif action == "roll":
            if log.active_segment.size:
                log.roll(NOW)
        elif action == "write":
            opened[number].append(producers[number].write().last_offset)
        else:
            written = opened.pop(number, [])
            if action == "commit":
                producers[number].commit()
                committed += written
            else:
                producers[number].abort()
    if ending != "live":
        if ending == "clean":
            log.close(NOW)
        log = make_log(restarted(disk), settings_, clean=ending == "clean")
    commit_all(log)
    stable = min((offsets[0] for offsets in opened.values() if offsets), default=log.log_end_offset)
    assert log.last_stable_offset == stable
    assert read_committed(log, max_bytes) == sorted(offset for offset in committed if offset < stable)
