# Compiled by mypyc: src/compiled.toml lists this module.
"""The blocking producer: Java's KafkaProducer with Python's spelling of names.

    with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        delivery = producer.send("topic", b"value", key=b"key")      # or a ProducerRecord
        metadata = delivery.result()

The producer is thread-safe. `send` appends in the caller's thread; a network thread of its own sends, and calls callbacks, which must not
block.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Generic

from mypy_extensions import mypyc_attr

from barnabas.client.cluster import PartitionInfo
from barnabas.client.config.config import given_plugins
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import GivenOffsets, whole_offsets
from barnabas.client.errors import IllegalArgument, IllegalState, SendFailed
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.metrics.observed_client import ConnectionErrors, ObservedClient
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.producer.batch import Callback, Delivery
from barnabas.client.producer.core import ProducerCore, check_group
from barnabas.client.producer.record import GivenHeaders, ProducerRecord
from barnabas.client.producer.send_path import Outgoing
from barnabas.client.producer.transactions.transaction_requests import TransactionResult
from barnabas.client.serialization.api import GivenSerializer
from barnabas.client.type_parameters import K, V
from barnabas.errors import KafkaError
from barnabas.uuid import Uuid

logger = logging.getLogger(__name__)


@mypyc_attr(allow_interpreted_subclasses=True)
class Producer(ObservedClient, Generic[K, V]):
    """Settings by Kafka's names, in a mapping or as keywords with `_` for `.`: Producer(bootstrap_servers="localhost:9092").

    K and V are the types of the key and value of `send`, for type checkers. They follow from serializers given as keyword arguments; with
    serializers in a mapping write Producer[str, bytes](…), otherwise they are Any. Without a serializer both are bytes or None.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        /,
        *,
        key_serializer: GivenSerializer[K] | None = None,
        value_serializer: GivenSerializer[V] | None = None,
        **settings: object,
    ) -> None:
        serializers = given_plugins(key_serializer=key_serializer, value_serializer=value_serializer)
        self._core = ProducerCore(config, settings | serializers)
        self._path = self._core.path
        self._closed = False
        self._closing = threading.Lock()
        self._network = LoopThread(f"kafka-producer-network-thread | {self._core.config['client.id']}")
        self._network.start()
        try:
            self._network.run(self._core.start(self._network.call_soon))
        except BaseException:
            self._network.close()
            raise

    def __enter__(self) -> Producer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes. An exception of the block propagates; failed sends whose results were not read are added to it as a note."""
        try:
            self.close()
        except SendFailed as failed:
            if error is None:
                raise
            error.add_note(str(failed))

    # Sending

    def send(
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
        """Sends a record, or a topic and the fields of a record; never waits for the acknowledgement.

        `callback(metadata, error)` is called in the network thread, in send order for each partition; exactly one of the two is not None.
        Blocks at most max.block.ms if the topic is not known yet or buffer.memory is full. An error of the record alone (too large, no
        memory, no such topic…) goes to the delivery and the callback; mistakes of the application are raised.
        """
        sent = self._path.send(record, value, key, partition, timestamp, headers, callback)
        return sent if isinstance(sent, Delivery) else self._finish(sent)

    def _finish(self, outgoing: Outgoing) -> Delivery:
        core = self._core
        deadline_ms = core.clock.monotonic_ms() + core.max_block_ms
        while True:
            left_ms = max(deadline_ms - core.clock.monotonic_ms(), 0)
            try:
                if outgoing.needs_memory:
                    self._wait_for_memory(outgoing, left_ms)
                else:
                    self._network.run(core.wait_on_metadata(outgoing.topic, outgoing.partition, core.max_block_ms))
            except Exception as error:
                return core.path.fail(outgoing, error)
            sent = core.path.resume(outgoing)
            if isinstance(sent, Delivery):
                return sent
            outgoing = sent

    def _wait_for_memory(self, outgoing: Outgoing, left_ms: int) -> None:
        core = self._core
        event = threading.Event()
        began_ms = core.clock.monotonic_ms()
        with core.accumulator.lock:
            waiter = core.pool.wait(outgoing.needs_memory, event.set)
        core.wakeup()
        # In a callback no memory can become free: this is the thread that would release it.
        event.wait(0 if self._network.is_current() else left_ms / 1000)
        core.producer_metrics.waited("bufferpool-wait", core.clock.monotonic_ms() - began_ms)
        with core.accumulator.lock:
            if waiter.closed:
                raise KafkaError("Producer closed while allocating memory")
            if not waiter.granted:
                core.pool.give_up(waiter)
                core.producer_metrics.exhausted.record()
                raise core.path.memory_error(outgoing.needs_memory, core.max_block_ms)
            outgoing.reserved = outgoing.needs_memory

    def flush(self) -> None:
        """Sends everything without lingering, and blocks until each record sent before is acknowledged or has failed.

        Raises SendFailed if records have failed and their results were not read: see `close`. Their deliveries keep their results.
        """
        if self._network.is_current():
            raise KafkaError("flush() inside a callback is not permitted because it may lead to deadlock.")
        if self._closed:
            return
        core = self._core
        began_ms = core.clock.monotonic_ms()
        batches = core.accumulator.begin_flush()
        core.wakeup()
        try:
            for batch in batches:
                event = threading.Event()
                if batch.on_end(event.set):
                    event.wait()
        finally:
            core.accumulator.end_flush()
            core.producer_metrics.waited("flush", core.clock.monotonic_ms() - began_ms)
        core.report_unseen()

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic; blocks at most max.block.ms."""
        return self._network.run(self._core.wait_on_metadata(topic, None, self._core.max_block_ms))

    def _observed(self) -> tuple[Metrics, ClientTelemetry | None, ConnectionErrors]:
        return self._core.metrics, self._core.telemetry, self._core.metadata.failures

    def client_instance_id(self, timeout: float) -> Uuid:
        """The id that the cluster assigned to this client for its metrics (KIP-714); waits for it at most `timeout` seconds."""
        return self._network.run(self._core.client_instance_id(int(timeout * 1000)))

    # Transactions

    def init_transactions(self) -> None:
        """Call it once, before the first transaction: obtains an epoch, which fences earlier producers with the same transactional.id."""
        self._await("txn-init", self._core.transaction_manager().initialize())

    def begin_transaction(self) -> None:
        """Begins a transaction; all records sent until commit_transaction or abort_transaction belong to it.

        Call init_transactions once before the first one. Raises IllegalState if a transaction is open or there is no transactional.id.
        """
        manager = self._core.transaction_manager()
        began_ms = self._core.clock.monotonic_ms()
        manager.begin()
        self._core.producer_metrics.waited("txn-begin", self._core.clock.monotonic_ms() - began_ms)

    def send_offsets_to_transaction(self, offsets: GivenOffsets, group_metadata: ConsumerGroupMetadata | str) -> None:
        """Adds offsets of a consumer to the transaction; they are committed with it, or not at all.

        `group_metadata` is the consumer's group metadata, or the group id as a text. With an id alone, the coordinator cannot detect that
        the consumer has lost its partitions in the meantime: use it for consumers that `assign` their partitions.
        """
        group = check_group(group_metadata)
        whole = whole_offsets(offsets)
        manager = self._core.transaction_manager()
        if whole:
            self._await("txn-send-offsets", manager.send_offsets(whole, group))

    def commit_transaction(self) -> None:
        """Sends the remaining records and commits. After a Timeout, call only this method again."""
        self._await("txn-commit", self._core.transaction_manager().begin_commit())

    def abort_transaction(self) -> None:
        """Aborts the open transaction: its records are never seen by read_committed consumers. Waits for max.block.ms at most."""
        self._await("txn-abort", self._core.transaction_manager().begin_abort())

    @contextmanager
    def transaction(self) -> Iterator[Producer[K, V]]:
        """Commits at the end of the block; aborts if the block raises, or if the commit fails and an abort is still possible."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            self._abort_quietly()
            raise

    def _abort_quietly(self) -> None:
        manager = self._core.transaction_manager()
        if manager.has_fatal_error or not manager.has_ongoing_transaction or manager.is_completing:
            return
        try:
            self.abort_transaction()
        except KafkaError:
            logger.warning("The transaction could not be aborted; the coordinator will do so after transaction.timeout.ms", exc_info=True)

    def _await(self, metric: str, result: TransactionResult) -> None:
        if self._network.is_current():
            raise IllegalState("A blocking call was made in a callback: the producer's own thread would wait for itself")
        core = self._core
        began_ms = core.clock.monotonic_ms()
        core.wakeup()
        result.wait(core.max_block_ms, core.metadata.failures)
        core.producer_metrics.waited(metric, core.clock.monotonic_ms() - began_ms)

    def close(self, timeout: float | None = None) -> None:
        """Sends the remaining records and waits for them, at most `timeout` seconds; then the rest fails. An open transaction is aborted.

        Raises SendFailed, after closing, if records failed and their results were not read: by `result()` or `exception()` of the delivery,
        by `await`, or by a callback. Each is reported once, by `flush` or here. Failed records of transactions are not reported:
        `commit_transaction` raises. In a callback `close` cannot wait: it uses timeout 0, and failures are reported when `close` is called
        again or the `with` block ends.
        """
        if timeout is not None and timeout < 0:
            raise IllegalArgument("The timeout cannot be negative.")
        with self._closing:
            was_closed = self._closed
            self._closed = True
        if not was_closed:
            self._close(timeout)
        if not self._network.is_current():
            self._core.report_unseen()

    def _close(self, timeout: float | None) -> None:
        self._core.path.closed = True
        if self._network.is_current():
            logger.warning("close() was called in a callback: records that have not been sent are discarded")
            self._core.sender.force_close()
            self._network.submit(self._end())
        else:
            self._network.run(self._core.close(timeout))
            self._network.close()
        self._core.close_parts()

    async def _end(self) -> None:
        await self._core.close(0)
        self._network.close()
