"""InitProducerId: who gets which producer id and epoch, and who is fenced."""

from __future__ import annotations

import pytest

from barnabas.coordinator.transaction.shard import ID_BYTES
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import KafkaError, NotEnoughReplicas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from tests.unit.coordinator.coordinator_host import Answers, MemoryLog
from tests.unit.coordinator.transaction.transaction_host import T0, Ids, TransactionHost

LAST = 32_766  # the last epoch a client gets


def at_epoch(epoch: int, host: TransactionHost, state: TransactionState = TransactionState.EMPTY) -> tuple[int, int]:
    """Producer 1000 of "x", as it will be after many transactions."""
    producer_id = host.producer()[0]
    shard = host.shard
    shard.transactions["x"] = shard.transactions["x"]._replace(producer_epoch=epoch, state=state, start_timestamp=1)
    return producer_id, epoch


def test_a_new_transactional_id_gets_a_new_producer_id_with_epoch_0() -> None:
    response = TransactionHost().init()
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 1000, 0)


def test_the_same_transactional_id_keeps_its_producer_id_and_gets_the_next_epoch() -> None:
    host = TransactionHost()
    assert [host.producer() for _ in range(3)] == [(1000, 0), (1000, 1), (1000, 2)]


def test_another_transactional_id_gets_another_producer_id() -> None:
    host = TransactionHost()
    assert host.producer("x")[0] != host.producer("y")[0]


def test_without_a_transactional_id_every_call_gives_a_new_producer_id() -> None:
    host = TransactionHost()
    assert [host.init(None).producer_id for _ in range(3)] == [1000, 1001, 1002]
    assert not host.log.batches


