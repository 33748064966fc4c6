"""Kafka's consumer for asyncio: the methods of Java's KafkaConsumer, as coroutines where they may wait.

    async with AsyncConsumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, value_deserializer=bytes.decode) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            …

All calls belong to one event loop. Listeners and callbacks run on it, inside the same calls as in Kafka; they may be coroutines.
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
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.metrics.observed_client import ConnectionErrors, ObservedClient
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.serialization.api import GivenDeserializer
from barnabas.client.type_parameters import K, V
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

Topics = Iterable[str] | re.Pattern[str] | SubscriptionPattern

ITERATION_POLL_S = 1.0


class AsyncConsumer(ObservedClient, Generic[K, V]):
    """Settings by Kafka's names: `AsyncConsumer({"group.id": "g"}, bootstrap_servers="…")`. The consumer connects at the first await.

    Timeouts are seconds or a timedelta; an omitted timeout is default.api.timeout.ms.

    K and V are the types of `record.key` and `record.value`, for type checkers. They follow from deserializers given as keyword arguments;
    with deserializers in a mapping write AsyncConsumer[str, bytes](…), otherwise they are Any. Without a deserializer both are bytes or
    None.
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
        """A consumer with the given core, for example one with a simulated clock and random source."""
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
        """Yields records without end; leave the loop with break or by cancelling the task."""
        while True:
            for record in await self.poll(ITERATION_POLL_S):
                yield record

    # What to read

    def subscribe(self, topics: Topics, listener: ConsumerRebalanceListener | None = None) -> None:
        """Subscribes to topics by name, by a compiled pattern that the client matches, or by a SubscriptionPattern that the broker
        evaluates.

        Replaces the previous subscription. To subscribe to no topics, await `unsubscribe`.
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
        """Assigns partitions to this consumer without group management; no partitions is the same as `unsubscribe`."""
        partition_list = partitions_of(partitions)
        if not partition_list:
            await self.unsubscribe()
            return
        if any(not partition.topic.strip() for partition in partition_list):
            raise IllegalArgument("Topic partitions to assign to cannot have an empty topic")
        await self._start()
        await self._core.assign(partition_list)

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
        """Records, up to max.poll.records; waits at most `timeout` seconds for the first of them."""
        collected = await self._poll(milliseconds(timeout), lambda: self._core.collector.collect())
        if collected is None:
            return ConsumerRecords.empty()
        return self._core.interceptors.on_consume(ConsumerRecords(collected.by_partition, collected.next_offsets))

    async def poll_arrow(self, timeout: Seconds = 0, *, max_records: int | None = None) -> list[Any]:
        """Records as Arrow record batches, each of one partition: keys and values are bytes, and no deserializer or interceptor is called.

        All batches have the schema `barnabas.client.consumer.ARROW_SCHEMA`. The list is empty if nothing was fetched. Without `max_records`
        it contains everything that was fetched.
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
            await asyncio.sleep(0)  # lets other tasks and the heartbeats run, also when records are always available
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
        """Returns no records of these partitions until `resume`."""
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
        """Makes the current poll (or wait), or else the next one, raise Wakeup."""
        self._core.wakeup_requested = True
        self._core.progress()

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll reads the partition from this offset on. Raises IllegalState for a partition that is not assigned."""
        self._check_open()
        self._core.seek(partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Seeks at the next poll or `position`. No partitions means all assigned partitions."""
        self._seek_by(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """The next poll reads these partitions from their ends on; without partitions, all that are assigned."""
        self._seek_by(LATEST, partitions)

    def _seek_by(self, strategy: AutoOffsetResetStrategy, partitions: Iterable[TopicPartition]) -> None:
        self._check_open()
        partition_list = partitions_of(partitions) or list(self._core.subscriptions.assignment)
        self._core.subscriptions.request_offset_reset(partition_list, strategy)
        self._core.fetcher.drop(partition_list)

    async def position(self, partition: TopicPartition, timeout: Seconds | None = None) -> int:
        """The offset of the next record that a poll will return."""
        await self._start()
        return await self._core.position(partition, milliseconds_or_none(timeout))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """The number of records after the position; None while it is not known."""
        self._check_open()
        return self._core.current_lag(partition, asyncio.get_running_loop().call_soon)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp (in ms); None if there is none."""
        await self._start()
        return await self._core.offsets_for_times(times, milliseconds_or_none(timeout))

    async def beginning_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The first offset of each partition that can be read. `timeout` in seconds; default default.api.timeout.ms."""
        await self._start()
        return await self._core.edge_offsets(partitions_of(partitions), EARLIEST_TIMESTAMP, milliseconds_or_none(timeout))

    async def end_offsets(self, partitions: Iterable[TopicPartition], timeout: Seconds | None = None) -> dict[TopicPartition, int]:
        """The offset of the next record to be written; with read_committed, the last stable offset."""
        await self._start()
        return await self._core.edge_offsets(partitions_of(partitions), LATEST_TIMESTAMP, milliseconds_or_none(timeout))

    # Commits

    async def commit_sync(self, offsets: GivenOffsets | None = None, timeout: Seconds | None = None) -> None:
        """Commits these offsets, or the positions after the last poll; raises an error that is not retriable."""
        await self._start()
        try:
            await self._core.commit(None if offsets is None else whole_offsets(offsets), milliseconds_or_none(timeout))
        finally:
            self._run_callbacks()

    def commit_async(self, offsets: GivenOffsets | None = None, callback: CommitCallback | None = None) -> None:
        """Sends the commit without waiting; a later poll or commit calls `callback(offsets, error)`, in the order of the commits."""
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
        """The committed offset of a partition, or of each of several partitions; None if there is none."""
        await self._start()
        partition_list = partitions_of(partitions)
        offsets = await self._core.committed(partition_list, milliseconds_or_none(timeout))
        return offsets[partition_list[0]] if isinstance(partitions, TopicPartition) else offsets

    def _run_callbacks(self) -> None:
        if self._core.membership is not None:
            self._core.membership.run_callbacks()

    # The group and the cluster

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group metadata of this member, for a producer's send_offsets_to_transaction."""
        self._check_open()
        return self._core.need_group().group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Starts a rebalance at the next poll."""
        self._check_open()
        self._core.need_group().enforce_rebalance(reason)

    async def partitions_for(self, topic: str, timeout: Seconds | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; an empty list if there is no such topic."""
        await self._start()
        return await self._core.partitions_for(topic, milliseconds_or_none(timeout))

    async def list_topics(self, timeout: Seconds | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the client may see, with their partitions. `timeout` in seconds; default default.api.timeout.ms."""
        await self._start()
        return await self._core.list_topics(milliseconds_or_none(timeout))

    def _observed(self) -> tuple[Metrics, ClientTelemetry | None, ConnectionErrors]:
        return self._core.metrics, self._core.telemetry, self._core.metadata.failures

    async def client_instance_id(self, timeout: Seconds) -> Uuid:
        """The id that the cluster assigned to this client for its metrics (KIP-714)."""
        await self._start()
        return await self._core.client_instance_id(milliseconds(timeout))

    @property
    def client_id(self) -> str:
        """The setting client.id, or the name made for it."""
        return self._core.client_id

    async def close(self, options: CloseOptions | Seconds | None = None) -> None:
        """Commits if enable.auto.commit is set, leaves the group and closes the connections; within 30 seconds, or the given timeout."""
        if self._closed:
            return
        self._closed = True
        close_settings = close_options(options)
        problem = await self._core.close(milliseconds(close_settings.timeout), close_settings.operation.value)
        self._core.close_plugins()
        if problem is not None:
            raise problem

    async def _start(self) -> None:
        self._check_open()
        await self._core.start()

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalState("This consumer has already been closed.")
