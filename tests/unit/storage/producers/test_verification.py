from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence
from barnabas.storage.producers.state import ProducerStateConfig, ProducerStateManager
from barnabas.storage.producers.verification import SENTINEL, VerificationGuard
from tests.unit.storage.producing import NOW, append, batch, end_txn, new_state


@pytest.fixture
def state(tmp_path: Path) -> ProducerStateManager:
    return new_state(tmp_path)


def start(state: ProducerStateManager, sequence: int = 0, epoch: int = 0, version_2: bool = False) -> VerificationGuard:
    return state.start_verification(1, sequence, epoch, version_2, NOW)


def test_a_guard_verifies_itself_and_nothing_else() -> None:
    guard = VerificationGuard()
    assert guard.verify(guard)
    assert not guard.verify(VerificationGuard())
    assert not guard.verify(SENTINEL)
    assert not SENTINEL.verify(SENTINEL)


def test_a_batch_that_opens_a_transaction_needs_its_guard(state: ProducerStateManager) -> None:
    first = batch(0, 0, transactional=True)
    with pytest.raises(InvalidTxnState, match=r"^Record was not part of an ongoing transaction$"):
        state.require_verified(first, SENTINEL)
    state.require_verified(first, start(state))


def test_one_verification_has_one_guard(state: ProducerStateManager) -> None:
    assert start(state) is start(state)


def test_a_guard_from_before_a_marker_is_worth_nothing(state: ProducerStateManager) -> None:
    stale = start(state)
    state.clear_verification(1)
    start(state)
    with pytest.raises(InvalidTxnState):
        state.require_verified(batch(0, 0, transactional=True), stale)


def test_an_open_transaction_needs_no_guard(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    assert start(state) is SENTINEL
    state.require_verified(batch(1, 1, transactional=True), SENTINEL)


def test_an_open_transaction_of_another_epoch_does_not_count(state: ProducerStateManager) -> None:
    append(state, 0, 0, transactional=True)
    with pytest.raises(InvalidTxnState):
        state.require_verified(batch(1, 0, epoch=1, transactional=True), SENTINEL)


@pytest.mark.parametrize("kind", [{}, {"transactional": True, "control": True}])
def test_plain_data_and_markers_need_no_guard(state: ProducerStateManager, kind: dict[str, bool]) -> None:
    state.require_verified(batch(0, 0, **kind), SENTINEL)


def test_verification_may_be_switched_off(tmp_path: Path) -> None:
    state = new_state(tmp_path, ProducerStateConfig(transaction_verification_enabled=False))
    state.require_verified(batch(0, 0, transactional=True), SENTINEL)


def test_a_producer_of_an_older_epoch_is_told_at_once(state: ProducerStateManager) -> None:
    end_txn(state, 0, epoch=6)
    with pytest.raises(InvalidProducerEpoch, match=r"^Epoch of producer 1 is 5, which is smaller than the last seen epoch 6$"):
        start(state, epoch=5)


def test_a_higher_sequence_must_not_overtake_one_that_is_being_verified(state: ProducerStateManager) -> None:
    start(state, sequence=5)
    start(state, sequence=3)
    start(state, sequence=8)
    with pytest.raises(
        OutOfOrderSequence,
        match=r"^Out of order sequence number for producer 1 at offset 0 in partition test-0: "
        r"5 \(incoming seq. number\), 3 \(earliest seen sequence\)$",
    ):
        append(state, 0, 5, transactional=True)
    append(state, 0, 3, transactional=True)


def test_a_new_epoch_starts_a_new_lowest_sequence(state: ProducerStateManager) -> None:
    start(state, sequence=0)
    start(state, sequence=7, epoch=1)
    entry = state.verification_entry(1)
    assert entry is not None
    assert (entry.epoch, entry.lowest_sequence) == (1, 7)


def test_in_transaction_version_2_an_unknown_producer_starts_at_0(state: ProducerStateManager) -> None:
    start(state, sequence=4, version_2=True)
    with pytest.raises(
        OutOfOrderSequence,
        match=r"^Invalid sequence number for producer 1 at offset 0 in partition test-0: 4 \(incoming seq. number\). "
        r"Expected sequence 0 for transactions v2 idempotent producer with no existing state.$",
    ):
        append(state, 0, 4, transactional=True)


def test_a_verification_nobody_finishes_expires(state: ProducerStateManager) -> None:
    start(state)
    state.remove_expired(NOW + 86_400_000 - 1, NOW + 86_400_000 - 1)
    assert state.verification_entry(1) is not None
    state.remove_expired(NOW + 86_400_000, NOW + 86_400_000)
    assert state.verification_entry(1) is None


def test_a_batch_of_an_older_epoch_is_fenced_and_not_only_unverified(state: ProducerStateManager) -> None:
    append(state, 0, 0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        state.require_verified(batch(1, 0, epoch=2, transactional=True), SENTINEL)
