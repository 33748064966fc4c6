"""Which open transactions hang: those whose coordinator does not know the partition."""

from __future__ import annotations

from barnabas.administration.hanging_transactions import Hanging, long_open, unknown_to_coordinators
from barnabas.client.admin.topics.producers import ProducerState
from barnabas.client.admin.topics.transactions import TransactionDescription, TransactionState
from barnabas.topic_partition import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def producer(number: int = 7, last_ms: int = 0, start: int | None = 5, epoch: int | None = 2) -> ProducerState:
    return ProducerState(number, 1, 0, last_ms, epoch, start)


def description(*partitions: TopicPartition) -> TransactionDescription:
    return TransactionDescription(1, TransactionState.ONGOING, 7, 1, 60_000, 0, frozenset(partitions))


def test_only_transactions_that_are_open_for_long_are_candidates() -> None:
    states = {A0: [producer(), producer(8, start=None)], A1: [producer(9, last_ms=95)]}
    assert [one.producer.producer_id for one in long_open(states, 10, 100)] == [7]


def test_a_transaction_that_its_coordinator_knows_does_not_hang() -> None:
    candidates = [Hanging(A0, producer()), Hanging(A1, producer())]
    assert unknown_to_coordinators(candidates, {7: "t"}, {"t": description(A0)}) == candidates[1:]
    assert unknown_to_coordinators(candidates, {}, {}) == candidates


def test_a_producer_that_never_completed_a_transaction_is_aborted_with_epoch_0() -> None:
    assert [Hanging(A0, producer(epoch=epoch)).coordinator_epoch for epoch in (None, -1, 3)] == [0, 0, 3]
