"""EndTxn: commit and abort, retries, zombies, and the epoch that every end brings from version 5 on."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import NotEnoughReplicas
from barnabas.protocol.errors import ErrorCode
from tests.unit.coordinator.transaction.test_init_producer_id import LAST, at_epoch
from tests.unit.coordinator.transaction.transaction_host import T0, T1, U0, TransactionHost

COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
PREPARE = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_every_partition_gets_the_marker(version: int, committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1, U0)
    assert host.end(producer, committed=committed, version=version).error_code == 0
    assert [host.partitions.ends_of(partition) for partition in (T0, T1, U0)] == [[committed]] * 3
    assert host.state().state is COMPLETE[committed]
    assert not host.state().partitions


def test_version_5_answers_with_the_next_epoch() -> None:
    host = TransactionHost()
    response = host.end(host.ongoing(), committed=True)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 1000, 1)
    assert host.partitions.sent[0].producer_epoch == 1
    assert host.partitions.sent[0].transaction_version == 2


def test_older_versions_keep_their_epoch() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    response = host.end(producer, committed=True, version=4)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, -1, -1)
    assert host.partitions.sent[0].producer_epoch == 0
    assert host.partitions.sent[0].transaction_version == 0
    assert host.add(producer) == 0


def test_markers_carry_the_epoch_of_the_coordinator() -> None:
    host = TransactionHost(epoch=17)
    host.commit(host.ongoing())
    assert host.partitions.sent[0].coordinator_epoch == 17


def test_it_is_answered_before_the_markers_are_written() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    assert host.end(producer, committed=True).error_code == 0
    assert host.state().state is TransactionState.PREPARE_COMMIT


def test_no_marker_is_written_before_the_decision_is_committed() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.hold()
    answers = host.asked_end(producer, committed=True)
    assert not answers
    assert not host.partitions.sent
    host.commit_log()
    assert answers.one.error_code == 0
    assert host.partitions.ends_of(T0) == [True]


# -- asked again


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_asked_again_it_gives_the_same_answer(version: int, committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    first = host.end(producer, committed=committed, version=version)
    second = host.end(producer, committed=committed, version=version)
    if version == 5:
        assert (second.error_code, second.producer_id, second.producer_epoch) == (0, first.producer_id, first.producer_epoch)
    else:
        assert second.error_code == 0
    assert host.partitions.ends_of(T0) == [committed]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_what_was_decided_is_not_decided_again(version: int, committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.end(producer, committed=committed, version=version)
    assert host.end(producer, committed=not committed, version=version).error_code == ErrorCode.INVALID_TXN_STATE
    assert host.partitions.ends_of(T0) == [committed]


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("version", [4, 5])
def test_asked_again_while_the_markers_are_on_their_way_it_has_to_wait(version: int, again: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    host.end(producer, committed=True, version=version)
    assert host.end(producer, committed=again, version=version).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_after_the_id_was_initialised_anew_a_retry_is_fenced() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.commit(producer)
    host.producer()
    for committed in (True, False):
        for version in (4, 5):
            assert host.end(producer, committed=committed, version=version).error_code == ErrorCode.PRODUCER_FENCED


def test_a_retry_after_a_restart_is_answered_again() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.commit(producer)
    assert host.again().commit(producer) == (1000, 1)


# -- nothing to end


@pytest.mark.parametrize("version", [4, 5])
def test_a_commit_without_partitions_is_refused(version: int) -> None:
    host = TransactionHost()
    assert host.end(host.producer(), committed=True, version=version).error_code == ErrorCode.INVALID_TXN_STATE


def test_an_abort_without_partitions_is_refused_before_version_5() -> None:
    host = TransactionHost()
    assert host.end(host.producer(), committed=False, version=4).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("ended", [None, True, False])
def test_from_version_5_on_an_abort_without_partitions_gives_the_next_epoch(ended: bool | None) -> None:
    host = TransactionHost()
    producer = host.producer()
    if ended is not None:
        host.add(producer)
        response = host.end(producer, committed=ended)
        producer = (response.producer_id, response.producer_epoch)
    markers = len(host.partitions.sent)
    response = host.end(producer, committed=False)
    assert (response.error_code, response.producer_epoch) == (0, producer[1] + 1)
    assert host.state().state is TransactionState.COMPLETE_ABORT
    assert len(host.partitions.sent) == markers


@pytest.mark.parametrize("committed", [True, False])
def test_from_version_5_on_a_second_commit_needs_a_transaction(committed: bool) -> None:
    host = TransactionHost()
    response = host.end(host.ongoing(), committed=committed)
    producer = (response.producer_id, response.producer_epoch)
    assert host.end(producer, committed=True).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("committed", [True, False])
def test_a_new_producer_cannot_end_what_came_before_it(committed: bool) -> None:
    host = TransactionHost()
    old = host.producer()
    host.producer()
    assert host.end(old, committed=committed).error_code == ErrorCode.PRODUCER_FENCED


# -- others


@pytest.mark.parametrize("version", [4, 5])
def test_an_unknown_id_an_empty_one_and_another_producer_are_refused(version: int) -> None:
    host = TransactionHost()
    producer_id, epoch = host.ongoing()
    for committed in (True, False):
        refusals = [
            host.end((1, 0), committed=committed, transactional_id="", version=version),
            host.end((1, 0), committed=committed, transactional_id="nobody", version=version),
            host.end((4711, epoch), committed=committed, version=version),
            host.end((producer_id, epoch + 1), committed=committed, version=version),
            host.end((producer_id, epoch - 1), committed=committed, version=version),
        ]
        assert [response.error_code for response in refusals] == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.PRODUCER_FENCED,
        ]
        assert {(response.producer_id, response.producer_epoch) for response in refusals} == {(-1, -1)}


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_old_clients_know_fencing_by_its_old_name(version: int, code: ErrorCode) -> None:
    host = TransactionHost()
    producer_id, epoch = host.ongoing()
    assert host.end((producer_id, epoch + 1), committed=True, version=version).error_code == code


# -- the end of the epochs


@pytest.mark.parametrize("committed", [True, False])
def test_when_no_epoch_is_left_the_producer_goes_on_with_a_new_id(committed: bool) -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    response = host.end(producer, committed=committed)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 1001, 0)
    marker = host.partitions.sent[0]
    assert (marker.producer_id, marker.producer_epoch) == (1000, LAST + 1)
    assert host.add((1001, 0)) == 0


def test_asked_again_for_the_new_id_it_gives_the_same_answer() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    assert [host.commit(producer) for _ in range(3)] == [(1001, 0)] * 3


def test_asked_again_after_a_restart_too() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    host.commit(producer)
    assert host.again().commit(producer) == (1001, 0)


def test_a_restart_between_decision_and_markers_does_not_lose_the_new_id() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    host.partitions.held = True
    assert host.commit(producer) == (1001, 0)
    host.partitions.held = False
    host = host.again()
    host.time.advance(1)
    assert host.state().producer_id == 1001
    assert host.add((1001, 0)) == 0


def test_it_waits_for_a_block_of_producer_ids() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    host.ids.left = 0
    answers = host.asked_end(producer, committed=True)
    assert not answers
    assert not host.partitions.sent
    host.ids.deliver()
    assert (answers.one.error_code, answers.one.producer_id) == (0, 1001)


def test_the_old_id_is_fenced_when_the_new_one_is_in_use() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    new = host.commit(producer)
    host.add(new)
    assert host.end(producer, committed=True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_even_the_very_last_epoch_can_be_committed() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST + 1, host)
    host.add(producer)
    assert host.commit(producer) == (1001, 0)
    assert (host.partitions.sent[0].producer_epoch, host.partitions.sent[0].transaction_version) == (LAST + 1, 1)


# -- the log


@pytest.mark.parametrize("committed", [True, False])
def test_what_the_log_refuses_has_not_happened(committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.log.error = NotEnoughReplicas()
    response = host.end(producer, committed=committed)
    assert (response.error_code, response.producer_epoch) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert not host.partitions.sent
    host.log.error = None
    assert host.end(producer, committed=not committed).error_code == 0
    assert host.partitions.ends_of(T0) == [not committed]


@pytest.mark.parametrize("committed", [True, False])
def test_a_decision_that_was_not_replicated_in_time_is_seen_through(committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.hold()
    answers = host.asked_end(producer, committed=committed)
    host.time.advance(host.config.request_timeout_ms)
    assert answers.one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.end(producer, committed=committed).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    host.time.advance(20_000)
    assert not host.partitions.sent
    host.commit_log()
    host.time.advance(20_000)
    assert host.partitions.ends_of(T0) == [committed]
    assert host.end(producer, committed=committed).error_code == 0


def test_its_end_is_written_until_the_log_takes_it() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    host.end(producer, committed=True)
    host.log.error = NotEnoughReplicas()
    host.partitions.release()
    host.time.advance(5_000)
    assert host.state().state is TransactionState.PREPARE_COMMIT
    host.log.error = None
    host.time.advance(1_000)
    assert host.state().state is TransactionState.COMPLETE_COMMIT
    assert host.partitions.ends_of(T0) == [True]  # and the marker was not written again


def test_the_next_transaction_begins_behind_an_end_that_is_not_committed_yet() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    producer = host.commit(producer)
    assert host.add(producer) == ErrorCode.CONCURRENT_TRANSACTIONS  # the markers are missing
    host.hold()
    host.partitions.release()
    added = host.asked_add(producer, T1)
    assert not added
    assert [transaction.state for transaction in host.shard.all_visible()] == [TransactionState.PREPARE_COMMIT]
    host.commit_log()
    assert added.one == 0
    assert (host.state().state, host.state().partitions) == (TransactionState.ONGOING, frozenset({T1}))


def test_an_older_producer_does_not_begin_behind_an_end_that_is_not_committed_yet() -> None:
    host = TransactionHost()
    zombie = host.ongoing()
    host.partitions.held = True
    host.commit(zombie)
    host.hold()
    host.partitions.release()
    assert host.add(zombie) == ErrorCode.CONCURRENT_TRANSACTIONS


# -- when it is answered


WAIT_MS = 100


def test_it_is_answered_when_the_markers_are_written() -> None:
    host = TransactionHost(add_partitions_to_txn_retry_backoff_max_ms=WAIT_MS)
    producer = host.ongoing()
    host.partitions.held = True
    ended = host.asked_end(producer, committed=True)
    assert not ended
    host.partitions.release()
    host.time.advance(0)
    assert (ended.one.error_code, ended.one.producer_epoch) == (0, 1)
    assert host.add((ended.one.producer_id, ended.one.producer_epoch)) == 0


def test_it_is_answered_without_the_markers_after_a_while() -> None:
    host = TransactionHost(add_partitions_to_txn_retry_backoff_max_ms=WAIT_MS)
    producer = host.ongoing()
    host.partitions.held = True
    ended = host.asked_end(producer, committed=True)
    host.time.advance(WAIT_MS)
    assert ended.one.error_code == 0
    assert host.state().state is TransactionState.PREPARE_COMMIT
    host.partitions.release()
    host.time.advance(WAIT_MS)
    assert len(ended) == 1


def test_what_is_decided_is_told_when_the_coordinator_goes() -> None:
    host = TransactionHost(add_partitions_to_txn_retry_backoff_max_ms=WAIT_MS)
    producer = host.ongoing()
    host.partitions.held = True
    ended = host.asked_end(producer, committed=True)
    host.again()
    assert ended.one.error_code == 0