def test_an_empty_transactional_id_is_refused() -> None:
    response = TransactionHost().init("")
    assert (response.error_code, response.producer_id, response.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_when_transactional_ids_are_full_a_new_one_is_told_to_try_again_and_those_there_go_on() -> None:
    host = TransactionHost(barnabas_transactional_ids_max_bytes=10 * (ID_BYTES + 2))
    codes = [host.init(f"x{number}").error_code for number in range(10)]
    assert codes == [0] * 10
    assert host.init("another").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.init("x1").error_code == 0
    assert host.shard.memory.used == 10 * (ID_BYTES + 2)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    assert TransactionHost().init(timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_the_longest_timeout_is_allowed() -> None:
    assert TransactionHost().init(timeout_ms=900_000).error_code == 0


@pytest.mark.parametrize("expected", [(5, -1), (-1, 5)])
@pytest.mark.parametrize("transactional_id", [None, "x"])
def test_a_producer_id_without_an_epoch_is_refused(transactional_id: str | None, expected: tuple[int, int]) -> None:
    assert TransactionHost().init(transactional_id, expected=expected).error_code == ErrorCode.INVALID_REQUEST


def test_two_phase_commit_is_refused_unless_it_is_enabled() -> None:
    answers = Answers()
    request = InitProducerIdRequest("x", 60_000, enable_2pc=True)
    TransactionHost().coordinator.init_producer_id(request, 6, answers.append)
    assert answers.one.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_keeping_a_prepared_transaction_is_not_supported() -> None:
    answers = Answers()
    host = TransactionHost(transaction_two_phase_commit_enable=True)
    host.coordinator.init_producer_id(InitProducerIdRequest("x", 60_000, enable_2pc=True, keep_prepared_txn=True), 6, answers.append)
    assert answers.one.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_transaction_in_two_phases_never_times_out() -> None:
    host = TransactionHost(transaction_two_phase_commit_enable=True)
    answers = Answers()
    host.coordinator.init_producer_id(InitProducerIdRequest("x", 0, enable_2pc=True), 6, answers.append)
    producer = (answers.one.producer_id, answers.one.producer_epoch)
    host.add(producer)
    host.time.advance(2**31)
    assert host.state().state is TransactionState.ONGOING


def test_the_timeout_is_that_of_the_last_init() -> None:
    host = TransactionHost()
    host.producer(timeout_ms=1_000)
    host.producer(timeout_ms=2_000)
    assert host.state().timeout_ms == 2_000


# -- an open transaction


def test_an_open_transaction_is_aborted_and_the_client_has_to_ask_again() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    refused = host.init()
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    assert host.partitions.ends_of(T0) == [False]
    assert host.producer() == (producer[0], 2)  # one epoch for the abort, one for the client


def test_the_markers_of_that_abort_have_an_epoch_that_nobody_else_gets() -> None:
    host = TransactionHost()
    host.ongoing()
    host.init()
    assert host.partitions.sent[0].producer_epoch == 1


def test_who_had_the_transaction_is_fenced() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.init()
    host.producer()
    assert host.end(producer, committed=True).error_code == ErrorCode.PRODUCER_FENCED
    assert host.add(producer) == ErrorCode.PRODUCER_FENCED


def test_while_the_markers_are_on_their_way_it_is_refused() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.partitions.held = True
    host.end(producer, committed=True)
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    host.partitions.release()
    assert host.producer() == (1000, 2)


# -- with the producer id and epoch that the client has (KIP-360)


def test_with_its_own_epoch_a_producer_gets_the_next_one() -> None:
    host = TransactionHost()
    producer = host.producer()
    response = host.init(expected=producer)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 1000, 1)


def test_asking_again_with_the_same_epoch_gives_the_same_answer() -> None:
    host = TransactionHost()
    producer = host.producer()
    answers = [host.init(expected=producer).producer_epoch for _ in range(3)]
    assert answers == [1, 1, 1]


def test_after_another_producer_came_the_older_one_is_fenced() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.producer()
    host.producer()
    assert host.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


def test_another_producer_between_a_call_and_its_retry_fences_the_retry() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.init(expected=producer)
    host.producer()
    assert host.init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


def test_a_producer_id_of_somebody_else_is_fenced() -> None:
    host = TransactionHost()
    host.producer()
    assert host.init(expected=(4711, 0)).error_code == ErrorCode.PRODUCER_FENCED


def test_a_client_whose_transactional_id_has_expired_gets_a_new_producer_id() -> None:
    assert TransactionHost().init(expected=(4711, 3)).producer_id == 1000


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
def test_old_clients_know_fencing_by_its_old_name(version: int, code: ErrorCode) -> None:
    host = TransactionHost()
    host.producer()
    assert host.init(expected=(4711, 0), version=version).error_code == code


# -- the end of the epochs


def test_when_no_epoch_is_left_there_is_a_new_producer_id() -> None:
    host = TransactionHost()
    at_epoch(LAST, host)
    assert host.producer() == (1001, 0)
    assert host.state().previous_producer_id == 1000


def test_the_last_epoch_is_given_out() -> None:
    host = TransactionHost()
    at_epoch(LAST - 1, host)
    assert host.producer() == (1000, LAST)


def test_asking_again_for_the_new_producer_id_gives_the_same_answer() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    answers = [host.init(expected=producer) for _ in range(2)]
    assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [(0, 1001, 0)] * 2


def test_an_exhausted_producer_is_not_bumped_for_somebody_who_is_behind() -> None:
    host = TransactionHost()
    producer_id, _ = at_epoch(LAST, host)
    assert host.init(expected=(producer_id, 7)).error_code == ErrorCode.PRODUCER_FENCED


def test_a_transaction_in_the_last_epoch_can_still_be_fenced() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.partitions.sent[0].producer_epoch == LAST + 1
    assert host.producer() == (1001, 0)


def test_who_was_aborted_in_the_last_epoch_comes_back_with_a_new_producer_id() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST, host)
    host.add(producer)
    host.time.advance(100_000)
    answers = [host.init(expected=producer) for _ in range(2)]
    assert [(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers] == [(0, 1001, 0)] * 2


def test_what_should_never_be_in_the_very_last_epoch_can_be_aborted_all_the_same() -> None:
    host = TransactionHost()
    producer = at_epoch(LAST + 1, host)
    host.add(producer)
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    marker = host.partitions.sent[0]
    assert (marker.producer_epoch, marker.transaction_version) == (LAST + 1, 1)
    assert host.producer() == (1001, 0)


# -- transaction.version 0 and 1


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_fencing_bumps_the_epoch_all_the_same(version: int) -> None:
    host = TransactionHost(version=version)
    host.ongoing()
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.partitions.sent[0].producer_epoch == 1
    assert host.state().client_transaction_version == 0
    assert host.producer() == (1000, 2)


# -- producer ids that have to be fetched


def test_it_waits_for_a_block_of_producer_ids() -> None:
    host = TransactionHost()
    host.ids.left = 0
    answers = host.asked_init()
    assert not answers
    host.ids.deliver()
    assert answers.one.producer_id == 1000


def test_without_a_transactional_id_it_waits_too() -> None:
    host = TransactionHost()
    host.ids.left = 0
    answers = host.asked_init(None)
    assert not answers
    host.ids.deliver()
    assert answers.one.producer_id == 1000


def test_when_no_block_can_be_had_the_client_hears_why() -> None:
    class NotNow(KafkaError):
        code = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    host = TransactionHost()
    host.ids.left = 0
    for transactional_id in ("x", None):
        answers = host.asked_init(transactional_id)
        host.ids.deliver(NotNow())
        assert answers.one.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_it_does_not_wait_for_ever_when_others_are_always_faster() -> None:
    ids = Ids()
    ids.left = ids.block = 0
    host = TransactionHost(ids=ids)
    answers = [host.asked_init("x"), host.asked_init(None)]
    for _ in range(11):
        ids.deliver()
    assert [answer.one.error_code for answer in answers] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2


def test_nothing_is_fetched_for_a_producer_that_has_an_id() -> None:
    host = TransactionHost()
    host.producer()
    host.ids.left = 0
    assert host.producer() == (1000, 1)


# -- the log


def test_it_is_answered_when_the_log_has_committed_it() -> None:
    host = TransactionHost()
    host.hold()
    answers = host.asked_init()
    assert not answers
    host.commit_log()
    assert answers.one.error_code == 0


def test_until_then_nobody_else_gets_the_transactional_id() -> None:
    host = TransactionHost()
    host.hold()
    answers = host.asked_init()
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    host.commit_log()
    assert answers.one.producer_epoch == 0
    assert host.producer() == (1000, 1)


def test_what_the_log_refuses_has_not_happened() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.log.error = NotEnoughReplicas()
    assert host.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    host.log.error = None
    assert host.state().producer_epoch == producer[1]
    assert host.add(producer) == 0


def test_a_fence_that_the_log_refuses_leaves_the_transaction_open() -> None:
    host = TransactionHost()
    producer = host.ongoing()
    host.log.error = NotEnoughReplicas()
    assert host.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    host.log.error = None
    assert not host.partitions.sent
    assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.producer() == (producer[0], 2)  # no epoch was lost


def test_a_retry_across_a_restart_is_fenced_since_the_log_has_no_last_epoch() -> None:
    host = TransactionHost()
    producer = host.producer()
    host.init(expected=producer)
    assert host.again().init(expected=producer).error_code == ErrorCode.PRODUCER_FENCED


# -- not the coordinator


def test_before_it_is_started_no_coordinator_is_available() -> None:
    host = TransactionHost()
    host.coordinator.shutdown()
    assert host.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_coordinator_of_another_partition_is_elsewhere() -> None:
    host = TransactionHost()
    host.coordinator.on_resignation(0, None)
    assert host.init().error_code == ErrorCode.NOT_COORDINATOR


def test_while_its_partition_is_loading_the_client_has_to_wait() -> None:
    log = MemoryLog()
    TransactionHost(log).producer()
    host = TransactionHost()
    host.coordinator.on_resignation(0, None)
    loading = host.coordinator.on_election(0, 9)
    assert host.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for _ in loading:
        pass
    assert host.init().error_code == 0
