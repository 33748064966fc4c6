"""Kafka's consumer for programs with threads: the blocking methods of Java's KafkaConsumer.

    with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, value_deserializer=bytes.decode) as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            …

A network thread of its own runs the connections, fetches ahead and sends heartbeats. A poll decodes fetched records in the caller's thread,
and hands over to the network thread only if nothing is buffered. One thread at a time may call, except `wakeup()`. Listeners, callbacks,
interceptors and deserializers run in the caller's thread, inside the same calls as in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from inspect import isawaitable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, overload

from barnabas.client.cluster import PartitionInfo
from barnabas.client.consumer.async_consumer import ITERATION_POLL_S, Topics
from barnabas.client.consumer.config import consumer_config
from barnabas.client.consumer.core import NOT_SUBSCRIBED, ConsumerCore
from barnabas.client.consumer.fetching.fetch_collector import Collected
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.membership import CommitCallback
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import GivenOffsets, OffsetAndMetadata, whole_offsets
from barnabas.client.consumer.offsets.offset_reset import EARLIEST, EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, AutoOffsetResetStrategy
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern
from barnabas.client.consumer.options import (
    CloseOptions,
    Seconds,
    close_options,
    milliseconds,
    milliseconds_or_none,
    partitions_of,
    rows_max,
    topics_of,
)
from barnabas.client.consumer.record import ConsumerRecord, ConsumerRecords, OffsetAndTimestamp
from barnabas.client.errors import ConcurrentModification, IllegalArgument, IllegalState
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.metrics.observed_client import ConnectionErrors, ObservedClient
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.serialization.api import GivenDeserializer
from barnabas.client.type_parameters import K, V
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Consumer(ObservedClient, Generic[K, V]):
    """Settings by Kafka's names: `Consumer({"group.id": "g"}, bootstrap_servers="…")`.

    Timeouts are seconds or a timedelta; an omitted timeout is default.api.timeout.ms.

    K and V are the types of `record.key` and `record.value`, for type checkers. They follow from deserializers given as keyword arguments;
    with deserializers in a mapping write Consumer[str, bytes](…), otherwise they are Any. Without a deserializer both are bytes or None.
    """

    @overload
    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        /,
        *,
        key_deserializer: GivenDeserializer[K] | None = None,
        value_deserializer: GivenDeserializer[V] | None = None,
        **settings: object,
    ) -> None: ...

    @overload
    def __init__(self, config: Mapping[str, object] | None = None, /, **settings: object) -> None: ...

    def __init__(self, config: Mapping[str, object] | None = None, /, **settings: object) -> None:
        checked = consumer_config(config, settings)
        self._thread = LoopThread(f"barnabas-consumer-{checked['client.id']}")
        self._caller = _Caller(self._thread)
        try:
            self._core = ConsumerCore(checked, self._caller.call_user)
        except BaseException:
            self._thread.close()
            raise
        self._guard = _SingleThreadGuard()
        self._thread.start()
        # A consumer that is never closed ends with its last reference, or with the program, as if its process had died.
        self._abandoned = weakref.finalize(self, _abandon, self._thread)
        try:
            self._thread.run(self._core.start())
        except BaseException:
            self._abandoned.detach()
            self._thread.close()
            self._core.close_plugins()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Yields records without end; leave the loop with break or by `wakeup`."""
        while True:
            yield from self.poll(ITERATION_POLL_S)

    # What to read

    def subscribe(self, topics: Topics, listener: ConsumerRebalanceListener | None = None) -> None:
        """Subscribes to topics by name, by a compiled pattern that the client matches, or by a SubscriptionPattern that the broker
        evaluates.

        Replaces the previous subscription. No topics is the same as `unsubscribe`.
        """
        with self._guard:
            if isinstance(topics, re.Pattern | SubscriptionPattern):
                if not topics.pattern:
                    raise IllegalArgument("Topic pattern to subscribe to cannot be empty")
                self._on_loop(self._core.subscribe_pattern, topics, listener)
                return
            names = topics_of(topics)
            if names:
                self._on_loop(self._core.subscribe, names, listener)
            else:
                self._core.need_group()
                self._caller.run(self._core.unsubscribe())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assigns partitions to this consumer without group management; no partitions is the same as `unsubscribe`."""
        with self._guard:
            partition_list = partitions_of(partitions)
            if any(not partition.topic.strip() for partition in partition_list):
                raise IllegalArgument("Topic partitions to assign to cannot have an empty topic")
            self._caller.run(self._core.assign(partition_list) if partition_list else self._core.unsubscribe())

    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription or assignment."""
        with self._guard:
            self._caller.run(self._core.unsubscribe())

    def subscription(self) -> set[str]:
        """The topics of the subscription, those that a pattern matches among them; empty after `assign`."""
        with self._guard:
            return set(self._core.subscriptions.subscription())

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads at present, by subscription or by `assign`."""
        with self._guard:
            return self._core.subscriptions.assigned_partitions()

    # Records

    def poll(self, timeout: Seconds = 0) -> ConsumerRecords[K, V]:
        """Records, up to max.poll.records; waits at most `timeout` seconds for the first of them."""
        core = self._core
        collected = self._poll(timeout, core.collector.collect)
        if collected is None:
            return ConsumerRecords.empty()
        records: ConsumerRecords[K, V] = ConsumerRecords(collected.by_partition, collected.next_offsets)
        return core.interceptors.on_consume(records) if core.interceptors else records

    def poll_arrow(self, timeout: Seconds = 0, *, max_records: int | None = None) -> list[Any]:
        """Records as Arrow record batches, each of one partition: keys and values are bytes, and no deserializer or interceptor is called.

        All batches have the schema `barnabas.client.consumer.ARROW_SCHEMA`. The list is empty if nothing was fetched. Without `max_records`
        it contains everything that was fetched.
        """
        from barnabas.client.consumer.fetching.arrow_fetch import ArrowTaker

        taker = ArrowTaker(check_crcs=self._core.config["check.crcs"], read_committed=self._core.fetch_config.read_committed)
        most = rows_max(max_records)
        collected = self._poll(timeout, lambda: self._core.collector.collect_by(taker.take, most))
        return [] if collected is None else [batch for batches in collected.by_partition.values() for batch in batches]

    def _poll(self, timeout: Seconds, collect: Callable[[], Collected]) -> Collected | None:
        with self._guard:
            core = self._core
            now_ms = core.clock.monotonic_ms()
            core.poll_metrics.poll_began(now_ms)
            try:
                if core.subscriptions.has_no_subscription_or_user_assignment():
                    raise IllegalState(NOT_SUBSCRIBED)
                if not core.needs_loop(now_ms):
                    collected = self._collect(collect)
                    if not collected.is_empty:
                        return collected
                return self._wait_and_collect(now_ms + milliseconds(timeout), collect)
            finally:
                core.poll_metrics.poll_ended(core.clock.monotonic_ms())

    def _wait_and_collect(self, deadline_ms: int, collect: Callable[[], Collected]) -> Collected | None:
        core = self._core
        while True:
            ready = self._caller.run(core.fetch_ready(deadline_ms))
            self._run_callbacks()
            collected = self._collect(collect)
            if not collected.is_empty:
                return collected
            if not ready or core.clock.monotonic_ms() >= deadline_ms:
                return None

    def _collect(self, collect: Callable[[], Collected]) -> Collected:
        collected = collect()
        if collected.finished:
            self._thread.call_soon(self._core.fetcher.send_fetches)
        return collected

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Returns no records of these partitions until `resume`."""
        with self._guard:
            self._core.subscriptions.pause(partitions_of(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Lets `poll` return records of these partitions again."""
        with self._guard:
            self._core.subscriptions.resume(partitions_of(partitions))

    def paused(self) -> set[TopicPartition]:
        """The partitions that `pause` was called for."""
        with self._guard:
            return self._core.subscriptions.paused_partitions()

    def wakeup(self) -> None:
        """Makes the call that waits, or else the next one, raise Wakeup. May be called from any thread."""
        self._core.wakeup_requested = True
        with suppress(IllegalState):  # closed: no call waits
            self._thread.call_soon(self._core.progress)

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll reads the partition from this offset on. Raises IllegalState for a partition that is not assigned."""
        with self._guard:
            self._core.seek(partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Seeks at the next poll or `position`. No partitions means all assigned partitions."""
        self._seek_by(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """The next poll reads these partitions from their ends on; without partitions, all that are assigned."""
        self._seek_by(LATEST, partitions)

    def _seek_by(self, strategy: AutoOffsetResetStrategy, partitions: Iterable[TopicPartition]) -> None:
        with self._guard:
            partition_list = partitions_of(partitions) or list(self._core.subscriptions.assignment)
            self._core.subscriptions.request_offset_reset(partition_list, strategy)
            self._core.fetcher.drop(partition_list)

    def position(self, partition: TopicPartition, timeout: Seconds | None = None) -> int:
        """The offset of the next record that a poll will return."""
        with self._guard:
            position = self._core.subscriptions.valid_position(partition) if self._core.subscriptions.is_assigned(partition) else None
            if position is not None:
                return position.offset
            return self._caller.run(self._core.position(partition, milliseconds_or_none(timeout)))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """The number of records after the position; None while it is not known."""
        with self._guard:
            return self._core.current_lag(partition, self._thread.call_soon)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp (in ms); None if there is none."""
        with self._guard:
            return self._caller.run(self._core.offsets_for_times(times, milliseconds_or_none(timeout)))

    def beginning_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The first offset of each partition that can be read. `timeout` in seconds; default default.api.timeout.ms."""
        with self._guard:
            return self._caller.run(self._core.edge_offsets(partitions_of(partitions), EARLIEST_TIMESTAMP, milliseconds_or_none(timeout)))

    def end_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record to be written; with read_committed, the last stable offset."""
        with self._guard:
            return self._caller.run(self._core.edge_offsets(partitions_of(partitions), LATEST_TIMESTAMP, milliseconds_or_none(timeout)))

    # Commits

    def commit_sync(self, offsets: GivenOffsets | None = None, timeout: Seconds | None = None) -> None:
        """Commits these offsets, or the positions after the last poll; raises an error that is not retriable."""
        with self._guard:
            try:
                self._caller.run(self._core.commit(None if offsets is None else whole_offsets(offsets), milliseconds_or_none(timeout)))
            finally:
                self._run_callbacks()

    def commit_async(self, offsets: GivenOffsets | None = None, callback: CommitCallback | None = None) -> None:
        """Sends the commit without waiting; a later poll or commit calls `callback(offsets, error)`, in the order of the commits."""
        with self._guard:
            membership = self._core.need_group()
            membership.run_callbacks()
            offsets_to_commit = self._core.subscriptions.all_consumed() if offsets is None else whole_offsets(offsets)
            self._thread.call_soon(membership.commit_async, offsets_to_commit, callback)

    @overload
    def committed(self, partitions: TopicPartition, timeout: Seconds | None = None) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(self, partitions: TopicPartition | Iterable[TopicPartition], timeout: Seconds | None = None) -> Any:
        """The committed offset of a partition, or of each of several partitions; None if there is none."""
        with self._guard:
            partition_list = partitions_of(partitions)
            committed_offsets = self._caller.run(self._core.committed(partition_list, milliseconds_or_none(timeout)))
            return committed_offsets[partition_list[0]] if isinstance(partitions, TopicPartition) else committed_offsets

    def _run_callbacks(self) -> None:
        membership = self._core.membership
        if membership is not None:
            membership.run_callbacks()

    # The group and the cluster

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group metadata of this member, for a producer's send_offsets_to_transaction."""
        with self._guard:
            return self._core.need_group().group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Starts a rebalance at the next poll."""
        with self._guard:
            self._on_loop(self._core.need_group().enforce_rebalance, reason)

    def partitions_for(self, topic: str, timeout: Seconds | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; an empty list if there is no such topic."""
        with self._guard:
            return self._caller.run(self._core.partitions_for(topic, milliseconds_or_none(timeout)))

    def list_topics(self, timeout: Seconds | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the client may see, with their partitions. `timeout` in seconds; default default.api.timeout.ms."""
        with self._guard:
            return self._caller.run(self._core.list_topics(milliseconds_or_none(timeout)))

    def _observed(self) -> tuple[Metrics, ClientTelemetry | None, ConnectionErrors]:
        return self._core.metrics, self._core.telemetry, self._core.metadata.failures

    def client_instance_id(self, timeout: Seconds) -> Uuid:
        """The id that the cluster assigned to this client for its metrics (KIP-714)."""
        with self._guard:
            return self._caller.run(self._core.client_instance_id(milliseconds(timeout)))

    @property
    def client_id(self) -> str:
        """The setting client.id, or the name made for it."""
        return self._core.client_id

    def close(self, options: CloseOptions | Seconds | None = None) -> None:
        """Commits if enable.auto.commit is set, leaves the group and closes the connections; within 30 seconds, or the given timeout."""
        if self._guard.closed:
            return
        with self._guard:
            close_settings = close_options(options)
            try:
                problem = self._caller.run(self._core.close(milliseconds(close_settings.timeout), close_settings.operation.value))
                self._run_callbacks()
            finally:
                self._guard.closed = True
                self._abandoned.detach()
                self._thread.close()
                self._core.close_plugins()
            if problem is not None:
                raise problem

    # Inside

    def _on_loop(self, function: Callable[..., T], *arguments: object) -> T:
        async def call() -> T:
            return function(*arguments)

        return self._caller.run(call())


def _abandon(thread: LoopThread) -> None:
    _log.warning("A consumer was not closed: its group waits for it until its session times out (%s)", thread.name)
    thread.close(timeout=0)


class _SingleThreadGuard:
    """Held during a call. Calls from within it may enter again. A second thread does not wait: it gets an error."""

    __slots__ = ("_lock", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ConcurrentModification(
                f"Consumer is not safe for multi-threaded access: thread {threading.current_thread().name} called it during a call of "
                "another thread; only wakeup() may be called from any thread"
            )
        if self.closed:
            self._lock.release()
            raise IllegalState("This consumer has already been closed.")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _ListenerCall:
    """A function of the application, with the future of its result."""

    __slots__ = ("_function", "_loop", "done")

    def __init__(self, function: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
        self._function = function
        self._loop = loop
        self.done: asyncio.Future[None] = loop.create_future()

    def run(self) -> None:
        try:
            if isawaitable(self._function()):
                raise IllegalState("A listener of a blocking Consumer cannot be a coroutine: use an AsyncConsumer")
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._set_outcome, error)
        else:
            self._loop.call_soon_threadsafe(self._set_outcome, None)

    def _set_outcome(self, error: BaseException | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class _Caller:
    """Runs coroutines on the event loop for a waiting thread, and runs in that thread the application functions that they call.

    Such a function may call the consumer again, and so enter `run` again. A function that is queued while no thread waits runs in the next
    call.
    """

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._jobs: SimpleQueue[_ListenerCall | None] = SimpleQueue()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        jobs = self._jobs
        future = self._thread.submit(work)
        future.add_done_callback(lambda _: jobs.put(None))
        try:
            while not future.done():
                job = jobs.get()
                if job is not None:
                    job.run()
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def call_user(self, function: Callable[[], object]) -> None:
        """The CallUser of a blocking consumer; called on the event loop."""
        job = _ListenerCall(function, asyncio.get_running_loop())
        self._jobs.put(job)
        await job.done
