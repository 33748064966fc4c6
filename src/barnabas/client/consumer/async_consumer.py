"""Kafka's consumer for asyncio: the calls of Java's KafkaConsumer, awaited where they may wait.

    async with AsyncConsumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, value_deserializer=bytes.decode) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            …

Calls belong to one event loop. Listeners and callbacks run on it, inside the calls that Kafka runs them in; they may be coroutines.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, overload

from barnabas.client.cluster import PartitionInfo
from barnabas.client.consumer.config import consumer_config
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.fetching.fetch_collector import Collected
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.membership import CommitCallback
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener, call_here
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
from barnabas.client.metrics.metrics import Metric, MetricName
from barnabas.client.serialization.api import GivenDeserializer
from barnabas.client.type_parameters import K, V
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

Topics = Iterable[str] | re.Pattern[str] | SubscriptionPattern

ITERATION_POLL_S = 1.0


class AsyncConsumer(Generic[K, V]):
    """Settings by Kafka's names: `AsyncConsumer({"group.id": "g"}, bootstrap_servers="…")`. Nothing is connected before the first await.

    Timeouts are seconds, or a timedelta; where one may be left out it is default.api.timeout.ms.

    K and V are the types of `record.key` and `record.value`, for type checkers. They follow from deserializers that are given as keywords;
    with those of a mapping write AsyncConsumer[str, bytes](…), otherwise they are Any. Without a deserializer both are bytes, or None.
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
        self._made_of(ConsumerCore(consumer_config(config, settings), call_here))

    @classmethod
    def of(cls, core: ConsumerCore) -> Self:
        """One whose parts are there already: with other clocks, or another chance, than the machine's."""
        consumer = cls.__new__(cls)
        consumer._made_of(core)
        return consumer

    def _made_of(self, core: ConsumerCore) -> None:
        self._core = core
        self._closed = False
        self._polling = False

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Record after record, without end; break out of it, or have it cancelled."""
        while True:
            for record in await self.poll(ITERATION_POLL_S):
                yield record

    # What to read

    def subscribe(self, topics: Topics, listener: ConsumerRebalanceListener | None = None) -> None:
        """Topics by name, by a compiled pattern that is matched here, or by a SubscriptionPattern that the broker evaluates.

        Replaces what was subscribed to before. No topics at all: see `unsubscribe`, which has to be awaited.
        """
        self._check_open()
        if isinstance(topics, re.Pattern | SubscriptionPattern):
            if not topics.pattern:
                raise IllegalArgument("Topic pattern to subscribe to cannot be empty")
            self._core.subscribe_pattern(topics, listener)
            return
        names = topics_of(topics)
        if not names:
            raise IllegalArgument("Subscribing to no topics is unsubscribing: await unsubscribe()")
        self._core.subscribe(names, listener)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions, without a group's help; none of them is the same as `unsubscribe`."""
        wanted = partitions_of(partitions)
        if not wanted:
            await self.unsubscribe()
            return
        if any(not partition.topic.strip() for partition in wanted):
            raise IllegalArgument("Topic partitions to assign to cannot have an empty topic")
        await self._start()
        await self._core.assign(wanted)

    async def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription or assignment."""
        await self._start()
        await self._core.unsubscribe()

    def subscription(self) -> set[str]:
        """The topics of the subscription, those that a pattern matches among them; empty after `assign`."""
        return set(self._core.subscriptions.subscription())

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads at present, by subscription or by `assign`."""
        return self._core.subscriptions.assigned_partitions()

    # Records

    async def poll(self, timeout: Seconds = 0) -> ConsumerRecords[K, V]:
        """Records, up to max.poll.records; waits at most so many seconds for the first of them."""
        collected = await self._poll(milliseconds(timeout), lambda: self._core.collector.collect())
        if collected is None:
            return ConsumerRecords.empty()
        return self._core.interceptors.on_consume(ConsumerRecords(collected.by_partition, collected.next_offsets))

    async def poll_arrow(self, timeout: Seconds = 0, *, max_records: int | None = None) -> list[Any]:
        """The same as Arrow record batches, each of one partition: keys and values are bytes, and no deserializer or interceptor is called.

        All batches have the schema `barnabas.client.consumer.ARROW_SCHEMA`; there are none if nothing has come. Without
        `max_records` everything that has come is returned.
        """
        from barnabas.client.consumer.fetching.arrow_fetch import ArrowTaker

        taker = ArrowTaker(check_crcs=self._core.config["check.crcs"], read_committed=self._core.fetch_config.read_committed)
        most = rows_max(max_records)
        collected = await self._poll(milliseconds(timeout), lambda: self._core.collector.collect_by(taker.take, most))
        return [] if collected is None else [batch for batches in collected.by_partition.values() for batch in batches]

    async def _poll(self, timeout_ms: int, collect: Any) -> Collected | None:
        await self._start()
        if self._polling:
            raise ConcurrentModification("Another task is in a poll of this consumer: a consumer is read by one task at a time")
        core = self._core
        now_ms = core.clock.monotonic_ms()
        deadline_ms = now_ms + timeout_ms
        core.poll_metrics.poll_began(now_ms)
        self._polling = True
        try:
            await asyncio.sleep(0)  # others get their turn, and the heartbeats, also where records are always there
            while True:
                ready = await core.fetch_ready(deadline_ms)
                if core.membership is not None:
                    core.membership.run_callbacks()
                collected: Collected = collect()
                if collected.finished:
                    core.fetcher.send_fetches()
                if not collected.is_empty:
                    return collected
                if not ready or core.clock.monotonic_ms() >= deadline_ms:
                    return None
        finally:
            self._polling = False
            core.poll_metrics.poll_ended(core.clock.monotonic_ms())

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Nothing of these is returned until `resume`."""
        self._check_open()
        self._core.subscriptions.pause(partitions_of(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Lets `poll` return records of these partitions again."""
        self._check_open()
        self._core.subscriptions.resume(partitions_of(partitions))

    def paused(self) -> set[TopicPartition]:
        """The partitions that `pause` was called for."""
        return self._core.subscriptions.paused_partitions()

    def wakeup(self) -> None:
        """Makes the poll (or wait) that goes on, or else the next one, raise Wakeup."""
        self._core.wakeup_requested = True
        self._core.progress()

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll reads the partition from this offset on. Raises IllegalState for a partition that is not assigned."""
        self._check_open()
        self._core.seek(partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """When the next poll comes, or `position` is asked for. No partitions: all that are assigned."""
        self._seek_by(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """The next poll reads these partitions from their ends on; without partitions, all that are assigned."""
        self._seek_by(LATEST, partitions)

    def _seek_by(self, strategy: OffsetReset, partitions: Iterable[TopicPartition]) -> None:
        self._check_open()
        wanted = partitions_of(partitions) or list(self._core.subscriptions.assignment)
        self._core.subscriptions.request_offset_reset(wanted, strategy)
        self._core.fetcher.drop(wanted)

    async def position(self, partition: TopicPartition, timeout: Seconds | None = None) -> int:
        """The offset of the next record a poll will return."""
        await self._start()
        return await self._core.position(partition, milliseconds_or_none(timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many records there are behind the position; None while that is not known."""
        self._check_open()
        return self._core.current_lag(partition, asyncio.get_running_loop().call_soon)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (in ms); None where there is none."""
        await self._start()
        return await self._core.offsets_for_times(times, milliseconds_or_none(timeout))

    async def beginning_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The first offset of each partition that can be read. `timeout` in seconds; default default.api.timeout.ms."""
        await self._start()
        return await self._core.edge_offsets(partitions_of(partitions), EARLIEST_TIMESTAMP, milliseconds_or_none(timeout))

    async def end_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record to be written; with read_committed, of the first of an open transaction."""
        await self._start()
        return await self._core.edge_offsets(partitions_of(partitions), LATEST_TIMESTAMP, milliseconds_or_none(timeout))

    # Commits

    async def commit_sync(self, offsets: GivenOffsets | None = None, timeout: Seconds | None = None) -> None:
        """Commits these offsets, or what the last poll returned; raises where that failed for good."""
        await self._start()
        try:
            await self._core.commit(None if offsets is None else whole_offsets(offsets), milliseconds_or_none(timeout))
        finally:
            self._run_callbacks()

    def commit_async(self, offsets: GivenOffsets | None = None, callback: CommitCallback | None = None) -> None:
        """Sends the commit and does not wait; `callback(offsets, error)` is called by a later poll or commit, in the order of commits."""
        self._check_open()
        membership = self._core.need_group()
        membership.run_callbacks()
        membership.commit_async(self._core.subscriptions.all_consumed() if offsets is None else whole_offsets(offsets), callback)

    @overload
    async def committed(self, partitions: TopicPartition, timeout: Seconds | None = None) -> OffsetAndMetadata | None: ...

    @overload
    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    async def committed(self, partitions: TopicPartition | Iterable[TopicPartition], timeout: Seconds | None = None) -> Any:
        """What the group has committed for a partition, or for each of several; None where there is nothing."""
        await self._start()
        wanted = partitions_of(partitions)
        found = await self._core.committed(wanted, milliseconds_or_none(timeout))
        return found[wanted[0]] if isinstance(partitions, TopicPartition) else found

    def _run_callbacks(self) -> None:
        if self._core.membership is not None:
            self._core.membership.run_callbacks()

    # The group and the cluster

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this is in its group, for a producer's send_offsets_to_transaction."""
        self._check_open()
        return self._core.need_group().group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """The next poll begins a rebalance."""
        self._check_open()
        self._core.need_group().enforce_rebalance(reason)

    async def partitions_for(self, topic: str, timeout: Seconds | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; none if there is no such topic."""
        await self._start()
        return await self._core.partitions_for(topic, milliseconds_or_none(timeout))

    async def list_topics(self, timeout: Seconds | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the client may see, with their partitions. `timeout` in seconds; default default.api.timeout.ms."""
        await self._start()
        return await self._core.list_topics(milliseconds_or_none(timeout))

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

    async def client_instance_id(self, timeout: Seconds) -> Uuid:
        """The id that the cluster has given this client for its metrics (KIP-714)."""
        await self._start()
        return await self._core.client_instance_id(milliseconds(timeout))

    @property
    def client_id(self) -> str:
        """The setting client.id, or the name made for it."""
        return self._core.client_id

    async def close(self, options: CloseOptions | Seconds | None = None) -> None:
        """Commits if that is automatic, leaves the group and ends the connections; in 30 seconds, or as long as is given."""
        if self._closed:
            return
        self._closed = True
        wanted = close_options(options)
        problem = await self._core.close(milliseconds(wanted.timeout), wanted.operation.value)
        self._core.close_plugins()
        if problem is not None:
            raise problem

    async def _start(self) -> None:
        self._check_open()
        await self._core.start()

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalState("This consumer has already been closed.")
