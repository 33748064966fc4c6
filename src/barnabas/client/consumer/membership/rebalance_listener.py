"""What an application hears of partitions that come and go, and how it is told.

A listener runs where the application runs: in the thread that called poll(), or awaited by the task that did. It may commit and seek.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from typing import Protocol

from barnabas.client.consumer.membership.group_metrics import CallbackMetrics
from barnabas.client.errors import Interrupted, KafkaError, Wakeup
from barnabas.topic_partition import TopicPartition

log = logging.getLogger(__name__)

CallUser = Callable[[Callable[[], object]], Awaitable[None]]
"""Runs a function of the application where the application runs, awaits what it returns if that is awaitable, and raises what it raised."""


class ConsumerRebalanceListener:
    """To be subclassed. Its methods may be coroutines with an AsyncConsumer.

    `on_partitions_lost` tells of partitions that others may own already: there is nothing left to commit for them.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> object:
        """Called after a rebalance with the partitions that are new to this consumer, before their first records."""
        return None

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> object:
        """Called before partitions are given up: the last chance to commit their offsets."""
        return None

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> object:
        """Called with partitions that another member may own already, so that nothing can be committed for them.

        By default calls on_partitions_revoked.
        """
        return self.on_partitions_revoked(partitions)


class HasListener(Protocol):
    """Where the listener of the present subscription is found: the SubscriptionState."""

    rebalance_listener: ConsumerRebalanceListener | None


class ListenerInvoker:
    """Tells the listener, if there is one, and hands back what it raised: a rebalance is finished before its listener's error is."""

    def __init__(self, subscriptions: HasListener, call_user: CallUser, metrics: CallbackMetrics) -> None:
        self._subscriptions = subscriptions
        self._call_user = call_user
        self._metrics = metrics

    async def assigned(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Told of an empty assignment too, as Kafka's listeners are."""
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else await self._call("assigned", listener.on_partitions_assigned, partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> Exception | None:
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else await self._call("revoked", listener.on_partitions_revoked, partitions)

    async def lost(self, partitions: Collection[TopicPartition]) -> Exception | None:
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else await self._call("lost", listener.on_partitions_lost, partitions)

    async def _call(
        self, event: str, method: Callable[[Collection[TopicPartition]], object], partitions: Collection[TopicPartition]
    ) -> Exception | None:
        told = sorted(partitions)
        began_ms = self._metrics.now_ms()
        try:
            await self._call_user(lambda: method(told))
        except (Wakeup, Interrupted):
            raise
        except Exception as problem:
            log.exception("User provided listener failed on invocation of on_partitions_%s for partitions %s", event, told)
            return problem
        self._metrics.called(event, self._metrics.now_ms() - began_ms)
        return None


def listener_error(problem: Exception) -> KafkaError:
    """What poll() raises for an error of a listener, an assignor, or whatever else went wrong in a rebalance."""
    if isinstance(problem, KafkaError):
        return problem
    error = KafkaError("User rebalance callback throws an error")
    error.__cause__ = problem
    return error


async def call_here(function: Callable[[], object]) -> None:
    """The `CallUser` of an asynchronous consumer: the application runs on this very loop."""
    result = function()
    if isawaitable(result):
        await result
