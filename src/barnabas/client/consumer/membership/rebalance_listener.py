"""The rebalance listener of an application, and its invocation.

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
"""Runs a function of the application where the application runs, awaits its result if that is awaitable, and raises its errors."""


class ConsumerRebalanceListener:
    """A base class. Its methods may be coroutines with an AsyncConsumer.

    `on_partitions_lost` is called for partitions that other members may already own: nothing can be committed for them.
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
    """Holds the listener of the current subscription: the SubscriptionState."""

    rebalance_listener: ConsumerRebalanceListener | None


class ListenerInvoker:
    """Calls the listener, if there is one, and returns its exception: a rebalance finishes before the listener's error is raised."""

    def __init__(self, subscriptions: HasListener, call_user: CallUser, metrics: CallbackMetrics) -> None:
        self._subscriptions = subscriptions
        self._call_user = call_user
        self._metrics = metrics

    async def assigned(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Also called for an empty assignment, as in Kafka."""
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
        sorted_partitions = sorted(partitions)
        began_ms = self._metrics.now_ms()
        try:
            await self._call_user(lambda: method(sorted_partitions))
        except (Wakeup, Interrupted):
            raise
        except Exception as problem:
            log.exception("User provided listener failed on invocation of on_partitions_%s for partitions %s", event, sorted_partitions)
            return problem
        self._metrics.called(event, self._metrics.now_ms() - began_ms)
        return None


def listener_error(problem: Exception) -> KafkaError:
    """The error that poll() raises for an exception of a listener, an assignor, or another part of a rebalance."""
    if isinstance(problem, KafkaError):
        return problem
    error = KafkaError("User rebalance callback throws an error")
    error.__cause__ = problem
    return error


async def call_here(function: Callable[[], object]) -> None:
    """The `CallUser` of an asynchronous consumer: the application runs on the same event loop."""
    result = function()
    if isawaitable(result):
        await result
