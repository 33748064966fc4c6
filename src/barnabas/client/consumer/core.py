"""The consumer on its event loop, shared by `Consumer` and `AsyncConsumer`.

`AsyncConsumer` awaits these coroutines directly; `Consumer` runs them on the loop of its thread. A poll is `fetch_ready`, which returns
when there is something to collect or at the deadline, followed by `collector.collect` in the caller's thread. This module never calls code
of the application: listeners, callbacks and deserializers run where `Consumer` and `AsyncConsumer` run them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from random import Random, SystemRandom
from typing import Any, Final, TypeVar

from barnabas.client.clock import Clock, SystemClock
from barnabas.client.cluster import PartitionInfo
from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.config import FetchConfig, is_consumer_protocol
from barnabas.client.consumer.fetching.completed_fetch import AS_BYTES, AS_UTF8, BY_CALL, Decoding, Deserialize
from barnabas.client.consumer.fetching.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetching.fetch_collector import FetchCollector
from barnabas.client.consumer.fetching.fetch_metrics import FetchMetrics
from barnabas.client.consumer.fetching.fetcher import Fetcher
from barnabas.client.consumer.interceptors import ConsumerInterceptors
from barnabas.client.consumer.membership.group_member import MemberEnvironment
from barnabas.client.consumer.membership.membership import DEFAULT, Membership, Offsets
from barnabas.client.consumer.membership.membership_factory import make_membership
from barnabas.client.consumer.membership.rebalance_listener import CallUser, ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_reset import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.consumer.offsets.offsets import FoundOffset, OffsetFinder
from barnabas.client.consumer.offsets.partition_state import FetchPosition, epoch_or_none
from barnabas.client.consumer.offsets.positions import Positions
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern, SubscriptionState
from barnabas.client.consumer.offsets.topic_metadata import topic_metadata
from barnabas.client.consumer.poll_metrics import PollMetrics
from barnabas.client.consumer.record import OffsetAndTimestamp
from barnabas.client.errors import IllegalArgument, IllegalState, Timeout, Wakeup
from barnabas.client.metrics.client_metrics import client_metrics
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.client.serialization.api import Deserializer
from barnabas.client.serialization.resolve import resolve_deserializer
from barnabas.client.serialization.simple import BytesDeserializer, StringDeserializer
from barnabas.client.shared_start import SharedStart
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidGroupId, KafkaError
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)

NO_GROUP: Final = "To use the group management or offset commit APIs, you must provide a valid group.id in the consumer configuration."
NOT_SUBSCRIBED: Final = "Consumer is not subscribed to any topics or assigned any partitions"

T = TypeVar("T")


class ConsumerCore:
    def __init__(self, config: ClientConfig, call_user: CallUser, *, clock: Clock | None = None, random: Random | None = None) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        random = random or SystemRandom()
        self.client_id: str = config["client.id"]
        self.default_timeout_ms: int = config["default.api.timeout.ms"]
        self.retry_backoff_ms: int = config["retry.backoff.ms"]
        self.fetch_config = FetchConfig.of(config)
        self.metrics = client_metrics(config, self.clock)
        self.poll_metrics = PollMetrics(self.metrics)
        self.key_deserializer = resolve_deserializer(config["key.deserializer"], config.originals(), is_key=True)
        self.value_deserializer = resolve_deserializer(config["value.deserializer"], config.originals(), is_key=False)
        self.interceptors = ConsumerInterceptors(_configured(config))
        self.subscriptions = SubscriptionState(self.fetch_config.offset_reset)
        self.metadata = Metadata(
            config,
            clock=self.clock,
            random=random,
            allow_auto_topic_creation=config["allow.auto.create.topics"],
            include_internal_topics=not config["exclude.internal.topics"],
        )
        self.network = NetworkClient(config, self.metadata, clock=self.clock, metrics=self.metrics, random=random, metric_group="consumer")
        self.buffer = FetchBuffer()
        read_committed = self.fetch_config.read_committed
        fetch_metrics = FetchMetrics(
            self.metrics,
            lambda partition: self.subscriptions.lag_or_none(partition, read_committed=read_committed),
            self.subscriptions.lead_or_none,
            lambda partition: self.subscriptions.preferred_read_replica(partition, self.clock.monotonic_ms()),
        )
        self.collector = FetchCollector(
            self.subscriptions,
            self.buffer,
            _decoding(self.key_deserializer, self.value_deserializer, config["check.crcs"], self.fetch_config.read_committed),
            fetch_metrics,
            max_poll_records=self.fetch_config.max_poll_records,
        )
        self.fetcher = Fetcher(
            self.fetch_config,
            self.network,
            self.metadata,
            self.subscriptions,
            self.buffer,
            fetch_metrics,
            clock=self.clock,
            retry_backoff_ms=self.retry_backoff_ms,
            on_progress=self.progress,
        )
        self.offsets = OffsetFinder(
            self.network,
            self.metadata,
            self.subscriptions,
            clock=self.clock,
            read_committed=self.fetch_config.read_committed,
            request_timeout_ms=config["request.timeout.ms"],
            retry_backoff_ms=self.retry_backoff_ms,
            on_progress=self.progress,
        )
        self.membership: Membership | None = make_membership(
            MemberEnvironment(
                config=config,
                client=self.network,
                metadata=self.metadata,
                subscriptions=self.subscriptions,
                clock=self.clock,
                random=random,
                metrics=self.metrics,
                interceptors=self.interceptors,
                wake=self.progress,
                call_user=call_user,
            )
        )
        self.positions = Positions(
            self.subscriptions,
            self.metadata,
            self.offsets,
            self.membership,
            clock=self.clock,
            timeout_ms=self.default_timeout_ms,
            on_progress=self.progress,
        )
        self.telemetry = ClientTelemetry.of(config, self.network, self.metrics, clock=self.clock, random=random)
        self.metadata.on_update.append(lambda cluster: self.progress())
        self.wakeup_requested = False
        self._waiters: dict[asyncio.Future[None], None] = {}  # in arrival order
        self._joining: asyncio.Task[bool] | None = None
        self._raised_version = -1
        self._starting = SharedStart(self._start)
        try:
            config.report_unused()
        except InvalidConfig:
            self.close_plugins()
            raise

    async def start(self) -> None:
        if not self._starting.is_done:
            await self._starting.wait()

    async def _start(self) -> None:
        await self.network.start()
        if self.telemetry is not None:
            self.telemetry.start()

    def deadline_ms(self, timeout_ms: int | None) -> int:
        return self.clock.monotonic_ms() + (self.default_timeout_ms if timeout_ms is None else timeout_ms)

    # Waking

    def progress(self) -> None:
        """Wakes waiting polls after an event that may concern them."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def raise_wakeup(self) -> None:
        if self.wakeup_requested:
            self.wakeup_requested = False
            raise Wakeup("wakeup() was called")

    async def _wait(self, deadline_ms: int) -> None:
        """Waits until the deadline or the next `progress`."""
        wait_ms = deadline_ms - self.clock.monotonic_ms()
        if wait_ms <= 0:
            await asyncio.sleep(0)  # a poll with timeout 0 still lets other tasks run
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters[waiter] = None
        timer = loop.call_later(wait_ms / 1000, self.progress)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.pop(waiter, None)

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits work that wakeup() may interrupt."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self.progress())
        try:
            while not task.done():
                self.raise_wakeup()
                await self._wait(self.clock.monotonic_ms() + self.default_timeout_ms)
        except BaseException:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        return task.result()

    # A poll

    async def fetch_ready(self, deadline_ms: int) -> bool:
        """The asynchronous part of a poll: True if there is something to collect or a callback to run; False at the deadline."""
        if self.subscriptions.has_no_subscription_or_user_assignment():
            raise IllegalState(NOT_SUBSCRIBED)
        while True:
            self.raise_wakeup()
            now_ms = self.clock.monotonic_ms()
            await self._update_assignment(deadline_ms)
            self._raise_problems()
            self.positions.update()
            if self.has_available_fetches() or (self.membership is not None and self.membership.callbacks_waiting):
                return True
            self.fetcher.send_fetches()
            if now_ms >= deadline_ms:
                await asyncio.sleep(0)
                return self.has_available_fetches()
            await self._wait(min(deadline_ms, now_ms + self._patience_ms(now_ms)))

    def has_available_fetches(self) -> bool:
        return len(self.buffer) > 0 and self.buffer.has_any(self.subscriptions.is_fetchable)

    def needs_loop(self, now_ms: int) -> bool:
        """Whether a poll needs the event loop and cannot be served from the buffer alone. Called in the caller's thread."""
        membership = self.membership
        if membership is not None and membership.poll(now_ms):
            return True
        return self.wakeup_requested or len(self.buffer) == 0 or not self.subscriptions.has_all_fetch_positions()

    async def _update_assignment(self, deadline_ms: int) -> None:
        membership = self.membership
        if membership is None:
            return
        if self._joining is None:
            if not membership.poll(self.clock.monotonic_ms()):
                return
            self._joining = asyncio.ensure_future(membership.join_if_needed(deadline_ms))
            self._joining.add_done_callback(lambda _: self.progress())
        joining = self._joining
        # The task is not cancelled when this poll ends: the rebalance continues, and the next poll awaits the same task.
        while not joining.done():
            self.raise_wakeup()
            await self._wait(self.clock.monotonic_ms() + self.default_timeout_ms)
        self._joining = None
        joining.result()

    def _raise_problems(self) -> None:
        self.offsets.raise_problem()
        self.fetcher.raise_problem()
        self.metadata.raise_fatal()
        if self._raised_version != self.metadata.update_version:
            self._raised_version = self.metadata.update_version
            self.metadata.raise_any()

    def _patience_ms(self, now_ms: int) -> int:
        """The longest wait before the next check without a `progress`."""
        waits = [60_000]
        if self.membership is not None:
            waits.append(self.membership.ms_to_next_poll(now_ms))
        if not self.subscriptions.has_all_fetch_positions() or not self.fetcher.has_fetch_in_flight:
            waits.append(max(1, self.retry_backoff_ms))
        retry_ms = self.fetcher.retry_in_ms()
        if retry_ms is not None:
            waits.append(max(1, retry_ms))
        return min(waits)

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Called in the caller's thread."""
        where = offset if isinstance(offset, int) else offset.offset
        if where < 0:
            raise IllegalArgument("seek offset must not be a negative number")
        epoch = -1
        if not isinstance(offset, int) and offset.leader_epoch is not None:
            epoch = offset.leader_epoch
        leader_id, leader_epoch = self.offsets.leader_of(partition)
        with self.subscriptions.lock:
            self.subscriptions.seek_unvalidated(partition, FetchPosition(where, epoch, leader_id, leader_epoch))
            self.fetcher.drop([partition])

    async def position(self, partition: TopicPartition, timeout_ms: int | None) -> int:
        if not self.subscriptions.is_assigned(partition):
            raise IllegalState("You can only check the position for partitions assigned to this consumer.")
        deadline_ms = self.deadline_ms(timeout_ms)
        while True:
            self.raise_wakeup()
            position = self.subscriptions.valid_position(partition)
            if position is not None:
                return position.offset
            self._raise_problems()
            self.positions.update()
            now_ms = self.clock.monotonic_ms()
            if now_ms >= deadline_ms:
                waited = self.default_timeout_ms if timeout_ms is None else timeout_ms
                raise self.metadata.failures.timeout(
                    f"Timeout of {waited}ms expired before the position for partition {partition} could be determined"
                )
            await self._wait(min(deadline_ms, now_ms + max(1, self.retry_backoff_ms)))

    # Subscriptions

    def subscribe(self, topics: Collection[str], listener: ConsumerRebalanceListener | None) -> None:
        self.need_group()
        if self.subscriptions.subscribe(topics, listener):
            self.metadata.set_topics(self.subscriptions.metadata_topics())
        self._subscription_changed()

    def subscribe_pattern(self, pattern: re.Pattern[str] | SubscriptionPattern, listener: ConsumerRebalanceListener | None) -> None:
        self.need_group()
        if isinstance(pattern, SubscriptionPattern):
            if not is_consumer_protocol(self.config):
                raise IllegalState(
                    "Subscribe to RE2/J pattern is not supported when using the CLASSIC protocol defined in config group.protocol"
                )
            self.subscriptions.subscribe_re2j(pattern, listener)
        else:
            self.subscriptions.subscribe_pattern(pattern, listener)
            subscriptions = self.subscriptions
            self.metadata.set_pattern(lambda topic: subscriptions.matches_subscribed_pattern(topic) or subscriptions.needs_metadata(topic))
            self.metadata.request_update()
        self._subscription_changed()

    def _subscription_changed(self) -> None:
        if self.membership is not None:
            self.membership.on_subscription_change()
        self.fetcher.send_fetches()

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        if self.membership is not None:
            await self.membership.before_assign()
        if self.subscriptions.assign_from_user(partitions):
            self.metadata.set_topics(self.subscriptions.metadata_topics())

    async def unsubscribe(self) -> None:
        await self._end_joining()
        if self.membership is not None:
            await self.membership.leave("the consumer unsubscribed from all topics")
        self.subscriptions.unsubscribe()
        self.metadata.set_topics(())
        with self.subscriptions.lock:
            self.buffer.retain(())

    async def _end_joining(self) -> None:
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
            self._joining = None

    def need_group(self) -> Membership:
        if self.membership is None:
            raise InvalidGroupId(NO_GROUP)
        return self.membership

    # Offsets

    async def commit(self, offsets: Offsets | None, timeout_ms: int | None) -> None:
        membership = self.need_group()
        offsets_to_commit = self.subscriptions.all_consumed() if offsets is None else dict(offsets)
        for partition, offset in offsets_to_commit.items():
            if offset.leader_epoch is not None:
                self.metadata.update_last_seen_epoch_if_newer(partition, offset.leader_epoch)
        with self.poll_metrics.commit_sync_time:
            await self.interruptible(membership.commit(offsets_to_commit, self.deadline_ms(timeout_ms)))

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        membership = self.need_group()
        if not partitions:
            return {}
        try:
            with self.poll_metrics.committed_time:
                offsets_by_partition = await self.interruptible(membership.fetch_committed(partitions, self.deadline_ms(timeout_ms)))
        except Timeout as error:
            waited = self.default_timeout_ms if timeout_ms is None else timeout_ms
            late = self.metadata.failures.timeout(
                f"Timeout of {waited}ms expired before the last committed offset for partitions {_listed(partitions)} could be "
                "determined. Try tuning default.api.timeout.ms larger to relax the threshold.",
                cause=error,
            )
            raise late from late.__cause__
        for partition, offset in offsets_by_partition.items():
            if offset is not None and offset.leader_epoch is not None:
                self.metadata.update_last_seen_epoch_if_newer(partition, offset.leader_epoch)
        return offsets_by_partition

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        for partition, timestamp in times.items():
            if timestamp < 0:
                raise IllegalArgument(f"The target time for partition {partition} is {timestamp}. The target time cannot be negative.")
        listed = await self._list_offsets(times, timeout_ms)
        return {partition: _with_timestamp(listed.get(partition)) for partition in times}

    async def edge_offsets(self, partitions: Iterable[TopicPartition], timestamp: int, timeout_ms: int | None) -> dict[TopicPartition, int]:
        """The first offsets (EARLIEST_TIMESTAMP) or the end offsets (LATEST_TIMESTAMP) of partitions."""
        assert timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        listed = await self._list_offsets(dict.fromkeys(partitions, timestamp), timeout_ms)
        return {partition: offset.offset for partition, offset in listed.items() if offset is not None}

    async def _list_offsets(self, times: Mapping[TopicPartition, int], timeout_ms: int | None) -> dict[TopicPartition, FoundOffset | None]:
        return await self.interruptible(self.offsets.list_offsets(times, self.deadline_ms(timeout_ms))) if times else {}

    def current_lag(self, partition: TopicPartition, on_loop: Callable[..., object]) -> int | None:
        """The lag; None while it is not known, in which case the end offset is requested."""
        read_committed = self.fetch_config.read_committed
        lag = self.subscriptions.lag(partition, read_committed=read_committed)
        if lag is None:
            state = self.subscriptions.state(partition)
            end = state.last_stable_offset if read_committed else state.high_watermark
            if end is None and not state.end_offset_requested:
                state.end_offset_requested = True
                on_loop(self.offsets.request_end_offset, partition)
        return lag

    # The cluster

    async def partitions_for(self, topic: str, timeout_ms: int | None) -> list[PartitionInfo]:
        cached = self.metadata.cluster.partitions_for_topic(topic)
        if cached:
            return list(cached)
        topics = await self.interruptible(self._topics([topic], self.deadline_ms(timeout_ms)))
        return topics.get(topic, [])

    async def list_topics(self, timeout_ms: int | None) -> dict[str, list[PartitionInfo]]:
        return await self.interruptible(self._topics(None, self.deadline_ms(timeout_ms)))

    async def _topics(self, topics: Iterable[str] | None, deadline_ms: int) -> dict[str, list[PartitionInfo]]:
        return await topic_metadata(
            self.network,
            topics,
            allow_auto_create=self.config["allow.auto.create.topics"],
            deadline_ms=deadline_ms,
            clock=self.clock,
            retry_backoff_ms=self.retry_backoff_ms,
        )

    async def client_instance_id(self, timeout_ms: int) -> Uuid:
        if self.telemetry is None:
            raise IllegalState("Telemetry is not enabled. Set config `enable.metrics.push` to `true`.")
        return await self.interruptible(self.telemetry.client_instance_id(timeout_ms))

    # The end

    async def close(self, timeout_ms: int, operation: str = DEFAULT) -> KafkaError | None:
        """Closes everything, also after errors; returns the first error."""
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        problem: KafkaError | None = None
        await self._starting.close()
        await self._end_joining()
        await self.positions.close()
        if self.membership is not None:
            try:
                await self.membership.close(deadline_ms, operation)
            except KafkaError as error:
                problem = error
        await self.offsets.close()
        await self.fetcher.close(max(0, deadline_ms - self.clock.monotonic_ms()))
        if self.telemetry is not None:
            await self.telemetry.close(max(0, deadline_ms - self.clock.monotonic_ms()))
        await self.network.close(0)
        return problem

    def close_plugins(self) -> None:
        """Closes the plug-ins of the application, in its thread."""
        self.interceptors.close()
        for deserializer in (self.key_deserializer, self.value_deserializer):
            try:
                deserializer.close()
            except Exception:
                _log.exception("Failed to close a deserializer")


def _decoding(key: Deserializer[Any], value: Deserializer[Any], check_crcs: bool, read_committed: bool) -> Decoding:
    key_how, key_call = _how(key)
    value_how, value_call = _how(value)
    return Decoding(key_how, key_call, value_how, value_call, check_crcs, read_committed)


def _how(deserializer: Deserializer[Any]) -> tuple[int, Deserialize | None]:
    if type(deserializer) is BytesDeserializer:
        return AS_BYTES, None
    if type(deserializer) is StringDeserializer and deserializer.encoding == "utf-8" and deserializer.errors == "replace":
        return AS_UTF8, None
    return BY_CALL, deserializer.deserialize


def _configured(config: ClientConfig) -> list[Any]:
    interceptors = config.instances("interceptor.classes")
    for interceptor in interceptors:
        if hasattr(interceptor, "configure"):
            interceptor.configure(config.originals(client_id=config["client.id"]))
    return interceptors


def _with_timestamp(listed: FoundOffset | None) -> OffsetAndTimestamp | None:
    return None if listed is None else OffsetAndTimestamp(listed.offset, listed.timestamp, epoch_or_none(listed.leader_epoch))


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return f"[{', '.join(str(partition) for partition in partitions)}]"
