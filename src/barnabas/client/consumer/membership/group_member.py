"""What the memberships of both protocols have in common: a coordinator, commits, heartbeats in a task of their own, and how they end.

A heartbeat that finds something only the application can settle keeps it for the next poll. Deciding what an answer means, and acting on
assignments, is left to `classic_membership` and `consumer_membership`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.interceptors import ConsumerInterceptors
from barnabas.client.consumer.membership.coordinator import Coordinator, end, start
from barnabas.client.consumer.membership.group_metrics import CallbackMetrics, CommitMetrics, GroupMetrics
from barnabas.client.consumer.membership.heartbeat import Heartbeat
from barnabas.client.consumer.membership.membership import CommitCallback, Offsets, Subscriptions
from barnabas.client.consumer.membership.metadata_watch import MetadataWatch
from barnabas.client.consumer.membership.rebalance_listener import CallUser, ListenerInvoker, listener_error
from barnabas.client.consumer.offsets.commits import Commits, CommitSettings
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_messages import Identity
from barnabas.client.errors import KafkaError, Timeout
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.topic_partition import TopicPartition

log = logging.getLogger(__name__)

POLL_EXPIRED: Final = (
    "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured "
    "max.poll.interval.ms, which typically implies that the poll loop is spending too much time processing messages. You can address this "
    "either by increasing max.poll.interval.ms or by reducing the maximum size of batches returned in poll() with max.poll.records."
)


@dataclass(frozen=True)
class MemberEnvironment:
    """What a membership is given by its consumer."""

    config: ClientConfig
    client: NetworkClient
    metadata: Metadata
    subscriptions: Subscriptions
    clock: Clock
    random: Random
    metrics: Metrics
    interceptors: ConsumerInterceptors
    wake: Callable[[], None]
    """Called, on the loop, when a poll that waits for records should look at the membership again."""
    call_user: CallUser
    """Runs what belongs to the application (listeners) where the application runs."""


class GroupMember(ABC):
    def __init__(self, given: MemberEnvironment, *, session_timeout_ms: int, heartbeat_interval_ms: int, commits_by_id: bool) -> None:
        config, subscriptions, metadata, clock = given.config, given.subscriptions, given.metadata, given.clock
        backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random=given.random)
        self._group_id: str = config["group.id"]
        self._instance_id: str | None = config["group.instance.id"]
        self._retry_backoff_ms: int = config["retry.backoff.ms"]
        self._rebalance_timeout_ms: int = config["max.poll.interval.ms"]
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._clock = clock
        self._wake = given.wake
        self._invoker = ListenerInvoker(subscriptions, given.call_user, CallbackMetrics(given.metrics))
        self._coordinator = Coordinator(given.client, self._group_id, clock=clock, backoff=backoff)
        self._watch = MetadataWatch(metadata, subscriptions, config["client.rack"])
        self._metrics = GroupMetrics(given.metrics, lambda: len(subscriptions.assigned_partitions()))
        self._commits = Commits(
            CommitSettings(self._group_id, config["enable.auto.commit"], config["auto.commit.interval.ms"], self._retry_backoff_ms),
            self._coordinator,
            subscriptions,
            self,
            clock=clock,
            backoff=backoff,
            interceptors=given.interceptors,
            metrics=CommitMetrics(given.metrics),
            metadata=metadata if commits_by_id else None,
        )
        self._heartbeat = Heartbeat(
            session_timeout_ms=session_timeout_ms,
            interval_ms=heartbeat_interval_ms,
            poll_timeout_ms=self._rebalance_timeout_ms,
            backoff=backoff,
        )
        self._group_metadata = self._nobody()
        self._heartbeats: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # what the heartbeats have to look at
        self._failure: KafkaError | None = None  # of the heartbeats, for the application

    # As whom offsets are committed

    @abstractmethod
    def commit_identity(self) -> Identity: ...

    @abstractmethod
    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError: ...

    @abstractmethod
    def fetch_identity(self) -> Identity: ...

    # Polls

    def ms_to_next_poll(self, now_ms: int) -> int:
        """Often enough for the application to count as alive while it waits."""
        wait_ms = min(self._heartbeat.interval_ms, self._rebalance_timeout_ms // 2)
        auto_ms = self._commits.ms_to_auto_commit(now_ms)
        return max(1, wait_ms if auto_ms is None else min(wait_ms, auto_ms))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Of a member that was put out, as whom it last was: so that it is fenced, and not taken for nobody in particular."""
        return self._group_metadata

    def _nobody(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self._group_id, group_instance_id=self._instance_id)

    def _needs_attention(self, now_ms: int) -> bool:
        """Whatever the protocol, there is something to do in a poll."""
        return (
            self._failure is not None or self._commits.callbacks_waiting or self._commits.auto_commit_due(now_ms) or self._watch.has_changed
        )

    # Commits

    async def before_assign(self) -> None:
        if self._commits.auto_commit:
            self._commits.auto_commit_async()

    async def commit(self, offsets: Offsets, deadline_ms: int) -> None:
        await self._commits.commit(offsets, deadline_ms)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        self._commits.commit_async(offsets, callback)

    @property
    def callbacks_waiting(self) -> bool:
        return self._commits.callbacks_waiting

    def run_callbacks(self) -> None:
        self._commits.run_callbacks()

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await self._commits.fetch_committed(partitions, deadline_ms)

    # Heartbeats

    @abstractmethod
    async def _beat_once(self) -> None:
        """Does what is due, or waits until something may be."""

    def _start_heartbeats(self) -> None:
        if self._heartbeats is None:
            self._heartbeat.reset_timeouts(self._clock.monotonic_ms())
            self._heartbeats = start(self._beat())

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            await end(self._heartbeats)
            self._heartbeats = None

    async def _beat(self) -> None:
        while True:
            try:
                await self._beat_once()
            except Exception as problem:
                log.exception("Heartbeats failed due to an unexpected error")
                self._fail(listener_error(problem))

    async def _find_coordinator(self, now_ms: int) -> None:
        try:
            await self._coordinator.ensure_ready(now_ms + self._heartbeat.interval_ms)
        except KafkaError as problem:
            self._fail(problem)

    def _fail(self, problem: KafkaError) -> None:
        """Heartbeats pause until the application has heard of it."""
        self._failure = problem
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            problem, self._failure = self._failure, None
            self._changed.set()
            raise problem

    # The end

    async def _commit_for_good(self, deadline_ms: int) -> None:
        if self._commits.auto_commit:
            await self._commits.auto_commit_sync(deadline_ms)
        try:
            await self._commits.wait_for_pending(deadline_ms)
        except Timeout as problem:
            log.warning("Closing with commits under way: %s", problem)

    async def _end_tasks(self) -> None:
        await self._commits.close()
        await self._coordinator.close()
