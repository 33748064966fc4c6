from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence, TransactionCoordinatorFenced
from barnabas.records.batch import SEQUENCE_MAX
from barnabas.records.validation.validator import CLIENT, COORDINATOR, REPLICATION
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.state import LATE_TRANSACTION_BUFFER_MS, ProducerStateConfig, ProducerStateManager
from tests.golden import LOGS
from tests.unit.storage.producing import DAY_MS, NOW, append, batch, end_txn, entry_of, new_state, replay


@pytest.fixture
def state(tmp_path: Path) -> ProducerStateManager:
    return new_state(tmp_path)


def text(message: str) -> str:
    return f"^{re.escape(message)}$"


# -- sequences


def test_a_producer_starts_at_sequence_0_and_goes_on_without_gaps(state: ProducerStateManager) -> None:
    append(state, 0, 0, count=10)
    append(state, 10, 10, count=5)
    entry = entry_of(state)
    assert (entry.first_sequence, entry.last_sequence, entry.first_data_offset, entry.last_data_offset) == (0, 14, 0, 14)


def test_a_producer_nothing_is_known_of_may_start_anywhere(state: ProducerStateManager) -> None:
    append(state, 50, 17)
    assert entry_of(state).last_sequence == 17


@pytest.mark.parametrize("sequence", [0, 1, 3, 5])
def test_a_gap_or_a_step_back_is_out_of_order(state: ProducerStateManager, sequence: int) -> None:
    append(state, 0, 0, count=2)
    with pytest.raises(
        OutOfOrderSequence,
        match=text(
            f"Out of order sequence number for producer 1 at offset 2 in partition test-0: "
            f"{sequence} (incoming seq. number), 1 (current end sequence number)"
        ),
    ):
        append(state, 2, sequence)


