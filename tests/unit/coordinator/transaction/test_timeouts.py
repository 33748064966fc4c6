"""What time does to transactions: those that take too long are aborted, ids that nobody uses are forgotten."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import NotEnoughReplicas
from barnabas.protocol.errors import ErrorCode
from tests.unit.coordinator.transaction.transaction_host import T0, T1, TransactionHost

WEEK_MS = 7 * 24 * 3_600_000
HOUR_MS = 3_600_000


def test_a_transaction_that_takes_longer_than_its_timeout_is_aborted() -> None:
    host = TransactionHost()
    host.ongoing(T0, T1, timeout_ms=25_000)
    host.time.advance(25_000)
    assert host.state().state is TransactionState.ONGOING
    host.time.advance(10_000)
    assert host.state().state is TransactionState.COMPLETE_ABORT
    assert (host.partitions.ends_of(T0), host.partitions.ends_of(T1)) == ([False], [False])


def test_the_timeout_counts_from_the_first_partition() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, timeout_ms=25_000)
    host.time.advance(20_000)
    host.add(producer, T1)
    host.time.advance(10_001)
    assert host.state().state is TransactionState.COMPLETE_ABORT


def test_an_id_without_an_open_transaction_has_no_timeout() -> None:
    host = TransactionHost()
    producer = host.producer(timeout_ms=1_000)
    host.time.advance(60_000)
    assert host.add(producer) == 0


def test_who_comes_too_late_cannot_commit() -> None:
    host = TransactionHost()
    producer = host.ongoing(timeout_ms=1_000)
    host.time.advance(20_000)
    assert host.end(producer, committed=True).error_code == ErrorCode.INVALID_TXN_STATE
    assert host.add(producer) == ErrorCode.PRODUCER_FENCED
    assert host.verify(producer) == {T0: ErrorCode.PRODUCER_FENCED}


def test_but_can_abort_and_go_on_in_the_next_epoch() -> None:
    host = TransactionHost()
    producer = host.ongoing(timeout_ms=1_000)
    host.time.advance(20_000)
    response = host.end(producer, committed=False)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, producer[0], producer[1] + 1)
    assert host.add((response.producer_id, response.producer_epoch)) == 0


@pytest.mark.parametrize("committed", [True, False])
def test_an_old_client_that_comes_too_late_is_fenced(committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing(timeout_ms=1_000)
    host.time.advance(20_000)
    assert host.end(producer, committed=committed, version=4).error_code == ErrorCode.PRODUCER_FENCED


def test_it_can_come_back_with_its_epoch() -> None:
    host = TransactionHost()
    producer = host.ongoing(timeout_ms=1_000)
    host.time.advance(20_000)
    response = host.init(expected=producer)
    assert (response.error_code, response.producer_epoch) == (0, 1)


def test_before_version_2_it_cannot() -> None:
    host = TransactionHost(version=1)
    producer = host.ongoing(timeout_ms=1_000)
    host.time.advance(20_000)
    assert host.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


def test_an_abort_that_the_log_refuses_is_tried_again() -> None:
    host = TransactionHost()
    host.ongoing(timeout_ms=1_000)
    host.log.error = NotEnoughReplicas()
    host.time.advance(20_000)
    assert host.state().state is TransactionState.ONGOING
    host.log.error = None
    host.time.advance(10_000)
    assert host.state().state is TransactionState.COMPLETE_ABORT
    assert host.state().producer_epoch == 1  # the failed tries cost no epoch


def test_a_commit_on_its_way_is_not_aborted() -> None:
    host = TransactionHost()
    producer = host.ongoing(timeout_ms=1_000)
    host.hold()
    answers = host.asked_end(producer, committed=True)
    host.time.advance(20_000)
    host.commit_log()
    assert answers.one.error_code == 0
    assert host.partitions.ends_of(T0) == [True]


def test_every_transaction_that_is_late_is_aborted_and_no_other() -> None:
    host = TransactionHost()
    for name in "abc":
        host.ongoing(transactional_id=name, timeout_ms=1_000)
    host.ongoing(transactional_id="d", timeout_ms=900_000)
    host.time.advance(20_000)
    states = {name: host.state(name).state for name in "abcd"}
    assert states == dict.fromkeys("abc", TransactionState.COMPLETE_ABORT) | {"d": TransactionState.ONGOING}


def test_many_are_aborted_some_at_a_time() -> None:
    host = TransactionHost()
    for number in range(120):
        host.ongoing(transactional_id=f"x{number}", timeout_ms=1_000)
    host.time.advance(10_000)
    assert len(host.partitions.written) == 50
    host.time.advance(5)
    assert len(host.partitions.written) == 120


def test_when_the_log_refuses_them_they_are_left_for_a_while() -> None:
    host = TransactionHost()
    for number in range(120):
        host.ongoing(transactional_id=f"x{number}", timeout_ms=1_000)
    host.log.error = NotEnoughReplicas()
    host.time.advance(15_000)
    host.log.error = None
    host.time.advance(4_000)
    assert not host.partitions.written
    host.time.advance(2_000)
    assert len(host.partitions.written) == 120


def test_the_timeout_of_a_transaction_goes_on_at_the_next_coordinator() -> None:
    host = TransactionHost()
    host.ongoing(timeout_ms=30_000)
    host.time.advance(20_000)
    host = host.again()
    host.time.advance(20_000)
    assert host.state().state is TransactionState.COMPLETE_ABORT


def test_a_coordinator_that_has_left_aborts_nothing() -> None:
    host = TransactionHost()
    host.ongoing(timeout_ms=30_000)
    host.coordinator.on_resignation(0, 9)
    written = host.log.log_end_offset(0)
    host.time.advance(HOUR_MS)
    assert host.log.log_end_offset(0) == written


# -- expiry


def slow_host() -> TransactionHost:
    """Looks for late transactions once an hour only, which makes weeks pass faster."""
    return TransactionHost(transaction_abort_timed_out_transaction_cleanup_interval_ms=HOUR_MS)


@pytest.mark.parametrize("ended", [None, True, False])
def test_an_id_that_was_not_used_for_a_week_is_forgotten(ended: bool | None) -> None:
    host = slow_host()
    producer = host.producer()
    if ended is not None:
        host.add(producer)
        host.end(producer, committed=ended)
    host.time.advance(WEEK_MS - HOUR_MS)
    assert "x" in host.shard.transactions
    host.time.advance(HOUR_MS)
    assert "x" not in host.shard.transactions
    assert host.add(producer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert "x" not in host.again().shard.transactions


def test_its_next_producer_has_another_id() -> None:
    host = slow_host()
    producer = host.producer()
    host.time.advance(WEEK_MS + HOUR_MS)
    assert host.producer()[0] != producer[0]


def test_an_open_transaction_is_never_forgotten() -> None:
    host = slow_host()
    producer = host.producer()
    host.add(producer)
    shard = host.shard
    shard.transactions["x"] = shard.transactions["x"]._replace(timeout_ms=2**31 - 1)
    host.time.advance(WEEK_MS * 3)
    assert "x" in host.shard.transactions


def test_a_prepared_one_neither() -> None:
    host = slow_host()
    producer = host.ongoing()
    host.partitions.held = True
    host.commit(producer)
    host.time.advance(WEEK_MS * 2)
    host.partitions.release()
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_using_it_keeps_it() -> None:
    host = slow_host()
    host.producer()
    host.time.advance(WEEK_MS - HOUR_MS)
    host.producer()
    host.time.advance(WEEK_MS - HOUR_MS)
    assert "x" in host.shard.transactions


def test_while_the_tombstone_is_not_committed_the_id_is_taken() -> None:
    host = slow_host()
    producer = host.producer()
    host.time.advance(WEEK_MS - 1_000)
    host.hold()
    host.time.advance(2_000)  # a tombstone is written, and waits for its replicas
    assert host.add(producer) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    host.commit_log()
    assert host.add(producer) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_tombstones_that_the_log_refuses_are_written_an_hour_later() -> None:
    host = slow_host()
    host.producer()
    host.log.error = NotEnoughReplicas()
    host.time.advance(WEEK_MS + HOUR_MS)
    assert "x" in host.shard.transactions
    host.log.error = None
    host.time.advance(HOUR_MS)
    assert "x" not in host.shard.transactions


def test_many_ids_are_forgotten_some_at_a_time() -> None:
    host = slow_host()
    for number in range(2_500):
        host.producer(f"producer-{number:04}")
    host.time.advance(WEEK_MS)
    assert len(host.shard.transactions) == 1_500
    host.time.advance(5)
    assert not host.shard.transactions


def test_many_tombstones_are_cut_into_batches_that_fit() -> None:
    host = slow_host()
    for number in range(200):
        host.producer(f"producer-{number:04}")
    host.log.batch_size_max = 3_000
    batches = len(host.log.batches[0])
    host.time.advance(WEEK_MS + HOUR_MS)
    assert not host.shard.transactions
    written = [data for _, _, data in host.log.batches[0][batches:]]
    assert len(written) > 1
    assert all(len(data) <= 3_000 for data in written)
