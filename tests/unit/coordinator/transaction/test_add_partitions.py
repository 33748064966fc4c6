"""AddPartitionsToTxn and AddOffsetsToTxn, and the verification of partitions (KIP-890)."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import NotEnoughReplicas, NotLeaderOrFollower, RecordTooLarge
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.unit.coordinator.transaction.transaction_host import OFFSETS_7, T0, T1, U0, TransactionHost


def test_the_first_partition_begins_the_transaction() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.time.advance(50)
    assert host.add(producer, T0) == 0
    state = host.state()
    assert (state.state, state.partitions, state.start_timestamp) == (TransactionState.ONGOING, frozenset({T0}), host.time.now)


def test_further_partitions_do_not_move_its_beginning() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    began = host.time.now
    host.time.advance(50)
    assert host.add(producer, T1, U0) == 0
    state = host.state()
    assert (state.partitions, state.start_timestamp, state.last_update_timestamp) == (frozenset({T0, T1, U0}), began, began + 50)


def test_partitions_that_are_there_already_are_not_written_again() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, T1)
    written = host.log.log_end_offset(0)
    assert host.add(producer, T1) == 0
    assert host.log.log_end_offset(0) == written


def test_the_next_transaction_begins_without_the_partitions_of_the_last() -> None:
    host = TransactionHost()
    producer = host.commit(host.ongoing(T0))
    assert host.add(producer, T1) == 0
    assert host.state().partitions == {T1}


def test_offsets_of_a_group_add_their_partition() -> None:
    host = TransactionHost()
    producer = host.producer()
    assert host.add_offsets(producer) == 0
    assert host.state().partitions == {OFFSETS_7}


def test_without_a_coordinator_of_groups_their_partition_is_not_known() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.has_no_groups = True
    assert host.add_offsets(producer) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_thousand_partitions_fit() -> None:
    host = TransactionHost()
    producer = host.producer()
    partitions = [TopicPartition("many", number) for number in range(1_000)]
    assert host.add(producer, *partitions) == 0
    host.commit(producer)
    assert len(host.partitions.written) == 1_000


def test_more_than_the_log_takes_is_an_error_of_the_server() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.log.error = RecordTooLarge()
    assert host.add(producer) == ErrorCode.UNKNOWN_SERVER_ERROR
    host.log.error = None
    assert host.add(producer) == 0


@pytest.mark.parametrize("transactional_id", ["", "nobody"])
def test_an_id_that_is_unknown_or_empty_is_refused(transactional_id: str) -> None:
    host = TransactionHost()
    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING if transactional_id else ErrorCode.INVALID_REQUEST
    assert host.add((1, 0), transactional_id=transactional_id) == code
    assert host.add_offsets((1, 0), transactional_id=transactional_id) == code
    assert host.verify((1, 0), T0, T1, transactional_id=transactional_id) == {T0: code, T1: code}


def test_another_producer_id_is_refused() -> None:
    host = TransactionHost()
    _, epoch = host.ongoing()
    assert host.add((4711, epoch)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert host.verify((4711, epoch)) == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@pytest.mark.parametrize("behind", [-1, 1])
def test_another_epoch_is_fenced(behind: int) -> None:
    host = TransactionHost()
    host.producer()
    producer_id, epoch = host.ongoing()
    other = (producer_id, epoch - behind)
    assert host.add(other) == ErrorCode.PRODUCER_FENCED
    assert host.add_offsets(other) == ErrorCode.PRODUCER_FENCED
    assert host.verify(other) == {T0: ErrorCode.PRODUCER_FENCED}


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_old_clients_know_fencing_by_its_old_name(version: int, code: ErrorCode) -> None:
    host = TransactionHost()
    producer_id, epoch = host.ongoing()
    assert host.add((producer_id, epoch + 1), version=version) == code
    assert host.add_offsets((producer_id, epoch + 1), version=version) == code


@pytest.mark.parametrize("committed", [True, False])
def test_while_the_markers_are_on_their_way_the_next_transaction_has_to_wait(committed: bool) -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    response = host.end(producer, committed=committed)
    producer = (response.producer_id, response.producer_epoch)
    assert host.add(producer) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.verify(producer) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}
    host.partitions.release()
    assert host.add(producer) == 0


def test_leaders_that_add_partitions_at_once_are_answered_together() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.hold()
    first, second = host.asked_add(producer, T0), host.asked_add(producer, T1)
    assert (list(first), list(second)) == ([], [])
    host.commit_log()
    assert (first.one, second.one) == (0, 0)
    assert host.state().partitions == {T0, T1}


def test_while_a_step_is_not_committed_nothing_else_happens_with_the_id() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.hold()
    first = host.asked_add(producer, T0)
    assert host.end(producer, committed=True).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.add((producer[0], producer[1] + 1), T1) == ErrorCode.CONCURRENT_TRANSACTIONS
    host.commit_log()
    assert first.one == 0


def test_an_adding_that_the_log_refuses_leaves_the_one_before_it_alone() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.hold()
    first = host.asked_add(producer, T0)
    host.log.error = NotEnoughReplicas()
    assert host.add(producer, T1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [transaction.state for transaction in host.shard.all_visible()] == [TransactionState.EMPTY]
    host.log.error = None
    host.commit_log()
    assert first.one == 0
    assert host.state().partitions == {T0}


@pytest.mark.parametrize(
    ("error", "code"),
    [(NotEnoughReplicas(), ErrorCode.COORDINATOR_NOT_AVAILABLE), (NotLeaderOrFollower(), ErrorCode.NOT_COORDINATOR)],
)
def test_what_the_log_refuses_has_not_happened(error: Exception, code: ErrorCode) -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    host.log.error = error
    assert host.add(producer, T1) == code
    host.log.error = None
    assert host.state().partitions == {T0}
    assert host.verify(producer, T1) == {T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_a_partition_that_was_not_replicated_in_time_is_added_all_the_same_when_asked_again() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.hold()
    answers = host.asked_add(producer, T0)
    host.time.advance(host.config.request_timeout_ms)
    assert answers.one == ErrorCode.COORDINATOR_NOT_AVAILABLE
    again = host.asked_add(producer, T0)
    assert not again
    host.commit_log()
    assert again.one == 0


def test_versions_of_brokers_say_that_the_client_has_version_2() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.add(producer, T0, version=3)
    assert host.state().client_transaction_version == 0
    host.add(producer, T1, version=4)
    assert host.state().client_transaction_version == 2


# -- verification


def test_partitions_of_the_open_transaction_are_verified() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0, U0)
    assert host.verify(producer, T0, T1, U0) == {T0: 0, T1: ErrorCode.TRANSACTION_ABORTABLE, U0: 0}


def test_nothing_is_part_of_a_transaction_that_has_ended() -> None:
    host = TransactionHost()
    producer = host.commit(host.ongoing(T0))
    assert host.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}


def test_verification_writes_nothing() -> None:
    host = TransactionHost()
    producer = host.ongoing(T0)
    written = host.log.log_end_offset(0)
    host.verify(producer, T0, T1)
    assert host.log.log_end_offset(0) == written