def test_a_refused_append_leaves_no_trace(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    with pytest.raises(OutOfOrderSequence):
        append(state, 1, 5)
    append(state, 1, 1)
    assert entry_of(state).last_sequence == 1


def test_batches_of_one_append_are_checked_against_each_other(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    info = state.prepare_update(1, CLIENT)
    info.append_batch(batch(1, 1, count=2))
    with pytest.raises(OutOfOrderSequence, match=r"4 \(incoming seq. number\), 2 \(current end sequence number\)"):
        info.append_batch(batch(3, 4))


def test_nothing_is_remembered_before_the_update(state: ProducerStateManager) -> None:
    append(state, 15, 0, count=6)
    info = state.prepare_update(1, CLIENT)
    info.append_batch(batch(26, 6, count=5))
    assert entry_of(state).last_data_offset == 20
    state.update(info)
    assert (entry_of(state).first_sequence, entry_of(state).last_data_offset) == (0, 30)


def test_sequences_wrap_to_0_after_the_largest_int(state: ProducerStateManager) -> None:
    append(state, 735, SEQUENCE_MAX, epoch=15, origin=REPLICATION)
    append(state, 1235, 0, epoch=15)
    assert (entry_of(state).first_sequence, entry_of(state).last_sequence) == (SEQUENCE_MAX, 0)


def test_a_batch_may_straddle_the_wrap(state: ProducerStateManager) -> None:
    append(state, 2000, SEQUENCE_MAX - 10, epoch=15, count=21, origin=REPLICATION)
    entry = entry_of(state)
    assert (entry.first_sequence, entry.last_sequence) == (SEQUENCE_MAX - 10, 9)
    append(state, 2021, 10, epoch=15)


def test_only_0_follows_the_largest_sequence(state: ProducerStateManager) -> None:
    append(state, 735, SEQUENCE_MAX, origin=REPLICATION)
    with pytest.raises(OutOfOrderSequence):
        append(state, 1235, 1)


def test_a_replica_takes_what_its_leader_took(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    append(state, 1, 3, origin=REPLICATION)
    assert entry_of(state).last_sequence == 3


def test_a_coordinator_appends_without_sequences(state: ProducerStateManager) -> None:
    append(state, 0, -1, transactional=True, origin=COORDINATOR)
    append(state, 1, -1, transactional=True, origin=COORDINATOR)
    assert entry_of(state).last_sequence == -1


def test_an_update_without_a_producer_id_is_a_mistake(state: ProducerStateManager) -> None:
    with pytest.raises(ValueError, match="Invalid producer id -1"):
        state.update(state.prepare_update(-1, CLIENT))


# -- retries


def test_a_retry_is_found_with_the_offsets_it_got_first(state: ProducerStateManager) -> None:
    for n in range(3):
        append(state, n * 10, n * 10, count=10, timestamp=NOW + n)
    duplicate = state.find_duplicate(batch(99, 10, count=10))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset, duplicate.timestamp) == (10, 19, NOW + 1)


def test_the_last_five_batches_are_known(state: ProducerStateManager) -> None:
    for n in range(7):
        append(state, n, n)
    assert [state.find_duplicate(batch(99, n)) is not None for n in range(7)] == [False, False, True, True, True, True, True]


def test_a_batch_with_another_end_is_no_retry(state: ProducerStateManager) -> None:
    append(state, 0, 0, count=10)
    assert state.find_duplicate(batch(99, 0, count=9)) is None
    assert state.find_duplicate(batch(99, 1, count=9)) is None


def test_a_batch_of_another_epoch_or_producer_is_no_retry(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    assert state.find_duplicate(batch(99, 0, epoch=1)) is None
    assert state.find_duplicate(batch(99, 0, producer_id=2)) is None


def test_a_retry_across_the_wrap_is_found(state: ProducerStateManager) -> None:
    append(state, 0, SEQUENCE_MAX - 3, count=10, origin=REPLICATION)
    assert state.find_duplicate(batch(99, SEQUENCE_MAX - 3, count=10)) is not None


def test_a_new_epoch_forgets_the_batches_of_the_old(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    append(state, 1, 0, epoch=1)
    assert len(entry_of(state).batches) == 1
    assert state.find_duplicate(batch(99, 0, epoch=0)) is None


# -- epochs


def test_an_older_epoch_is_fenced(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5)
    with pytest.raises(
        InvalidProducerEpoch, match=text("Epoch of producer 1 at offset 1 in test-0 is 4, which is < the last seen epoch 5 (TV-1)")
    ):
        append(state, 1, 0, epoch=4)


def test_a_coordinators_append_is_fenced_too(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5)
    with pytest.raises(InvalidProducerEpoch):
        append(state, 1, -1, epoch=4, transactional=True, origin=COORDINATOR)


def test_a_replica_takes_an_older_epoch(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5)
    append(state, 1, 7, epoch=4, origin=REPLICATION)
    assert (entry_of(state).producer_epoch, entry_of(state).last_sequence) == (4, 7)


def test_a_new_epoch_starts_at_sequence_0(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    with pytest.raises(
        OutOfOrderSequence,
        match=text(
            "Invalid sequence number for new epoch of producer 1at offset 1 in partition test-0: "
            "1 (request epoch), 1 (seq. number), 0 (current producer epoch)"
        ),
    ):
        append(state, 1, 1, epoch=1)
    append(state, 1, 0, epoch=1)
    assert entry_of(state).producer_epoch == 1


# -- transactions


def test_a_marker_ends_the_transaction_and_keeps_the_batches(state: ProducerStateManager) -> None:
    append(state, 16, 0, count=5, transactional=True)
    assert entry_of(state).current_txn_first_offset == 16
    completed, _ = end_txn(state, 40, coordinator_epoch=15)
    assert completed is not None
    assert (completed.producer_id, completed.first_offset, completed.last_offset, completed.is_aborted) == (1, 16, 40, False)
    entry = entry_of(state)
    assert (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_data_offset) == (-1, 15, 20)


def test_an_abort_marker_says_so(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    completed, _ = end_txn(state, 1, committed=False)
    assert completed is not None
    assert completed.is_aborted


def test_a_transaction_begins_at_its_first_batch(state: ProducerStateManager) -> None:
    append(state, 16, 0, transactional=True)
    append(state, 20, 1, transactional=True)
    assert state.first_undecided_offset == 16


def test_a_marker_without_data_completes_nothing(state: ProducerStateManager) -> None:
    completed, _ = end_txn(state, 27, epoch=2)
    assert completed is None
    assert (entry_of(state).producer_epoch, entry_of(state).last_sequence) == (2, -1)


def test_a_producer_known_by_a_marker_alone_is_fenced_and_starts_at_0(state: ProducerStateManager) -> None:
    end_txn(state, 27, epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        append(state, 28, 0, epoch=0)
    with pytest.raises(OutOfOrderSequence):
        append(state, 28, 17, epoch=2)
    append(state, 28, 0, epoch=2)


def test_a_marker_of_a_later_epoch_resets_the_sequence(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    end_txn(state, 1, epoch=1, committed=False)
    entry = entry_of(state)
    assert (entry.producer_epoch, entry.last_sequence, entry.last_data_offset) == (1, -1, -1)
    append(state, 2, 0, epoch=1)


def test_a_marker_of_an_older_epoch_is_fenced(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5, transactional=True)
    with pytest.raises(
        InvalidProducerEpoch, match=text("Epoch of producer 1 at offset 1 in test-0 is 4, which is < the last seen epoch 5 (TV0)")
    ):
        end_txn(state, 1, epoch=4)
    end_txn(state, 1, epoch=4, origin=REPLICATION)


def test_before_transaction_version_2_a_marker_has_the_epoch_of_its_data(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5, transactional=True)
    completed, _ = end_txn(state, 1, epoch=5, transaction_version=1)
    assert completed is not None


def test_in_transaction_version_2_a_marker_of_the_datas_epoch_is_late(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5, transactional=True)
    with pytest.raises(
        InvalidProducerEpoch, match=text("Epoch of producer 1 at offset 1 in test-0 is 5, which is <= the last seen epoch 5 (TV2)")
    ):
        end_txn(state, 1, epoch=5, transaction_version=2)
    completed, _ = end_txn(state, 1, epoch=6, transaction_version=2)
    assert completed is not None


def test_in_transaction_version_2_a_repeated_marker_is_taken_and_completes_nothing(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=5, transactional=True)
    end_txn(state, 1, epoch=6, transaction_version=2)
    completed, _ = end_txn(state, 2, epoch=6, transaction_version=2)
    assert completed is None


def test_a_marker_of_a_deposed_coordinator_is_fenced(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    end_txn(state, 1, coordinator_epoch=2)
    append(state, 2, 1, transactional=True)
    with pytest.raises(
        TransactionCoordinatorFenced,
        match=text("Invalid coordinator epoch for producerId 1 at offset 3 in partition test-0: 1 (zombie), 2 (current)"),
    ):
        end_txn(state, 3, coordinator_epoch=1)
    end_txn(state, 3, coordinator_epoch=1, origin=REPLICATION)
    assert entry_of(state).coordinator_epoch == 1


def test_data_outside_a_transaction_is_refused_while_one_is_open(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    with pytest.raises(
        InvalidTxnState,
        match=text("Expected transactional write from producer 1 at offset (offset=1, segment=[-1:-1]) in partition test-0"),
    ):
        append(state, 1, 1)


def test_a_transaction_that_was_not_started_cannot_be_completed(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    completed, _ = end_txn(state, 1)
    assert completed is not None
    with pytest.raises(ValueError, match=r"CompletedTxn\(producerId=1, firstOffset=0, lastOffset=1, isAborted=False\) on partition test-0"):
        state.complete_txn(completed)


def test_several_transactions_in_one_append_are_all_opened_and_completed(state: ProducerStateManager) -> None:
    info = state.prepare_update(1, REPLICATION)
    info.append_batch(batch(0, 0, transactional=True))
    first = info.append_end_txn_marker(True, 0, 0, 1, NOW)
    info.append_batch(batch(2, 1, transactional=True))
    state.update(info)
    assert first is not None
    state.complete_txn(first)
    assert state.first_undecided_offset == 2


# -- how far read_committed sees


def test_without_transactions_everything_is_stable(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    assert (state.first_unstable_offset, state.first_undecided_offset) == (None, None)


def test_the_oldest_open_transaction_is_the_first_unstable_offset(state: ProducerStateManager) -> None:
    append(state, 99, 0, transactional=True)
    append(state, 105, 0, producer_id=2, transactional=True)
    assert state.first_unstable_offset == LogOffset(99)
    assert state.first_undecided_offset == 99


def test_the_place_of_the_first_batch_is_kept(state: ProducerStateManager) -> None:
    append(state, 992_342, 0, transactional=True, place=LogOffset(992_342, 990_000, 234_224))
    assert state.first_unstable_offset == LogOffset(992_342, 990_000, 234_224)


def test_a_transaction_stays_unstable_until_its_marker_is_replicated(state: ProducerStateManager) -> None:
    append(state, 99, 0, transactional=True)
    append(state, 105, 0, producer_id=2, transactional=True)
    end_txn(state, 109)
    assert (state.first_undecided_offset, state.first_unstable_offset) == (105, LogOffset(99))
    for high_watermark, expected in [(100, 99), (109, 99), (110, 105)]:
        state.on_high_watermark_updated(high_watermark)
        assert state.first_unstable_offset == LogOffset(expected)
    end_txn(state, 112, producer_id=2, committed=False)
    assert (state.first_undecided_offset, state.first_unstable_offset) == (None, LogOffset(105))
    state.on_high_watermark_updated(113)
    assert state.first_unstable_offset is None


def test_an_old_transaction_that_ended_late_holds_back_only_itself(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    append(state, 1, 0, producer_id=2, transactional=True)
    end_txn(state, 2, producer_id=2)
    end_txn(state, 3)
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == LogOffset(0)
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset is None


def test_deleting_records_forgets_the_transactions_in_them(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    end_txn(state, 1)
    state.on_log_start_offset_incremented(2)
    assert state.first_unstable_offset is None


def test_the_transaction_index_gets_the_last_stable_offset_as_of_the_marker(tmp_path: Path) -> None:
    """The overlapping transactions of Kafka's own log, and its transaction index."""
    log = LOGS / "kafka-4.2.0/first/g-txn-0"
    state = new_state(tmp_path)
    assert replay(state, (log / "00000000000000000000.log").read_bytes()) == []
    assert replay(state, (log / "00000000000000000003.log").read_bytes()) == [(4, 7, 8), (8, 10, 9), (9, 13, 12)]


# -- expiry and late transactions


def test_a_silent_producer_expires(state: ProducerStateManager) -> None:
    append(state, 0, 0, timestamp=NOW)
    state.remove_expired(NOW + DAY_MS - 1, 0)
    assert state.last_entry(1) is not None
    state.remove_expired(NOW + DAY_MS, 0)
    assert state.last_entry(1) is None


def test_an_expired_producer_may_go_on_where_it_was(state: ProducerStateManager) -> None:
    append(state, 0, 0)
    state.remove_expired(NOW + DAY_MS, 0)
    append(state, 1, 1)
    assert entry_of(state).last_sequence == 1


def test_a_producer_with_an_open_transaction_never_expires(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    state.remove_expired(NOW + 100 * DAY_MS, 0)
    assert state.last_entry(1) is not None
    assert state.first_undecided_offset == 0


def test_the_expiry_time_may_change_while_the_broker_runs(tmp_path: Path) -> None:
    config = ProducerStateConfig()
    state = new_state(tmp_path, config)
    append(state, 0, 0)
    config.producer_id_expiration_ms = 10
    state.remove_expired(NOW + 10, 0)
    assert state.last_entry(1) is None


def test_a_partition_remembers_so_many_producers_and_forgets_those_silent_for_longest(tmp_path: Path) -> None:
    state = new_state(tmp_path, ProducerStateConfig(producers_max=100))
    for number in range(1_000):
        append(state, 2 * number, 0, producer_id=1_000 + number, timestamp=NOW + 3_600_000)  # a client may say any time
        append(state, 2 * number + 1, number, producer_id=1, timestamp=NOW)
    assert len(state.active_producers) == 100
    assert entry_of(state).last_sequence == 999  # it was never silent
    assert all(producer_id == 1 or producer_id > 1_800 for producer_id in state.active_producers)


def test_a_producer_with_an_open_transaction_is_not_forgotten_for_others(tmp_path: Path) -> None:
    state = new_state(tmp_path, ProducerStateConfig(producers_max=10))
    append(state, 0, 0, transactional=True)
    for number in range(100):
        append(state, 1 + number, 0, producer_id=1_000 + number)
    assert state.last_entry(1) is not None and len(state.active_producers) == 10
    assert state.first_undecided_offset == 0


def test_guards_of_producers_that_never_write_are_bounded(tmp_path: Path) -> None:
    state = new_state(tmp_path, ProducerStateConfig(producers_max=10))
    for number in range(100):
        state.start_verification(number, 0, 0, True, NOW)
    assert [number for number in range(100) if state.verification_entry(number) is not None] == list(range(90, 100))


def test_a_transaction_is_late_when_it_has_outlived_the_longest_timeout(tmp_path: Path) -> None:
    state = new_state(tmp_path, ProducerStateConfig(max_transaction_timeout_ms=1000))
    limit = 1000 + LATE_TRANSACTION_BUFFER_MS
    append(state, 100, 0, producer_id=39, transactional=True, timestamp=NOW)
    append(state, 150, 0, producer_id=57, transactional=True, timestamp=NOW + 500)
    assert not state.has_late_transaction(NOW + limit)
    assert state.has_late_transaction(NOW + limit + 1)
    end_txn(state, 200, producer_id=39)
    assert not state.has_late_transaction(NOW + limit + 1)
    assert state.has_late_transaction(NOW + limit + 501)
    end_txn(state, 250, producer_id=57)
    assert not state.has_late_transaction(NOW + 10 * limit)


def test_a_late_transaction_is_still_late_after_a_reload(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    append(state, 100, 0, transactional=True)
    state.take_snapshot(sync=False)
    reloaded = new_state(tmp_path)
    reloaded.truncate_and_reload(0, 101, NOW)
    assert reloaded.has_late_transaction(NOW + DAY_MS)


@pytest.mark.parametrize("cut", [lambda s: s.truncate_and_reload(0, 80, NOW), lambda s: s.truncate_fully_and_start_at(150)])
def test_a_late_transaction_that_is_cut_off_is_forgotten(state: ProducerStateManager, cut: Callable[[ProducerStateManager], None]) -> None:
    append(state, 100, 0, transactional=True)
    cut(state)
    assert not state.has_late_transaction(NOW + DAY_MS)
    assert state.first_unstable_offset is None
