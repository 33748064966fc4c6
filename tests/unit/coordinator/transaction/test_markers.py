"""The markers of a decided transaction: sent until every partition has its own or is gone."""

from __future__ import annotations

import itertools

import pytest

from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.protocol.errors import ErrorCode
from tests.unit.coordinator.transaction.transaction_host import T0, T1, U0, TransactionHost

RETRIABLE = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("code", RETRIABLE)
def test_what_failed_for_now_is_sent_again(code: ErrorCode) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.codes[T1] = int(code)
    host.commit(producer)
    host.time.advance(10_000)
    assert host.state().state is TransactionState.PREPARE_COMMIT
    del host.partitions.codes[T1]
    host.time.advance(1_000)
    assert host.state().state is TransactionState.COMPLETE_COMMIT
    assert (host.partitions.ends_of(T0), host.partitions.ends_of(T1)) == ([True], [True])


def test_what_was_written_is_not_sent_again() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.codes[T1] = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.commit(producer)
    host.time.advance(60)
    assert [marker.partitions for marker in host.partitions.sent] == [(T0, T1), (T1,)]


def test_it_takes_longer_and_longer_between_tries_but_never_more_than_a_second() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.partitions.codes[T0] = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.commit(producer)
    tries = []
    for _ in range(4_000):
        sent = len(host.partitions.sent)
        host.time.advance(1)
        if len(host.partitions.sent) > sent:
            tries.append(host.time.now)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert gaps == [100, 200, 400, 800, 1_000, 1_000]


def test_an_error_nobody_expects_does_not_end_it_either() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.partitions.codes[T0] = int(ErrorCode.MESSAGE_TOO_LARGE)
    host.commit(producer)
    host.time.advance(5_000)
    host.partitions.codes.clear()
    host.time.advance(1_000)
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, U0)
    host.partitions.gone.add(U0)
    host.commit(producer)
    assert host.state().state is TransactionState.COMPLETE_COMMIT
    assert host.partitions.sent[0].partitions == (T0,)


def test_when_all_partitions_are_gone_the_transaction_is_complete() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, U0)
    host.partitions.gone |= {T0, U0}
    host.commit(producer)
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_a_partition_that_goes_while_it_is_tried_needs_none_any_more() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, U0)
    host.partitions.codes[U0] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    host.commit(producer)
    host.partitions.gone.add(U0)
    host.time.advance(60)
    assert host.state().state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION])
def test_a_log_that_cannot_hold_a_marker_holds_nothing_of_the_transaction(code: ErrorCode) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, U0)
    host.partitions.codes[U0] = int(code)
    host.commit(producer)
    assert host.state().state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_coordinator_that_has_been_replaced_stops(code: ErrorCode) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    host.partitions.codes[T0] = int(code)
    producer = host.commit(producer)
    host.time.advance(20_000)
    assert len(host.partitions.sent) == 1
    assert host.state().state is TransactionState.PREPARE_COMMIT
    assert host.add(producer) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_one_that_was_elected_again_goes_on_with_its_new_epoch() -> None:
    host = TransactionHost(epoch=5)
    producer = host.ongoing(T0)
    host.partitions.held = True
    host.commit(producer)
    host.load(8)
    host.partitions.codes[T0] = int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    host.partitions.release()
    host.partitions.codes.clear()
    host.time.advance(60)
    assert [marker.coordinator_epoch for marker in host.partitions.sent] == [5, 8]
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_an_answer_in_parts_is_waited_for() -> None:
    host = TransactionHost()
    answers = []
    host.partitions.send = lambda marker, on_done: answers.append(on_done)  # type: ignore[method-assign]
    producer = host.ongoing(T0, T1)
    host.commit(producer)
    answers[0]({T0: 0})
    assert host.state().state is TransactionState.PREPARE_COMMIT
    answers[0]({T1: 0})
    assert host.state().state is TransactionState.COMPLETE_COMMIT


def test_answers_that_come_after_the_coordinator_has_left_change_nothing() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.partitions.held = True
    host.commit(producer)
    written = host.log.log_end_offset(0)
    host.coordinator.on_resignation(0, 9)
    host.partitions.release()
    host.time.advance(20_000)
    assert host.log.log_end_offset(0) == written


def test_nor_do_they_when_it_has_come_back() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.partitions.held = True
    producer = host.commit(producer)
    host.coordinator.on_resignation(0, 9)
    host.load(10)
    host.time.advance(1)  # the markers are sent again, and held as well
    before, after = host.partitions._waiting
    before()
    assert host.state().state is TransactionState.PREPARE_COMMIT
    after()
    assert host.state().state is TransactionState.COMPLETE_COMMIT
    assert host.add(producer) == 0
