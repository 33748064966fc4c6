"""Listeners and interceptors of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from barnabas.client.clock import SystemClock
from barnabas.client.consumer.interceptors import ConsumerInterceptor, ConsumerInterceptors
from barnabas.client.consumer.membership.group_metrics import CallbackMetrics
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener, ListenerInvoker, call_here, listener_error
from barnabas.client.consumer.offsets.offset_reset import LATEST
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.consumer.record import ConsumerRecords
from barnabas.client.errors import CommitFailed, KafkaError, Wakeup
from barnabas.client.metrics.metrics import Metrics
from barnabas.topic_partition import TopicPartition

METRICS = Metrics(SystemClock())
P = [TopicPartition("t", 1), TopicPartition("t", 0)]


def invoker(listener: ConsumerRebalanceListener | None) -> ListenerInvoker:
    subscriptions = SubscriptionState(LATEST)
    subscriptions.subscribe(["t"], listener)
    return ListenerInvoker(subscriptions, call_here, CallbackMetrics(METRICS))


def test_a_listener_is_told_in_order_of_partitions() -> None:
    calls: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            calls.append(partitions)

    asyncio.run(invoker(Listener()).assigned(P))
    assert calls == [sorted(P)]


def test_a_listener_may_be_a_coroutine() -> None:
    calls: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            await asyncio.sleep(0)
            calls.append(partitions)

    asyncio.run(invoker(Listener()).revoked(P))
    assert calls == [sorted(P)]


def test_what_is_lost_counts_as_revoked_unless_the_listener_says_otherwise() -> None:
    calls: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            calls.append(partitions)

    asyncio.run(invoker(Listener()).lost(P))
    assert calls == [sorted(P)]


def test_nobody_need_listen() -> None:
    assert asyncio.run(invoker(None).lost(P)) is None


class Raising(ConsumerRebalanceListener):
    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        raise self.problem


def test_an_error_of_a_listener_is_kept_for_the_end_of_the_rebalance() -> None:
    problem = ValueError("no")
    assert asyncio.run(invoker(Raising(problem)).revoked(P)) is problem


def test_a_wakeup_goes_through_at_once() -> None:
    with pytest.raises(Wakeup):
        asyncio.run(invoker(Raising(Wakeup("up"))).revoked(P))


def test_an_error_of_kafka_is_raised_as_it_is_and_others_are_wrapped() -> None:
    problem = CommitFailed("no")
    assert listener_error(problem) is problem
    wrapped = listener_error(ValueError("no"))
    assert (type(wrapped), str(wrapped), str(wrapped.__cause__)) == (KafkaError, "User rebalance callback throws an error", "no")


class Halving(ConsumerInterceptor):
    def on_consume(self, records: Any) -> Any:
        return records[: len(records) // 2]


class Broken(ConsumerInterceptor):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_consume(self, records: Any) -> Any:
        self.calls.append("on_consume")
        raise ValueError("no")

    def on_commit(self, offsets: Any) -> None:
        self.calls.append("on_commit")
        raise ValueError("no")

    def close(self) -> None:
        self.calls.append("close")
        raise ValueError("no")


def test_interceptors_work_one_after_the_other_and_past_one_that_fails() -> None:
    broken = Broken()
    chain = ConsumerInterceptors([Halving(), broken, Halving()])
    records: Any = list(range(8))
    left: Any = chain.on_consume(records)
    assert left == [0, 1]
    chain.on_commit({})
    chain.close()
    assert broken.calls == ["on_consume", "on_commit", "close"]


def test_an_interceptor_need_not_do_anything() -> None:
    records: ConsumerRecords[bytes, bytes] = ConsumerRecords.empty()
    assert ConsumerInterceptors([ConsumerInterceptor()]).on_consume(records) is records
