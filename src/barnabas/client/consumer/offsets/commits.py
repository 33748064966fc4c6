"""Commits offsets, and fetches committed offsets.

A synchronous commit is retried until it succeeds, is rejected, or times out. An asynchronous commit is sent once: a later retry could
replace a newer offset with an older one. Its callback waits until the application calls the consumer, so that callbacks run in the
application's thread and in the order of the commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.client.clock import Clock
from barnabas.client.consumer.interceptors import ConsumerInterceptors
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager, end, sleep_until, start, wait_until
from barnabas.client.consumer.membership.group_metrics import CommitMetrics
from barnabas.client.consumer.membership.membership import CommitCallback, Offsets, Subscriptions
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_messages import (
    BY_NAME_VERSION_MAX,
    Identity,
    commit_errors,
    commit_request,
    committed_offsets,
    fetch_request,
)
from barnabas.client.errors import (
    CoordinatorLoadInProgress,
    FencedInstanceId,
    GroupAuthorization,
    InvalidCommitOffsetSize,
    KafkaError,
    OffsetMetadataTooLarge,
    RetriableCommitFailed,
    StaleMemberEpoch,
    Timeout,
    TopicAuthorization,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponse
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

log = logging.getLogger(__name__)

# Errors of the committed offsets, or temporary errors: they do not concern the membership.
_OFFSET_ERRORS: Final = (
    OffsetMetadataTooLarge,
    InvalidCommitOffsetSize,
    CoordinatorLoadInProgress,
    UnknownTopicOrPartition,
    UnknownTopicId,
)


class Committer(Protocol):
    """The identity of commits, and the effect of an error on the membership."""

    def commit_identity(self) -> Identity:
        """Raises an error if this member cannot commit now."""

    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError:
        """Handles an error of the group for a commit that was sent as `sent`; returns the error for the application."""

    def fetch_identity(self) -> Identity: ...


@dataclass(frozen=True)
class CommitSettings:
    group_id: str
    auto_commit: bool
    auto_commit_interval_ms: int
    retry_backoff_ms: int


class Commits:
    def __init__(
        self,
        settings: CommitSettings,
        coordinator: CoordinatorRequestManager,
        subscriptions: Subscriptions,
        committer: Committer,
        *,
        clock: Clock,
        backoff: ExponentialBackoff,
        interceptors: ConsumerInterceptors,
        metrics: CommitMetrics,
        metadata: Metadata | None = None,
    ) -> None:
        """With `metadata`, topics are sent by their ids if the metadata has all of them and the coordinator supports ids."""
        self._settings = settings
        self._coordinator = coordinator
        self._subscriptions = subscriptions
        self._committer = committer
        self._clock = clock
        self._backoff = backoff
        self._interceptors = interceptors
        self._metrics = metrics
        self._metadata = metadata
        self._done: deque[Callable[[], object]] = deque()  # callbacks of the application, to run in its thread
        self._pending: set[asyncio.Task[None]] = set()
        self._fenced: FencedInstanceId | None = None
        self.auto_commit_error: Exception | None = None
        self._next_auto_ms = clock.monotonic_ms() + settings.auto_commit_interval_ms

    # Callbacks

    @property
    def callbacks_waiting(self) -> bool:
        return bool(self._done) or self._fenced is not None

    def run_callbacks(self) -> None:
        if self._fenced is not None:
            raise self._fenced
        while self._done:
            self._done.popleft()()

    # Synchronous commits

    async def commit(self, offsets: Offsets, deadline_ms: int) -> None:
        """Raises Timeout at the deadline. Commits that were pending before are finished when this one is."""
        began_ms = self._clock.monotonic_ms()
        if not offsets:
            await self.wait_for_pending(deadline_ms)
            return
        attempts = 0
        while True:
            if not await self._coordinator.ensure_ready(deadline_ms):
                break
            try:
                await self._send(offsets, deadline_ms)
            except KafkaError as problem:
                if not (problem.retriable or isinstance(problem, StaleMemberEpoch)):
                    raise
                log.debug("Offset commit failed and is tried again: %s", problem)
            else:
                self._note_committed(offsets)
                return
            now_ms = self._clock.monotonic_ms()
            if now_ms >= deadline_ms:
                break
            await sleep_until(min(deadline_ms, now_ms + self._backoff.backoff_ms(attempts)), self._clock)
            attempts += 1
        raise self._timed_out(f"successfully committing offsets {dict(offsets)}", deadline_ms - began_ms)

    async def wait_for_pending(self, deadline_ms: int) -> None:
        """Waits until no commit is pending."""
        while self._pending:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise self._coordinator.timeout("Timeout expired before pending asynchronous commits were done")
            await asyncio.wait(self._pending, timeout=left_ms / 1000)

    def _timed_out(self, expected: str, timeout_ms: int) -> Timeout:
        return self._coordinator.timeout(f"Timeout of {timeout_ms}ms expired before {expected}")

    # Asynchronous commits

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        committed = dict(offsets)

        def complete(problem: Exception | None) -> None:
            if callback is not None:
                self._done.append(lambda: callback(committed, problem))
            elif problem is not None:
                log.error("Offset commit with offsets %s failed: %s", committed, problem)

        self._begin(committed, complete)

    def _begin(self, offsets: dict[TopicPartition, OffsetAndMetadata], complete: Callable[[Exception | None], None]) -> asyncio.Task[None]:
        task = start(self._commit_once(offsets, complete))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return task

    async def _commit_once(self, offsets: dict[TopicPartition, OffsetAndMetadata], complete: Callable[[Exception | None], None]) -> None:
        try:
            if offsets and self._coordinator.node is None:
                await self._coordinator.look_up()
            if offsets:
                await self._send(offsets, None)
        except KafkaError as problem:
            application_error: KafkaError = problem
            if problem.retriable:
                application_error = RetriableCommitFailed(
                    "Offset commit failed with a retriable exception. You should retry committing the latest consumed offsets."
                )
                application_error.__cause__ = problem
            elif isinstance(problem, FencedInstanceId):
                self._fenced = problem
            complete(application_error)
        else:
            self._note_committed(offsets)
            complete(None)

    # Automatic commits

    @property
    def auto_commit(self) -> bool:
        return self._settings.auto_commit

    def auto_commit_due(self, now_ms: int) -> bool:
        return self._settings.auto_commit and now_ms >= self._next_auto_ms

    def ms_to_auto_commit(self, now_ms: int) -> int | None:
        return max(0, self._next_auto_ms - now_ms) if self._settings.auto_commit else None

    def restart_auto_commit(self) -> None:
        self._next_auto_ms = self._clock.monotonic_ms() + self._settings.auto_commit_interval_ms

    def auto_commit_if_due(self) -> None:
        if self.auto_commit_due(self._clock.monotonic_ms()):
            self.restart_auto_commit()
            self.auto_commit_async()

    def auto_commit_async(self) -> asyncio.Task[None]:
        """The task ends without an error when the outcome is known. An error is logged and stored in `auto_commit_error`."""
        offsets = self._subscriptions.all_consumed()
        self.auto_commit_error = None

        def complete(problem: Exception | None) -> None:
            self.auto_commit_error = problem
            if isinstance(problem, RetriableCommitFailed):
                log.debug("Asynchronous auto-commit of offsets %s failed due to retriable error.", offsets, exc_info=problem)
                self._next_auto_ms = self._clock.monotonic_ms() + self._settings.retry_backoff_ms
            elif problem is not None:
                log.warning("Asynchronous auto-commit of offsets %s failed: %s", offsets, problem)

        return self._begin(offsets, complete)

    async def auto_commit_sync(self, deadline_ms: int) -> None:
        """Commits before the consumer closes or revokes partitions; an error is only logged."""
        offsets = self._subscriptions.all_consumed()
        try:
            await self.commit(offsets, deadline_ms)
        except KafkaError as problem:
            log.warning("Synchronous auto-commit of offsets %s failed: %s", offsets, problem)

    # Committed offsets

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        began_ms = self._clock.monotonic_ms()
        attempts = 0
        while partitions:
            if not await self._coordinator.ensure_ready(deadline_ms):
                break
            fetch = start(self._fetch(partitions))
            try:
                if not await wait_until(fetch, deadline_ms, self._clock):
                    break
                return fetch.result()
            except KafkaError as problem:
                if not (problem.retriable or isinstance(problem, StaleMemberEpoch)):
                    raise
                log.debug("Fetching committed offsets failed and is tried again: %s", problem)
            finally:
                await end(fetch)
            now_ms = self._clock.monotonic_ms()
            if now_ms >= deadline_ms:
                break
            await sleep_until(min(deadline_ms, now_ms + self._backoff.backoff_ms(attempts)), self._clock)
            attempts += 1
        else:
            return {}
        names = sorted(map(str, partitions))
        raise self._timed_out(f"the last committed offset for partitions {names} could be determined", deadline_ms - began_ms)

    async def _fetch(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        identity = self._committer.fetch_identity()
        group_id = self._settings.group_id
        topic_ids = self._topic_ids(partitions)
        response = await self._coordinator.send(
            OffsetFetchRequest,
            lambda version: fetch_request(group_id, identity, partitions, version, topic_ids),
            OffsetFetchResponse,
            max_version=None if topic_ids else BY_NAME_VERSION_MAX,
        )
        try:
            return committed_offsets(response, group_id, topic_ids)
        except KafkaError as problem:
            self._coordinator.note(problem)
            self._note_topic_id(problem.__cause__)
            raise

    async def close(self) -> None:
        for task in list(self._pending):
            await end(task)

    # Inside

    async def _send(self, offsets: Offsets, deadline_ms: int | None) -> None:
        identity = self._committer.commit_identity()
        began_ms = self._clock.monotonic_ms()
        timeout_ms = None if deadline_ms is None else max(1, deadline_ms - began_ms)
        group_id = self._settings.group_id
        topic_ids = self._topic_ids(offsets)
        response = await self._coordinator.send(
            OffsetCommitRequest,
            lambda version: commit_request(group_id, identity, offsets, version, topic_ids),
            OffsetCommitResponse,
            timeout_ms=timeout_ms,
            max_version=None if topic_ids else BY_NAME_VERSION_MAX,
        )
        self._metrics.committed(self._clock.monotonic_ms() - began_ms)
        self._check(commit_errors(response, topic_ids), identity)

    def _topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, Uuid]:
        """The ids of all these topics, or an empty mapping if one is unknown."""
        if self._metadata is None:
            return {}
        cluster = self._metadata.cluster
        topic_ids = {partition.topic: cluster.topic_id(partition.topic) for partition in partitions}
        return {} if Uuid.ZERO in topic_ids.values() else topic_ids

    def _note_topic_id(self, error: BaseException | None) -> None:
        """Requests metadata after UNKNOWN_TOPIC_ID: the topic was deleted and possibly created again."""
        if isinstance(error, UnknownTopicId) and self._metadata is not None:
            self._metadata.request_update()

    def _check(self, errors: Mapping[TopicPartition, KafkaError], sent: Identity) -> None:
        unauthorized: set[str] = set()
        for partition, error in errors.items():
            may_pass = error.retriable or isinstance(error, StaleMemberEpoch)
            log.log(logging.WARNING if may_pass else logging.ERROR, "Offset commit failed on partition %s: %s", partition, error)
            if isinstance(error, GroupAuthorization):
                raise GroupAuthorization(group_id=self._settings.group_id)
            if isinstance(error, TopicAuthorization):
                unauthorized.add(partition.topic)
            elif isinstance(error, _OFFSET_ERRORS):
                self._note_topic_id(error)
                raise error
            else:
                self._coordinator.note(error)
                if isinstance(error, Timeout):
                    self._coordinator.mark_unknown(error)
                raise self._committer.commit_refused(error, sent)
        if unauthorized:
            raise TopicAuthorization(unauthorized_topics=unauthorized)

    def _note_committed(self, offsets: Offsets) -> None:
        if self._interceptors and offsets:
            committed = dict(offsets)
            self._done.append(lambda: self._interceptors.on_commit(committed))
