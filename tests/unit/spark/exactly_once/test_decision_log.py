"""What the decision log says: a fold over claims, decisions and ends, in which the order is the lock."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_barnabas.exactly_once.decision_log import BUSY_MS_MAX, DONE_KEPT, DecisionLog
from pyspark_barnabas.exactly_once.records import (
    Claim,
    Decide,
    Done,
    Record,
    Slot,
    Tombstone,
    Transaction,
    decode,
    encode,
    slot_of,
)

LIMIT_MS = 1000


class Log:
    """Writes records and folds them, with a clock that a test moves."""

    def __init__(self) -> None:
        self.says = DecisionLog()
        self.now_ms = 0
        self.entries: list[tuple[bytes, Record | Tombstone, int]] = []
        self._numbers = itertools.count()

    def append(self, record: Record | Tombstone) -> None:
        key, value = encode("p", record)
        self.entries.append((key, record, self.now_ms))
        self.says.apply(key, decode(key, value), self.now_ms)

    def claim(self, token: str, partition: int | None = 0, batch: int = 0, query: str = "q") -> str:
        nonce = f"n{next(self._numbers)}"
        self.append(Claim(query, batch, nonce, token, partition))
        return nonce

    def decide(self, token: str, *slots: Slot, batch: int = 0, query: str = "q") -> None:
        transactions = tuple(Transaction(slot, 1, 0) for slot in slots)
        self.append(Decide(query, batch, f"n{next(self._numbers)}", token, transactions, 3, 9, LIMIT_MS))

    def done(self, batch: int = 0, query: str = "q", **more: tuple[tuple[Slot, int], ...]) -> None:
        self.append(Done(query, batch, f"n{next(self._numbers)}", "t", 3, 9, **more))


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_decision_of_the_newest_claim_counts(log: Log) -> None:
    log.claim("a")
    log.decide("a", Slot(0, 0))
    decision = log.says.decision("q", 0)
    assert decision is not None
    assert (decision.token, decision.rows, decision.checksum, decision.done) == ("a", 3, 9, False)
    assert log.says.undone == decision


def test_a_decision_of_a_run_that_was_overtaken_does_not_count(log: Log) -> None:
    log.claim("a")
    log.claim("b")
    log.decide("a", Slot(0, 0))
    assert log.says.decision("q", 0) is None
    log.decide("b", Slot(0, 1))
    assert log.says.decision("q", 0) is not None


def test_a_run_that_was_overtaken_cannot_claim_itself_back(log: Log) -> None:
    log.claim("a")
    log.claim("b")
    late = log.claim("a", 1)
    assert log.says.slot(late) is None
    assert log.says.is_newest("b")


def test_a_claim_of_another_batch_overtakes_too(log: Log) -> None:
    log.claim("a", batch=5)
    log.claim("b", batch=7)
    log.decide("a", Slot(0, 0), batch=5)
    assert not log.says.is_decided("q", 5)


def test_a_claim_without_a_partition_takes_the_batch_away_and_no_slot(log: Log) -> None:
    log.claim("a")
    nonce = log.claim("abort", None)
    assert log.says.slot(nonce) is None
    log.decide("a", Slot(0, 0))
    assert log.says.decision("q", 0) is None


def test_a_batch_that_is_decided_cannot_be_claimed_or_decided_again(log: Log) -> None:
    log.claim("a")
    log.decide("a", Slot(0, 0))
    log.done()
    assert log.says.slot(log.claim("b")) is None
    log.decide("b", Slot(0, 0))
    decision = log.says.decision("q", 0)
    assert decision is not None
    assert decision.done


def test_nothing_is_claimed_while_a_decision_is_not_done(log: Log) -> None:
    log.claim("a")
    log.decide("a", Slot(0, 0))
    early = log.claim("b", batch=1)
    assert log.says.slot(early) is None
    log.done()
    assert log.says.slot(log.claim("b", batch=1)) == Slot(0, 0)


def test_a_decision_that_comes_too_late_does_not_count(log: Log) -> None:
    log.claim("a")
    log.now_ms = LIMIT_MS + 1
    log.claim("a", 1)
    log.decide("a", Slot(0, 0), Slot(1, 0))
    assert log.says.decision("q", 0) is None
    assert "1001 ms" in log.says.why_not("q", 0, "a", LIMIT_MS)


def test_a_decision_about_a_slot_that_the_run_does_not_hold_does_not_count(log: Log) -> None:
    log.claim("a")
    log.decide("a", Slot(0, 0), Slot(3, 0))
    assert log.says.decision("q", 0) is None


def test_each_attempt_at_a_partition_gets_a_slot_of_its_own(log: Log) -> None:
    nonces = [log.claim("a", 4), log.claim("a", 4), log.claim("a", 5)]
    assert [log.says.slot(nonce) for nonce in nonces] == [Slot(4, 0), Slot(4, 1), Slot(5, 0)]


def test_a_slot_of_a_run_that_may_still_live_is_given_to_nobody_else(log: Log) -> None:
    log.claim("a")
    assert log.says.slot(log.claim("b")) == Slot(0, 1)
    log.decide("b", Slot(0, 1))
    log.done(busy=((Slot(0, 0), 0),))
    assert log.says.slot(log.claim("c", batch=1)) == Slot(0, 1)


def test_a_busy_slot_is_free_once_its_transaction_was_seen_and_ended(log: Log) -> None:
    log.claim("a")
    log.claim("b")
    log.decide("b", Slot(0, 1))
    log.done(freed=((Slot(0, 0), 0),))
    assert log.says.slot(log.claim("c", batch=1)) == Slot(0, 0)


def test_a_busy_slot_is_free_after_a_day(log: Log) -> None:
    log.claim("a")
    log.claim("b")
    log.decide("b", Slot(0, 1))
    log.done(busy=((Slot(0, 0), 0),))
    log.now_ms = BUSY_MS_MAX + 1
    assert log.says.slot(log.claim("c", batch=1)) == Slot(0, 0)


def test_an_end_that_is_told_twice_changes_nothing(log: Log) -> None:
    log.claim("a")
    log.decide("a", Slot(0, 0))
    log.done()
    nonce = log.claim("b", batch=1)
    log.done()
    assert log.says.slot(nonce) == Slot(0, 0)
    assert log.says.is_newest("b")


def test_only_what_nobody_who_counts_has_open_is_a_stray(log: Log) -> None:
    log.claim("a")
    log.claim("b", 1)
    assert log.says.is_stray(Slot(0, 0))
    assert not log.says.is_stray(Slot(1, 0))
    log.decide("b", Slot(1, 0))
    assert not log.says.is_stray(Slot(1, 0))
    log.done()
    assert log.says.is_stray(Slot(1, 0))


def test_batches_long_done_are_known_to_be_decided_and_no_more(log: Log) -> None:
    for batch in range(DONE_KEPT + 5):
        log.claim(f"t{batch}", batch=batch)
        log.decide(f"t{batch}", Slot(0, 0), batch=batch)
        log.done(batch)
    assert log.says.is_decided("q", 0)
    assert log.says.decision("q", 0) is None
    assert log.says.decision("q", DONE_KEPT) is not None


def test_queries_with_one_prefix_know_each_others_claims_and_not_their_batches(log: Log) -> None:
    log.claim("a", query="q1")
    log.claim("b", query="q2")
    log.decide("a", Slot(0, 0), query="q1")
    log.decide("b", Slot(0, 1), query="q2")
    assert not log.says.is_decided("q1", 0)
    assert log.says.is_decided("q2", 0)


def test_what_is_garbage_after_a_batch_can_be_removed_without_a_trace(log: Log) -> None:
    for batch in range(3):
        log.claim(f"x{batch}", batch=batch)
        log.claim(f"t{batch}", batch=batch)
        log.decide(f"t{batch}", Slot(0, 1 if batch == 0 else 2), batch=batch)
        log.done(batch, busy=tuple((Slot(0, number), 0) for number in range(batch + 1)))
    gone = {tombstone.key for tombstone in log.says.garbage("q", 2, 1000)}
    assert len(gone) == 9
    compacted = DecisionLog()
    for key, record, timestamp_ms in log.entries:
        if key not in gone:
            compacted.apply(key, record, timestamp_ms)
    for batch in range(3):
        assert log.says.decision("q", batch) is not None
        assert compacted.decision("q", batch) == log.says.decision("q", batch)
    assert compacted.busy.keys() >= {Slot(0, 0), Slot(0, 1), Slot(0, 2)}


_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
_slots = st.builds(Slot, st.integers(0, 9), st.integers(0, 9))
_times = st.lists(st.tuples(_slots, st.integers(0, 2**40)), max_size=3).map(tuple)
_transactions = st.lists(st.builds(Transaction, _slots, st.integers(0, 2**60), st.integers(0, 2**15 - 1)), max_size=3).map(tuple)
_common = {"query": _text, "batch": st.integers(0, 2**60), "nonce": _text, "token": _text}
_numbers = {"rows": st.integers(0, 2**60), "checksum": st.integers(0, 2**64 - 1)}
_records = st.one_of(
    st.builds(Claim, **_common, partition=st.none() | st.integers(0, 2**31)),
    st.builds(Decide, **_common, **_numbers, transactions=_transactions, limit_ms=st.integers(0, 2**40)),
    st.builds(Done, **_common, **_numbers, busy=_times, freed=_times),
)


@given(_records)
def test_a_record_is_read_back_as_it_was_written(record: Record) -> None:
    key, value = encode("prefix", record)
    assert decode(key, value) == record
    assert decode(key, None) == Tombstone(key)


def test_a_longer_prefix_is_not_ours() -> None:
    assert slot_of("a-1-2", "a") == Slot(1, 2)
    assert slot_of("a-1-2-3", "a") is None
    assert slot_of("a-1-2-3", "a-1") == Slot(2, 3)
    assert slot_of("ab-1-2", "a") is None


@pytest.mark.parametrize(("key", "value"), [(b"p\x00claim\x00q\x000", b"{}"), (b"p\x00other\x00q\x000\x00n", b'{"token":"t"}')])
def test_what_is_no_record_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match="decision log"):
        decode(key, value)
