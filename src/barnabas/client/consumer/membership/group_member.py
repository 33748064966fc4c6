"""The common part of both memberships: coordinator, commits, a heartbeat task, and close.

An error of the heartbeats that only the application can handle is kept for the next poll. `classic_membership` and `consumer_membership`
interpret responses and apply assignments.
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
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager, end, start
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
    """The objects of a consumer that a membership needs."""

    config: ClientConfig
    client: NetworkClient
    metadata: Metadata
    subscriptions: Subscriptions
    clock: Clock
    random: Random
    metrics: Metrics
    interceptors: ConsumerInterceptors
    wake: Callable[[], None]
    """Called on the event loop when a waiting poll should check the membership again."""
    call_user: CallUser
    """Runs application code (listeners) where the application runs."""


class GroupMember(ABC):
    def __init__(self, environment: MemberEnvironment, *, session_timeout_ms: int, heartbeat_interval_ms: int, commits_by_id: bool) -> None:
        config, subscriptions, metadata, clock = environment.config, environment.subscriptions, environment.metadata, environment.clock
        backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], random=environment.random)
        self._group_id: str = config["group.id"]
        self._instance_id: str | None = config["group.instance.id"]
        self._retry_backoff_ms: int = config["retry.backoff.ms"]
        self._rebalance_timeout_ms: int = config["max.poll.interval.ms"]
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._clock = clock
        self._wake = environment.wake
        self._invoker = ListenerInvoker(subscriptions, environment.call_user, CallbackMetrics(environment.metrics))
        self._coordinator = CoordinatorRequestManager(environment.client, self._group_id, clock=clock, backoff=backoff)
        self._watch = MetadataWatch(metadata, subscriptions, config["client.rack"])
        self._metrics = GroupMetrics(environment.metrics, lambda: len(subscriptions.assigned_partitions()))
        self._commits = Commits(
            CommitSettings(self._group_id, config["enable.auto.commit"], config["auto.commit.interval.ms"], self._retry_backoff_ms),
            self._coordinator,
            subscriptions,
            self,
            clock=clock,
            backoff=backoff,
            interceptors=environment.interceptors,
            metrics=CommitMetrics(environment.metrics),
            metadata=metadata if commits_by_id else None,
        )
        self._heartbeat = Heartbeat(
            session_timeout_ms=session_timeout_ms,
            interval_ms=heartbeat_interval_ms,
            poll_timeout_ms=self._rebalance_timeout_ms,
            backoff=backoff,
        )
        self._group_metadata = self._without_member()
        self._heartbeats: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # set when the heartbeat task should check the state
        self._failure: KafkaError | None = None  # an error of the heartbeats, for the application

    # The identity of commits

    @abstractmethod
    def commit_identity(self) -> Identity: ...

    @abstractmethod
    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError: ...

    @abstractmethod
    def fetch_identity(self) -> Identity: ...

    # Polls

    def ms_to_next_poll(self, now_ms: int) -> int:
        """The time to the next poll that keeps the application alive while it waits."""
        wait_ms = min(self._heartbeat.interval_ms, self._rebalance_timeout_ms // 2)
        auto_ms = self._commits.ms_to_auto_commit(now_ms)
        return max(1, wait_ms if auto_ms is None else min(wait_ms, auto_ms))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group metadata. A removed member keeps its last identity, so that a commit with it is fenced and not accepted as one without
        a member."""
        return self._group_metadata

    def _without_member(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(self._group_id, group_instance_id=self._instance_id)

    def _needs_attention(self, now_ms: int) -> bool:
        """Whether a poll has something to do in either protocol."""
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
        """Does what is due, or waits until something may be due."""

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
        """Keeps an error for the application. Heartbeats pause until it is raised."""
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
