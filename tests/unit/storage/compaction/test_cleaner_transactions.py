"""Compaction and transactions: aborted records go at once, markers when nothing of their transaction is left and readers had their time."""

from __future__ import annotations

from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.unit.storage.cleaning import Writer, clean, committed, compact_log, headers, keyed, put, roll
from tests.unit.storage.logs import DAY, NOW


def controls(log: Log) -> list[int]:
    """The offsets of the markers."""
    return [read.base_offset for read in headers(log) if read.is_control and read.count]


def aborted_txns(log: Log) -> list[AbortedTxn]:
    return [txn for segment in log.segments for txn in segment.txn_index.all()]


def forget_producers(log: Log) -> None:
    """No header is kept for the sake of a producer any more."""
    log.producers.remove_expired(NOW + 30 * DAY, 0)


def test_records_of_an_aborted_transaction_are_dropped_whatever_their_keys() -> None:
    log = compact_log()
    writer = Writer(log, 7)
    writer.put(a="1", b="1")
    writer.abort()
    put(log, z="1")
    roll(log)
    clean(log)
    assert keyed(log) == [(3, b"z", b"1")]


def test_an_aborted_record_does_not_supersede_a_committed_one() -> None:
    log = compact_log()
    put(log, a="1")
    writer = Writer(log, 7)
    writer.put(a="2")
    writer.abort()
    roll(log)
    clean(log)
    assert keyed(log) == [(0, b"a", b"1")]


def test_a_committed_record_supersedes() -> None:
    log = compact_log()
    put(log, a="1")
    writer = Writer(log, 7)
    writer.put(a="2")
    writer.commit()
    roll(log)
    clean(log)
    assert keyed(log) == [(1, b"a", b"2")]


def test_a_marker_stays_while_a_record_of_its_transaction_does() -> None:
    log = compact_log(delete_retention_ms=0)
    writer = Writer(log, 7)
    writer.put(a="1")
    writer.commit()
    put(log, z="1")
    roll(log)
    forget_producers(log)
    for later in range(3):
        clean(log, now_ms=NOW + later)
    assert controls(log) == [1]
    assert headers(log)[1].delete_horizon_ms == -1


def test_the_marker_of_an_emptied_transaction_goes_after_the_delete_retention() -> None:
    log = compact_log(delete_retention_ms=DAY)
    writer = Writer(log, 7)
    writer.put(a="1")
    writer.commit()
    put(log, a="2")
    roll(log)
    forget_producers(log)
    clean(log)
    assert [read.delete_horizon_ms for read in headers(log)] == [-1, -1], "its records were there when this cleaning began"
    clean(log, now_ms=NOW + 1)
    assert [read.delete_horizon_ms for read in headers(log)] == [NOW + 1 + DAY, -1]
    clean(log, now_ms=NOW + DAY)
    assert controls(log) == [1]
    clean(log, now_ms=NOW + 1 + DAY)
    assert controls(log) == []
    assert keyed(log) == [(2, b"a", b"2")]


def test_a_producer_has_a_marker_for_each_of_its_transactions() -> None:
    log = compact_log(delete_retention_ms=DAY)
    writer = Writer(log, 7)
    writer.put(a="1")
    writer.commit()
    writer.put(b="1")
    writer.commit()
    put(log, b="2")
    roll(log)
    forget_producers(log)
    clean(log)
    clean(log, now_ms=NOW + 1)
    assert [(read.base_offset, read.delete_horizon_ms) for read in headers(log) if read.is_control] == [(1, -1), (3, NOW + 1 + DAY)]


def test_an_abort_marker_and_its_index_entry_stay_until_the_cleaning_after_its_records_went() -> None:
    log = compact_log(delete_retention_ms=DAY)
    writer = Writer(log, 7)
    writer.put(a="1")
    writer.abort()
    put(log, z="1")
    roll(log)
    forget_producers(log)
    assert [txn[:3] for txn in aborted_txns(log)] == [(7, 0, 1)]
    clean(log)
    assert [txn[:3] for txn in aborted_txns(log)] == [(7, 0, 1)]
    assert controls(log) == [1]
    clean(log, now_ms=NOW + 1)
    assert aborted_txns(log) == []
    assert controls(log) == [1]
    clean(log, now_ms=NOW + 1 + DAY)
    assert controls(log) == []


def test_a_transaction_that_was_aborted_in_a_later_segment_is_known_from_its_first_record_on() -> None:
    log = compact_log()
    writer = Writer(log, 7)
    writer.put(a="1")
    roll(log)
    writer.put(b="1")
    roll(log)
    writer.abort()
    put(log, z="1")
    roll(log)
    clean(log)
    assert keyed(log) == [(3, b"z", b"1")]
    assert [txn[:3] for txn in aborted_txns(log)] == [(7, 0, 2)]


def test_interleaved_transactions_are_told_apart() -> None:
    log = compact_log()
    good, bad = Writer(log, 7), Writer(log, 8)
    good.put(a="good")
    bad.put(a="bad", b="bad")
    good.put(b="good")
    bad.abort()
    good.commit()
    roll(log)
    clean(log)
    assert keyed(log) == [(0, b"a", b"good"), (3, b"b", b"good")]


def test_a_producer_may_abort_one_transaction_and_commit_the_next() -> None:
    log = compact_log()
    writer = Writer(log, 7)
    writer.put(a="1")
    writer.abort()
    writer.put(a="2")
    writer.commit()
    writer.put(a="3")
    writer.abort()
    roll(log)
    clean(log)
    assert keyed(log) == [(2, b"a", b"2")]


def test_the_last_batch_of_a_producer_stays_empty_though_its_transaction_was_aborted() -> None:
    log = compact_log()
    writer = Writer(log, 7)
    writer.put(a="1", b="1")
    writer.abort()
    put(log, z="1")
    roll(log)
    clean(log)
    first = headers(log)[0]
    assert (first.count, first.is_transactional, first.is_control, first.last_sequence) == (0, True, False, 1)


def test_a_producer_of_which_only_a_marker_is_left_keeps_it_as_a_header_with_its_epoch() -> None:
    log = compact_log(delete_retention_ms=0)
    Writer(log, 7, epoch=4).commit()  # a coordinator fences a producer that wrote nothing here
    put(log, z="1")
    roll(log)
    clean(log)
    clean(log, now_ms=NOW + 1)
    first = headers(log)[0]
    assert (first.count, first.is_control, first.producer_id, first.producer_epoch) == (0, True, 7, 4)
    clean(log, now_ms=NOW + 2)
    assert headers(log)[0].producer_epoch == 4, "and is kept by the next cleaning too"
    forget_producers(log)
    clean(log, now_ms=NOW + 3)
    assert [read.base_offset for read in headers(log)] == [1]


def test_read_committed_sees_the_same_before_and_after() -> None:
    log = compact_log()
    one, two = Writer(log, 7), Writer(log, 8)
    for number in range(6):
        one.put(a=f"one{number}", b="x")
        two.put(c=f"two{number}", d=None if number % 2 else "y")
        one.abort() if number % 3 else one.commit()
        two.commit()
        roll(log)
    before = committed(log)
    assert before == {b"a": b"one3", b"b": b"x", b"c": b"two5"}
    clean(log)
    assert committed(log) == before
    assert log.read(0, 10_000, FetchIsolation.TXN_COMMITTED).records is not None
