"""Kafka's consumer for programs with threads: the calls of Java's KafkaConsumer, each of which returns when it is done.

    with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, value_deserializer=bytes.decode) as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            …

A thread of its own runs the network, fetches ahead and keeps the membership alive. A poll takes what has come in the caller's thread, and
goes to that thread only when there is nothing. One thread at a time may call, except `wakeup()`. Listeners, callbacks, interceptors and
deserializers run in the caller's thread, inside the calls that Kafka runs them in.
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
from barnabas.client.consumer.offsets.offset_reset import EARLIEST, EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, OffsetReset
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
from barnabas.client.errors import ConcurrentModification, IllegalArgument, IllegalState, KafkaError
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics.metrics import Metric, MetricName
from barnabas.client.serialization.api import GivenDeserializer
from barnabas.client.type_parameters import K, V
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Consumer(Generic[K, V]):
    """Settings by Kafka's names: `Consumer({"group.id": "g"}, bootstrap_servers="…")`.

    Timeouts are seconds, or a timedelta; where one may be left out it is default.api.timeout.ms.

    K and V are the types of `record.key` and `record.value`, for type checkers. They follow from deserializers that are given as keywords;
    with those of a mapping write Consumer[str, bytes](…), otherwise they are Any. Without a deserializer a key or value is bytes, or None.
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
        self._alone = _Alone()
        self._thread.start()
        # One that nobody closes ends with its last reference, or with the program: as if its process had died.
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
        """Record after record, without end; break out of it, or wake it up."""
        while True:
            yield from self.poll(ITERATION_POLL_S)

    # What to read

    def subscribe(self, topics: Topics, listener: ConsumerRebalanceListener | None = None) -> None:
        """Topics by name, by a compiled pattern that is matched here, or by a SubscriptionPattern that the broker evaluates.

        Replaces what was subscribed to before. No topics at all is the same as `unsubscribe`.
        """
        with self._alone:
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
        """These partitions, without a group's help; none of them is the same as `unsubscribe`."""
        with self._alone:
            wanted = partitions_of(partitions)
            if any(not partition.topic.strip() for partition in wanted):
                raise IllegalArgument("Topic partitions to assign to cannot have an empty topic")
            self._caller.run(self._core.assign(wanted) if wanted else self._core.unsubscribe())

    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription or assignment."""
        with self._alone:
            self._caller.run(self._core.unsubscribe())

    def subscription(self) -> set[str]:
        """The topics of the subscription, those that a pattern matches among them; empty after `assign`."""
        with self._alone:
            return set(self._core.subscriptions.subscription())

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads at present, by subscription or by `assign`."""
        with self._alone:
            return self._core.subscriptions.assigned_partitions()

    # Records

    def poll(self, timeout: Seconds = 0) -> ConsumerRecords[K, V]:
        """Records, up to max.poll.records; waits at most so many seconds for the first of them."""
        core = self._core
        collected = self._poll(timeout, core.collector.collect)
        if collected is None:
            return ConsumerRecords.empty()
        records: ConsumerRecords[K, V] = ConsumerRecords(collected.by_partition, collected.next_offsets)
        return core.interceptors.on_consume(records) if core.interceptors else records

    def poll_arrow(self, timeout: Seconds = 0, *, max_records: int | None = None) -> list[Any]:
        """The same as Arrow record batches, each of one partition: keys and values are bytes, and no deserializer or interceptor is called.

        All batches have the schema `barnabas.client.consumer.ARROW_SCHEMA`; there are none if nothing has come. Without
        `max_records` everything that has come is returned.
        """
        from barnabas.client.consumer.fetching.arrow_fetch import ArrowTaker

        taker = ArrowTaker(check_crcs=self._core.config["check.crcs"], read_committed=self._core.fetch_config.read_committed)
        most = rows_max(max_records)
        collected = self._poll(timeout, lambda: self._core.collector.collect_by(taker.take, most))
        return [] if collected is None else [batch for batches in collected.by_partition.values() for batch in batches]

    def _poll(self, timeout: Seconds, collect: Callable[[], Collected]) -> Collected | None:
        with self._alone:
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
        """Nothing of these is returned until `resume`."""
        with self._alone:
            self._core.subscriptions.pause(partitions_of(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Lets `poll` return records of these partitions again."""
        with self._alone:
            self._core.subscriptions.resume(partitions_of(partitions))

    def paused(self) -> set[TopicPartition]:
        """The partitions that `pause` was called for."""
        with self._alone:
            return self._core.subscriptions.paused_partitions()

    def wakeup(self) -> None:
        """Makes the call that waits, or else the next one, raise Wakeup. From any thread."""
        self._core.wakeup_requested = True
        with suppress(IllegalState):  # closed: nobody waits
            self._thread.call_soon(self._core.progress)

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll reads the partition from this offset on. Raises IllegalState for a partition that is not assigned."""
        with self._alone:
            self._core.seek(partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """When the next poll comes, or `position` is asked for. No partitions: all that are assigned."""
        self._seek_by(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """The next poll reads these partitions from their ends on; without partitions, all that are assigned."""
        self._seek_by(LATEST, partitions)

    def _seek_by(self, strategy: OffsetReset, partitions: Iterable[TopicPartition]) -> None:
        with self._alone:
            wanted = partitions_of(partitions) or list(self._core.subscriptions.assignment)
            self._core.subscriptions.request_offset_reset(wanted, strategy)
            self._core.fetcher.drop(wanted)

    def position(self, partition: TopicPartition, timeout: Seconds | None = None) -> int:
        """The offset of the next record a poll will return."""
        with self._alone:
            found = self._core.subscriptions.valid_position(partition) if self._core.subscriptions.is_assigned(partition) else None
            if found is not None:
                return found.offset
            return self._caller.run(self._core.position(partition, milliseconds_or_none(timeout)))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many records there are behind the position; None while that is not known."""
        with self._alone:
            return self._core.current_lag(partition, self._thread.call_soon)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (in ms); None where there is none."""
        with self._alone:
            return self._caller.run(self._core.offsets_for_times(times, milliseconds_or_none(timeout)))

    def beginning_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The first offset of each partition that can be read. `timeout` in seconds; default default.api.timeout.ms."""
        with self._alone:
            return self._caller.run(self._core.edge_offsets(partitions_of(partitions), EARLIEST_TIMESTAMP, milliseconds_or_none(timeout)))

    def end_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record to be written; with read_committed, of the first of an open transaction."""
        with self._alone:
            return self._caller.run(self._core.edge_offsets(partitions_of(partitions), LATEST_TIMESTAMP, milliseconds_or_none(timeout)))

    # Commits

    def commit_sync(self, offsets: GivenOffsets | None = None, timeout: Seconds | None = None) -> None:
        """Commits these offsets, or what the last poll returned; raises where that failed for good."""
        with self._alone:
            try:
                self._caller.run(self._core.commit(None if offsets is None else whole_offsets(offsets), milliseconds_or_none(timeout)))
            finally:
                self._run_callbacks()

    def commit_async(self, offsets: GivenOffsets | None = None, callback: CommitCallback | None = None) -> None:
        """Sends the commit and does not wait; `callback(offsets, error)` is called by a later poll or commit, in the order of commits."""
        with self._alone:
            membership = self._core.need_group()
            membership.run_callbacks()
            given = self._core.subscriptions.all_consumed() if offsets is None else whole_offsets(offsets)
            self._thread.call_soon(membership.commit_async, given, callback)

    @overload
    def committed(self, partitions: TopicPartition, timeout: Seconds | None = None) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(self, partitions: TopicPartition | Iterable[TopicPartition], timeout: Seconds | None = None) -> Any:
        """What the group has committed for a partition, or for each of several; None where there is nothing."""
        with self._alone:
            wanted = partitions_of(partitions)
            found = self._caller.run(self._core.committed(wanted, milliseconds_or_none(timeout)))
            return found[wanted[0]] if isinstance(partitions, TopicPartition) else found

    def _run_callbacks(self) -> None:
        membership = self._core.membership
        if membership is not None:
            membership.run_callbacks()

    # The group and the cluster

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this is in its group, for a producer's send_offsets_to_transaction."""
        with self._alone:
            return self._core.need_group().group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """The next poll begins a rebalance."""
        with self._alone:
            self._on_loop(self._core.need_group().enforce_rebalance, reason)

    def partitions_for(self, topic: str, timeout: Seconds | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; none if there is no such topic."""
        with self._alone:
            return self._caller.run(self._core.partitions_for(topic, milliseconds_or_none(timeout)))

    def list_topics(self, timeout: Seconds | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the client may see, with their partitions. `timeout` in seconds; default default.api.timeout.ms."""
        with self._alone:
            return self._caller.run(self._core.list_topics(milliseconds_or_none(timeout)))

    def last_connection_error(self) -> KafkaError | None:
        """Why a broker could not be reached: the last failure of an address that has not been connected to since. None if there is none.

        Every Timeout of this client has it as its cause. `poll` raises no Timeout: a consumer that reads nothing may look here.
        """
        return self._core.metadata.failures.last()

    def metrics(self) -> dict[MetricName, Metric]:
        """The metrics of this consumer, by name. `metric.value()` measures at the time of the call."""
        return self._core.metrics.all()

    def register_metric_for_subscription(self, metric: Metric) -> None:
        """Has a metric of the application pushed with the client's own, where the cluster subscribes to it (KIP-1076).

        `Metric.of(MetricName("queue-length", "app-metrics"), lambda: len(queue))` is org.apache.kafka.app.queue.length to the cluster. One
        whose name is that of a metric of the client is passed over; so is everything with enable.metrics.push=false.
        """
        if self._core.telemetry is not None:
            self._core.telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: Metric) -> None:
        """It is not pushed any more."""
        if self._core.telemetry is not None:
            self._core.telemetry.unregister(metric)

    def client_instance_id(self, timeout: Seconds) -> Uuid:
        """The id that the cluster has given this client for its metrics (KIP-714)."""
        with self._alone:
            return self._caller.run(self._core.client_instance_id(milliseconds(timeout)))

    @property
    def client_id(self) -> str:
        """The setting client.id, or the name made for it."""
        return self._core.client_id

    def close(self, options: CloseOptions | Seconds | None = None) -> None:
        """Commits if that is automatic, leaves the group and ends the connections; in 30 seconds, or as long as is given."""
        if self._alone.closed:
            return
        with self._alone:
            wanted = close_options(options)
            try:
                problem = self._caller.run(self._core.close(milliseconds(wanted.timeout), wanted.operation.value))
                self._run_callbacks()
            finally:
                self._alone.closed = True
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


class _Alone:
    """Held during a call, and again by calls from within it. A second thread does not wait: it is refused."""

    __slots__ = ("_lock", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ConcurrentModification(
                f"Consumer is not safe for multi-threaded access: thread {threading.current_thread().name} called it during a call of "
                "another thread; only wakeup() may come from anywhere"
            )
        if self.closed:
            self._lock.release()
            raise IllegalState("This consumer has already been closed.")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Job:
    """A function of the application, and where its result is awaited."""

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
            self._loop.call_soon_threadsafe(self._tell, error)
        else:
            self._loop.call_soon_threadsafe(self._tell, None)

    def _tell(self, error: BaseException | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class _Caller:
    """Runs coroutines on the loop for a thread that waits, and in that thread the functions of the application which they call.

    A function may call the consumer again, and so come here again. One that is wanted while nobody waits is run by the next call that does.
    """

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()

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
        """The CallUser of a blocking consumer; on the loop."""
        job = _Job(function, asyncio.get_running_loop())
        self._jobs.put(job)
        await job.done
