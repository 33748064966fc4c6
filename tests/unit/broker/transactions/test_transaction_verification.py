from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.transactions.transaction_verification import Support, of_offset_commit, of_produce
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import TP, Replicas
from tests.unit.broker.verifying import ID, PRODUCER, Question, Verifying

OTHER = TopicPartition("orders", 1)
BACKOFF_MS = 20  # add.partitions.to.txn.retry.backoff.ms
RETRIES_MS = 100  # add.partitions.to.txn.retry.backoff.max.ms

KINDS = list(Support)


@pytest.fixture
def verifying(tmp_path: Path) -> Iterator[Verifying]:
    replicas = Replicas(tmp_path)
    replicas.lead()
    replicas.lead(OTHER)
    yield Verifying(replicas)
    replicas.close()


# -- who is asked, and what


@pytest.mark.parametrize("support", KINDS)
def test_the_coordinator_is_asked_before_the_first_record_and_the_log_takes_it_then(verifying: Verifying, support: Support) -> None:
    verified = verifying.verify(support)
    assert verifying.verifier.asked == [Question(ID, PRODUCER, 0, [TP], support is Support.ADD_PARTITION)]
    assert (verified.errors, list(verified.guards)) == ({}, [TP])
    assert verifying.append(verified) == 0


def test_a_partition_that_has_the_transaction_open_is_not_asked_about(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    verified = verifying.verify(sequence=1)
    assert (verified.errors, verified.guards, len(verifying.verifier.asked)) == ({}, {}, 1)
    assert verifying.append(verified, 1) == 0


def test_only_the_partitions_that_do_not_have_it_open_are_asked_about(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    verifying.verify(partitions=(TP, OTHER))
    assert [question.partitions for question in verifying.verifier.asked] == [[TP], [OTHER]]


def test_after_its_end_a_transaction_is_asked_about_again(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    assert verifying.end() == 0
    verifying.verify(sequence=1)
    assert len(verifying.verifier.asked) == 2


def test_a_record_that_comes_with_the_answer_of_before_the_end_is_refused(verifying: Verifying) -> None:
    stale = verifying.verify()
    verifying.end()
    verifying.verify()
    assert verifying.append(stale) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("support", [Support.DEFAULT_ERROR, Support.GENERIC_ERROR])
def test_where_verification_is_switched_off_nobody_is_asked(verifying: Verifying, support: Support) -> None:
    verifying.replicas.log_manager.config.producers.transaction_verification_enabled = False
    verified = verifying.verify(support)
    assert (verified.errors, verified.guards, verifying.verifier.asked) == ({}, {}, [])
    assert verifying.append(verified) == 0


def test_partitions_are_added_even_where_verification_is_switched_off(verifying: Verifying) -> None:
    verifying.replicas.log_manager.config.producers.transaction_verification_enabled = False
    verifying.verify(Support.ADD_PARTITION)
    assert [question.add for question in verifying.verifier.asked] == [True]


# -- what is wrong is told by partition


def test_a_partition_the_coordinator_does_not_know_is_an_error_of_its_own(verifying: Verifying) -> None:
    verifying.verifier.codes = {OTHER: int(ErrorCode.TRANSACTION_ABORTABLE)}
    verified = verifying.verify(partitions=(TP, OTHER))
    assert verified.errors == {OTHER: ErrorCode.TRANSACTION_ABORTABLE}
    assert verifying.append(verified) == 0


def test_a_zombie_is_refused_without_asking(verifying: Verifying) -> None:
    verifying.append(verifying.verify(epoch=3), epoch=3)
    assert verifying.verify(epoch=2).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(verifying.verifier.asked) == 1


def test_a_zombie_that_was_not_asked_about_hears_from_the_log_that_it_is_one(verifying: Verifying) -> None:
    nothing = verifying.verify(transactional_id="nobody", partitions=())
    verifying.append(verifying.verify(epoch=3), epoch=3)
    assert verifying.append(nothing, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_partition_that_is_not_led_here_is_told_so(verifying: Verifying) -> None:
    away = TopicPartition("orders", 2)
    verifying.replicas.lead(away, leader=2, replicas=(1, 2))
    verified = verifying.verify(partitions=(away, TP, TopicPartition("nowhere", 0)))
    assert verified.errors == {
        away: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        TopicPartition("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert verifying.verifier.asked[0].partitions == [TP]


@pytest.mark.parametrize("support", KINDS)
def test_producers_know_fencing_as_an_invalid_epoch(verifying: Verifying, support: Support) -> None:
    verifying.verifier.code = int(ErrorCode.PRODUCER_FENCED)
    assert verifying.verify(support).code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("support", "code"),
    [
        (Support.DEFAULT_ERROR, ErrorCode.INVALID_TXN_STATE),
        (Support.GENERIC_ERROR, ErrorCode.TRANSACTION_ABORTABLE),
        (Support.ADD_PARTITION, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_old_producers_know_an_abortable_transaction_as_an_invalid_state(verifying: Verifying, support: Support, code: ErrorCode) -> None:
    verifying.verifier.code = int(ErrorCode.TRANSACTION_ABORTABLE)
    assert verifying.verify(support).code == code


@pytest.mark.parametrize(
    ("version", "support"),
    [(3, Support.DEFAULT_ERROR), (10, Support.DEFAULT_ERROR), (11, Support.GENERIC_ERROR), (12, Support.ADD_PARTITION)],
)
def test_the_version_of_a_produce_tells_what_its_client_knows(version: int, support: Support) -> None:
    assert of_produce(version) is support


@pytest.mark.parametrize(
    ("version", "support"), [(0, Support.DEFAULT_ERROR), (3, Support.DEFAULT_ERROR), (4, Support.GENERIC_ERROR), (5, Support.ADD_PARTITION)]
)
def test_the_version_of_an_offset_commit_tells_what_its_client_knows(version: int, support: Support) -> None:
    assert of_offset_commit(version) is support


# -- the end of the last transaction


def test_the_end_of_the_last_transaction_is_waited_for(verifying: Verifying) -> None:
    verifying.verifier.code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    verified = verifying.verify(retries=True)
    verifying.pass_time(BACKOFF_MS)
    assert not verified.is_done
    verifying.verifier.code = 0
    verifying.pass_time(BACKOFF_MS)
    assert (verified.errors, len(verifying.verifier.asked)) == ({}, 3)
    assert verifying.append(verified) == 0


def test_it_is_not_waited_for_without_end(verifying: Verifying) -> None:
    verifying.verifier.code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    verified = verifying.verify(retries=True)
    for _ in range(RETRIES_MS // BACKOFF_MS):
        assert not verified.is_done
        verifying.pass_time(BACKOFF_MS)
    assert verified.code == ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("support", "retries"), [(Support.DEFAULT_ERROR, True), (Support.GENERIC_ERROR, True), (Support.ADD_PARTITION, False)]
)
def test_who_adds_partitions_itself_or_commits_offsets_is_told_at_once(verifying: Verifying, support: Support, retries: bool) -> None:
    verifying.verifier.code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert verifying.verify(support, retries=retries).code == ErrorCode.CONCURRENT_TRANSACTIONS


# -- the marker of the last transaction comes while the coordinator is asked about the next


def test_a_guard_that_a_marker_has_cleared_is_asked_for_again(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    verifying.verifier.is_held = True
    verified = verifying.verify(epoch=1)
    assert verifying.end(epoch=1) == 0
    verifying.verifier.let_go()
    assert not verified.is_done
    verifying.verifier.let_go()
    assert (verified.errors, len(verifying.verifier.asked)) == ({}, 3)
    assert verifying.append(verified, epoch=1) == 0


def test_the_coordinator_has_the_last_word_when_it_is_asked_again(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    verifying.verifier.is_held = True
    verified = verifying.verify(epoch=1)
    verifying.end(epoch=1)
    verifying.verifier.let_go()
    verifying.verifier.code = int(ErrorCode.PRODUCER_FENCED)
    verifying.verifier.let_go()
    assert verified.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_what_waits_behind_a_question_that_is_asked_again_keeps_its_place(verifying: Verifying) -> None:
    verifying.append(verifying.verify())
    verifying.verifier.is_held = True
    first, second = verifying.verify(epoch=1), verifying.verify(epoch=1, sequence=1)
    verifying.end(epoch=1)
    verifying.verifier.let_go()
    assert (first.is_done, second.is_done) == (False, False)
    verifying.verifier.let_go()
    assert verifying.append(first, epoch=1) == 0
    verifying.time.advance(0)
    assert verifying.append(second, 1, epoch=1) == 0


@pytest.mark.parametrize("support", [Support.DEFAULT_ERROR, Support.GENERIC_ERROR])
def test_a_late_record_of_a_producer_without_epoch_bump_is_not_asked_about_again(verifying: Verifying, support: Support) -> None:
    """Its epoch does not tell which transaction it belongs to, and it adds partitions only when the last transaction is complete."""
    verifying.verifier.is_held = True
    verified = verifying.verify(support)
    verifying.end()
    verifying.verifier.let_go()
    assert (verified.errors, len(verifying.verifier.asked)) == ({}, 1)
    assert verifying.append(verified) == ErrorCode.INVALID_TXN_STATE


# -- one after the other


def test_what_a_producer_sends_while_the_coordinator_is_asked_waits_its_turn(verifying: Verifying) -> None:
    verifying.verifier.is_held = True
    first, second = verifying.verify(), verifying.verify(sequence=1)
    assert len(verifying.verifier.asked) == 1
    verifying.verifier.let_go()
    assert verifying.append(first) == 0
    verifying.time.advance(0)
    assert (second.errors, second.guards) == ({}, {})
    assert verifying.append(second, 1) == 0


def test_others_do_not_wait_for_it(verifying: Verifying) -> None:
    verifying.verifier.is_held = True
    first = verifying.verify()
    verifying.verifier.is_held = False
    other = verifying.verify(transactional_id="others", partitions=(OTHER,))
    assert (first.is_done, other.is_done) == (False, True)


def test_a_long_row_of_questions_is_answered_in_order(verifying: Verifying) -> None:
    verifying.verifier.is_held = True
    row = [verifying.verify() for _ in range(2000)]
    verifying.verifier.is_held = False
    verifying.verifier.let_go()
    verifying.time.advance(0)
    assert all(verification_done.is_done for verification_done in row)
    assert len(verifying.verifier.asked) == len(row)
    assert verifying.verify().is_done
