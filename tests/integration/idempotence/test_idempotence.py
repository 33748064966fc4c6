"""Idempotence and what readers see of transactions, next to Apache Kafka: the same requests, the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.integration.idempotence.conftest import HOUR_MS, Tellers
from tests.integration.idempotence.walk import DEADLINE_S, FIRST_ID, READ_COMMITTED, Teller, Walk, fetch, mark, produce
from tests.integration.transactions.wire import Connection

SEEDS = range(8)
DAY_MS = 24 * HOUR_MS
PATIENCE_MS = 20_000


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_is_answered_as_by_kafka(tellers: Tellers, start_ms: int, seed: int) -> None:
    ours, kafka = tellers(f"walk-{seed}")
    for teller in (ours, kafka):
        Walk(seed, start_ms).tell(teller)
    assert ours.lines == kafka.lines


def test_a_producer_that_was_forgotten_may_go_on_anywhere_and_one_with_an_open_transaction_is_not_forgotten(tellers: Tellers) -> None:
    pair = tellers("expiry")
    for teller in pair:
        _forget(teller)
    ours, kafka = pair
    assert ours.lines == kafka.lines


def _forget(teller: Teller) -> None:
    long_ago = teller.start_ms - DAY_MS
    idle, open_one = FIRST_ID, FIRST_ID + 1
    teller.ask(*produce(teller.topic, [b"a"], long_ago, idle, 3, 0))
    teller.ask(*produce(teller.topic, [b"b"], long_ago, open_one, 0, 0, transactional=True))
    lines = len(teller.lines)
    _until(lambda: [producer.producer_id for producer in teller.producers()] == [open_one])
    del teller.lines[lines:]  # how long it took is not compared
    teller.ask(*produce(teller.topic, [b"c"], long_ago, open_one, 0, 5, transactional=True))
    teller.ask(*produce(teller.topic, [b"d"], teller.start_ms, idle, 0, 7))
    teller.ask(*produce(teller.topic, [b"e"], teller.start_ms, idle, 0, 9))
    teller.ask(*produce(teller.topic, [b"f"], teller.start_ms, idle, 0, 8))
    teller.look([1 << 20], [teller.start_ms])


@pytest.mark.parametrize("committed", [True, False])
def test_a_reader_of_committed_records_is_woken_by_the_end_of_the_transaction(tellers: Tellers, start_ms: int, committed: bool) -> None:
    pair = tellers(f"wait-{committed}")
    for teller in pair:
        teller.ask(*produce(teller.topic, [b"a"], start_ms, FIRST_ID, 0, 0, transactional=True))
        teller.ask(*produce(teller.topic, [b"b"], start_ms, -1, -1, -1))
        request, version = fetch(teller.topic, 0, 1 << 20, READ_COMMITTED, PATIENCE_MS)
        reader = Connection(teller.bootstrap)
        began = time.monotonic()
        reader.send(request, version)
        teller.ask(*mark(teller.topic, FIRST_ID, 0, committed))
        teller.take_down(request, reader.receive(request, version))
        assert time.monotonic() - began < PATIENCE_MS / 2000
        reader.close()
    ours, kafka = pair
    assert ours.lines == kafka.lines


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_compaction_leaves_of_transactions_what_kafka_leaves(tellers: Tellers, start_ms: int, seed: int) -> None:
    """Records, markers, empty batches, and the state of the producers."""
    too_young = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0", "min.compaction.lag.ms": str(10 * HOUR_MS)}
    ours, kafka = tellers(f"compacted-{seed}", too_young)
    for teller in (ours, kafka):
        Walk(seed, start_ms).tell(teller, looks=0)
        for number in range(12):  # so that nothing of the history is in the active segment
            teller.ask(*produce(teller.topic, [b"v" * 100], start_ms + number, -1, -1, -1))
    before = ours.seen()
    assert before == kafka.seen()
    for teller in (ours, kafka):
        teller.configure("min.compaction.lag.ms", "0")
    _until(lambda: before != kafka.seen() == ours.seen())


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it has not come to that"
        time.sleep(0.1)
