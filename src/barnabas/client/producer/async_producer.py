"""The producer for asyncio: Java's KafkaProducer with coroutines instead of blocking methods.

    async with AsyncProducer({"bootstrap.servers": "localhost:9092"}) as producer:
        delivery = await producer.send("topic", b"value", key=b"key")
        metadata = await delivery

`send` waits only where Java's blocks: for metadata, and for memory of buffer.memory. The producer belongs to the event loop of its first
use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Generic, overload

from barnabas.client.cluster import PartitionInfo
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import GivenOffsets, whole_offsets
from barnabas.client.errors import IllegalArgument, SendFailed
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.metrics.observed_client import ConnectionErrors, ObservedClient
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.producer.batch import Callback, Delivery
from barnabas.client.producer.core import ProducerCore, check_group
from barnabas.client.producer.record import GivenHeaders, ProducerRecord, RecordMetadata
from barnabas.client.producer.send_path import Outgoing
from barnabas.client.producer.transactions.transaction_requests import TransactionResult
from barnabas.client.serialization.api import GivenSerializer
from barnabas.client.shared_start import SharedStart
from barnabas.client.type_parameters import K, V
from barnabas.errors import KafkaError
from barnabas.uuid import Uuid

logger = logging.getLogger(__name__)


class AsyncProducer(ObservedClient, Generic[K, V]):
    """Settings by Kafka's names, in a mapping or as keywords with `_` for `.`: AsyncProducer(bootstrap_servers="localhost:9092").

    K and V are the types of the key and value of `send`, for type checkers. They follow from serializers given as keyword arguments; with
    serializers in a mapping write AsyncProducer[str, bytes](…), otherwise they are Any. Without a serializer both are bytes or None.
    """

    @overload
    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        /,
        *,
        key_serializer: GivenSerializer[K] | None = None,
        value_serializer: GivenSerializer[V] | None = None,
        **settings: object,
    ) -> None: ...

    @overload
    def __init__(self, config: Mapping[str, object] | None = None, /, **settings: object) -> None: ...

    def __init__(self, config: Mapping[str, object] | None = None, /, **settings: object) -> None:
        self._made_of(ProducerCore(config, settings))

    @classmethod
    def of(cls, core: ProducerCore) -> AsyncProducer[K, V]:
        """A producer with the given core, for example one with a simulated clock and random source."""
        producer = cls.__new__(cls)
        producer._made_of(core)
        return producer

    def _made_of(self, core: ProducerCore) -> None:
        self._core = core
        self._starting = SharedStart(self._start)
        self._closed = False

    async def start(self) -> None:
        """Starts to connect. Optional: the first call of another method does it."""
        await self._starting.wait()

    async def _start(self) -> None:
        await self._core.start(asyncio.get_running_loop().call_soon)

    async def __aenter__(self) -> AsyncProducer[K, V]:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes. An exception of the block propagates; failed sends whose results were not read are added to it as a note."""
        try:
            await self.close()
        except SendFailed as failed:
            if error is None:
                raise
            error.add_note(str(failed))

    # Sending

    async def send(
        self,
        record: ProducerRecord | str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders | None = None,
        callback: Callback | None = None,
    ) -> Delivery:
        """Sends a record, or a topic and the fields of a record; await the delivery for the acknowledgement.

        `callback(metadata, error)` is called on the event loop, in send order for each partition; exactly one of the two is not None.
        Returns when the record is in a batch: at once, unless the topic is not known yet or buffer.memory is full.
        """
        if not self._starting.is_done:
            await self.start()
        sent = self._core.path.send(record, value, key, partition, timestamp, headers, callback)
        return sent if isinstance(sent, Delivery) else await self._finish(sent)

    async def send_and_wait(
        self, record: ProducerRecord | str, value: V | None = None, key: K | None = None, **fields: Any
    ) -> RecordMetadata:
        """Sends a record and waits for the acknowledgement."""
        return await (await self.send(record, value, key, **fields))

    async def _finish(self, outgoing: Outgoing) -> Delivery:
        core = self._core
        deadline_ms = core.clock.monotonic_ms() + core.max_block_ms
        while True:
            left_ms = max(deadline_ms - core.clock.monotonic_ms(), 0)
            try:
                if outgoing.needs_memory:
                    await self._wait_for_memory(outgoing, left_ms)
                else:
                    await core.wait_on_metadata(outgoing.topic, outgoing.partition, core.max_block_ms)
            except Exception as error:
                return core.path.fail(outgoing, error)
            sent = core.path.resume(outgoing)
            if isinstance(sent, Delivery):
                return sent
            outgoing = sent

    async def _wait_for_memory(self, outgoing: Outgoing, left_ms: int) -> None:
        core = self._core
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        began_ms = core.clock.monotonic_ms()
        waiter = core.pool.wait(outgoing.needs_memory, partial(_set, future))
        core.wakeup()
        try:
            await asyncio.wait([future], timeout=left_ms / 1000)
        except asyncio.CancelledError:
            core.pool.give_up(waiter)
            raise
        finally:
            core.producer_metrics.waited("bufferpool-wait", core.clock.monotonic_ms() - began_ms)
        if waiter.closed:
            raise KafkaError("Producer closed while allocating memory")
        if not waiter.granted:
            core.pool.give_up(waiter)
            core.producer_metrics.exhausted.record()
            raise core.path.memory_error(outgoing.needs_memory, core.max_block_ms)
        outgoing.reserved = outgoing.needs_memory

    async def flush(self) -> None:
        """Sends everything without lingering, and waits until each record sent before is acknowledged or has failed.

        Raises SendFailed if records have failed and their results were not read: see `close`. Their deliveries keep their results.
        """
        core = self._core
        if self._closed or not self._starting.is_done:
            return
        began_ms = core.clock.monotonic_ms()
        batches = core.accumulator.begin_flush()
        core.wakeup()
        try:
            for batch in batches:
                ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                if batch.on_end(partial(_set, ended)):
                    await ended
        finally:
            core.accumulator.end_flush()
            core.producer_metrics.waited("flush", core.clock.monotonic_ms() - began_ms)
        core.report_unseen()

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic; waits for metadata at most max.block.ms."""
        await self.start()
        return await self._core.wait_on_metadata(topic, None, self._core.max_block_ms)

    def _observed(self) -> tuple[Metrics, ClientTelemetry | None, ConnectionErrors]:
        return self._core.metrics, self._core.telemetry, self._core.metadata.failures

    async def client_instance_id(self, timeout: float) -> Uuid:
        """The id that the cluster assigned to this client for its metrics (KIP-714); waits for it at most `timeout` seconds."""
        await self.start()
        return await self._core.client_instance_id(int(timeout * 1000))

    # Transactions

    async def init_transactions(self) -> None:
        """Call it once, before the first transaction: obtains an epoch, which fences earlier producers with the same transactional.id."""
        manager = self._core.transaction_manager()
        await self.start()
        await self._await("txn-init", manager.initialize())

    def begin_transaction(self) -> None:
        """Begins a transaction; all records sent until commit_transaction or abort_transaction belong to it.

        Call init_transactions once before the first one. Raises IllegalState if a transaction is open or there is no transactional.id.
        """
        manager = self._core.transaction_manager()
        began_ms = self._core.clock.monotonic_ms()
        manager.begin()
        self._core.producer_metrics.waited("txn-begin", self._core.clock.monotonic_ms() - began_ms)

    async def send_offsets_to_transaction(self, offsets: GivenOffsets, group_metadata: ConsumerGroupMetadata | str) -> None:
        """Adds offsets of a consumer to the transaction; they are committed with it, or not at all.

        `group_metadata` is the consumer's group metadata, or the group id as a text. With an id alone, the coordinator cannot detect that
        the consumer has lost its partitions in the meantime: use it for consumers that `assign` their partitions.
        """
        group = check_group(group_metadata)
        whole = whole_offsets(offsets)
        manager = self._core.transaction_manager()
        if whole:
            await self._await("txn-send-offsets", manager.send_offsets(whole, group))

    async def commit_transaction(self) -> None:
        """Sends what is left, then commits the open transaction. Waits for max.block.ms at most; after a Timeout it may be called again."""
        await self._await("txn-commit", self._core.transaction_manager().begin_commit())

    async def abort_transaction(self) -> None:
        """Aborts the open transaction: its records are never seen by read_committed consumers. Waits for max.block.ms at most."""
        await self._await("txn-abort", self._core.transaction_manager().begin_abort())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer[K, V]]:
        """Commits at the end of the block; aborts if the block raises, or if the commit fails and an abort is still possible."""
        self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            await self._abort_quietly()
            raise

    async def _abort_quietly(self) -> None:
        manager = self._core.transaction_manager()
        if manager.has_fatal_error or not manager.has_ongoing_transaction or manager.is_completing:
            return
        try:
            await self.abort_transaction()
        except KafkaError:
            logger.warning("The transaction could not be aborted; the coordinator will do so after transaction.timeout.ms", exc_info=True)

    async def _await(self, metric: str, result: TransactionResult) -> None:
        core = self._core
        began_ms = core.clock.monotonic_ms()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        result.when_done(partial(_set, future))
        core.wakeup()
        await asyncio.wait([future], timeout=core.max_block_ms / 1000)
        if not result.completed:
            raise result.timed_out(core.max_block_ms, core.metadata.failures)
        result.take()
        core.producer_metrics.waited(metric, core.clock.monotonic_ms() - began_ms)

    async def close(self, timeout: float | None = None) -> None:
        """Sends the remaining records and waits for them, at most `timeout` seconds; then the rest fails. An open transaction is aborted.

        Raises SendFailed, after closing, if records failed and their results were not read: by `await` or `exception()` of the delivery, or
        by a callback. Each is reported once, by `flush` or here. Failed records of transactions are not reported: `commit_transaction`
        raises.
        """
        if timeout is not None and timeout < 0:
            raise IllegalArgument("The timeout cannot be negative.")
        if self._closed:
            return
        self._closed = True
        self._core.path.closed = True
        await self._starting.close()
        if self._starting.is_done:
            await self._core.close(timeout)
        self._core.close_parts()
        self._core.report_unseen()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
