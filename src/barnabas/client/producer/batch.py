# Compiled by mypyc: src/compiled.toml lists this module.
"""A batch of records of one partition, and the deliveries that callers hold for its records.

A `ProducerBatch` is filled in the accumulator, closed when it is sent, and completed exactly once: with an offset, with an error, or split
into smaller batches. A `Delivery` is the index of a record in its batch: a thread can wait for it (`result`), a task can await it, and it
takes callbacks. It holds no more, because there is one for each record. `UnseenFailures` counts failed records whose deliveries were not
read. Records are appended and sent in different threads: shared state is protected by the given lock. Callbacks are called without the
lock.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from barnabas.client.network.connection_failures import NO_FAILURES, ConnectionFailures
from barnabas.client.producer.record import INVALID_OFFSET, RecordMetadata
from barnabas.client.producer.unseen_failures import UnseenFailures
from barnabas.errors import KafkaError
from barnabas.records.batch import (
    HEADER_SIZE_V2,
    MAGIC_V2,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    increment_sequence,
    read_batch,
)
from barnabas.records.builder import encode_batch
from barnabas.records.codecs.compression import NONE, compress
from barnabas.records.codecs.varint import size_of_varint, size_of_varlong, write_varint, write_varlong
from barnabas.records.reader import each_record
from barnabas.records.record import Header
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# The largest overhead of a record beside its key, value and headers: Kafka's DefaultRecord.MAX_RECORD_OVERHEAD.
RECORD_OVERHEAD_MAX: Final = 21

PENDING: Final = 0
SUCCEEDED: Final = 1
FAILED: Final = 2
SPLIT: Final = 3

# Kafka's margin for a codec that compresses a little worse than estimated.
_RATIO_MARGIN: Final = 1.05
_NO_HEADERS: Final = b"\x00"
_SPENT: Final = BytesWriter()

# Exactly one of the two arguments is not None.
Callback = Callable[[RecordMetadata | None, KafkaError | None], None]


class Delivery:
    """The future of one record."""

    def __init__(self, batch: ProducerBatch, index: i64, timestamp: i64, key_size: i64, value_size: i64) -> None:
        self._batch = batch
        self._index: i64 = index
        self._timestamp: i64 = timestamp
        self._key_size: i64 = key_size
        self._value_size: i64 = value_size
        self._looked_at = False

    @property
    def looked_at(self) -> bool:
        """Whether the application has received, or will receive, the error of a failed record."""
        return self._looked_at

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the record goes to."""
        return self._batch.topic_partition

    def done(self) -> bool:
        """Whether the record is written or has failed; never waits."""
        return self._placed().state != PENDING

    def cancelled(self) -> bool:
        """Always False: a record that was handed over cannot be taken back. For code that expects a Future."""
        return False

    def cancel(self) -> bool:
        """Returns False: a record that was given to a producer cannot be cancelled."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Blocks until the record is acknowledged, at most `timeout` seconds; returns its metadata or raises its error.

        Must not be called in a callback of the producer or on its event loop: there it would wait for itself.
        """
        batch = self._placed()
        if batch.state == PENDING and not self._wait(timeout):
            raise batch.failures.timeout(f"Timeout after waiting for {round((timeout or 0) * 1000)} ms.")
        return self._outcome()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """The error of the record, without raising it; None if the record was acknowledged."""
        try:
            self.result(timeout)
        except KafkaError as error:
            if not self.done():
                raise
            return error
        return None

    def add_done_callback(self, function: Callable[[Delivery], Any]) -> None:
        """Calls `function(self)` in the network thread when the record is acknowledged or has failed; at once if that has happened."""
        with self._batch.lock:
            if self._watch(function):
                self.will_look()
                return
        self.look()
        function(self)

    def failure(self) -> KafkaError | None:
        """The error of a failed record. Does not count as a read by the application: for interceptors."""
        return self._placed().error_of(self._index)

    def look(self) -> None:
        """Records that the application has received the outcome of a completed record, so that it is not reported again."""
        with self._batch.lock:
            if not self._looked_at:
                self._looked_at = True
                self._placed().looked_at(self._index)

    def will_look(self) -> None:
        """Called before completion by a watcher of the batch that will pass the outcome to the application."""
        self._looked_at = True

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if self._placed().state == PENDING:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            thread_id = threading.get_ident()
            if self._watch(lambda _: self._wake(loop, future, thread_id)):
                yield from future
        return self._outcome()

    def _watch(self, function: Callable[[Delivery], Any]) -> bool:
        """Calls `function(self)` when the record completes; False if it has completed."""
        with self._batch.lock:
            batch = self._placed()
            if batch.state != PENDING:
                return False
            batch.watch(self._index, self, function)
            return True

    def _wait(self, timeout: float | None) -> bool:
        waiter = _Waiter()
        if not self._watch(waiter.wake) or waiter.event.wait(timeout):
            return True
        with self._batch.lock:
            waiter.gave_up = True
            return self._placed().state != PENDING

    def _wake(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None], thread: int) -> None:
        """Called in the network thread, which is the event loop's own thread for an AsyncProducer."""
        if not future.done():  # otherwise the waiting task was cancelled
            self.will_look()
        if threading.get_ident() == thread:
            _set(future)
        else:
            loop.call_soon_threadsafe(_set, future)

    def _placed(self) -> ProducerBatch:
        """The batch that holds the record now: another one if the first was split."""
        batch = self._batch
        while batch.state == SPLIT:
            index: i64 = self._index
            for part in batch.parts:
                if index < part.count:
                    batch = part
                    break
                index -= part.count
            self._batch = batch
            self._index = index
        return batch

    def _outcome(self) -> RecordMetadata:
        batch = self._placed()
        error = batch.error_of(self._index)
        if error is not None:
            self.look()
            raise error
        return self.metadata()

    def metadata(self) -> RecordMetadata:
        """The metadata of an acknowledged record."""
        batch = self._placed()
        return RecordMetadata(
            batch.topic_partition.topic,
            batch.topic_partition.partition,
            INVALID_OFFSET if batch.base_offset == INVALID_OFFSET else batch.base_offset + self._index,
            batch.log_append_time if batch.log_append_time != NO_TIMESTAMP else self._timestamp,
            self._key_size,
            self._value_size,
        )


class FailedDelivery(Delivery):
    """The future of a record that did not get into a batch. `error_was_seen` means that a callback of the application has received it."""

    def __init__(self, batch: ProducerBatch, error: KafkaError, error_was_seen: bool = False) -> None:
        super().__init__(batch, 0, NO_TIMESTAMP, -1, -1)
        batch.fail_unsent(error)
        if error_was_seen:
            self.look()


class _Waiter:
    """A thread in `Delivery.result`."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.gave_up = False

    def wake(self, delivery: Delivery) -> None:
        if not self.gave_up:
            delivery.will_look()
        self.event.set()


class ProducerBatch:
    """One batch, from its first record to its completion. Times are monotonic milliseconds."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        lock: threading.RLock,
        codec: i64,
        level: int | None,
        write_limit: i64,
        reserved: i64,
        now_ms: i64,
        unseen: UnseenFailures | None = None,
        failures: ConnectionFailures = NO_FAILURES,
    ) -> None:
        """`unseen` counts failed records whose result was not read; with None they are not counted. `failures` has the connection
        failures."""
        self.failures = failures
        self.topic_partition = topic_partition
        self.lock = lock
        self.reserved = reserved  # bytes of buffer.memory
        self.created_ms = now_ms
        self.drained_ms: i64 = now_ms
        self.last_attempt_ms: i64 = now_ms
        self.attempts: i64 = 0
        self.retry_wait_ms: i64 = 0
        self.count: i64 = 0
        self.max_record_size: i64 = 0
        self.state: i64 = PENDING
        self.parts: list[ProducerBatch] = []
        self.in_retry = False
        self.sequence_was_reset = False
        self.closed_for_appends = False
        self.size: i64 = 0  # of its encoded bytes, after closing
        self.producer_id: i64 = NO_PRODUCER_ID
        self.producer_epoch: i64 = NO_PRODUCER_EPOCH
        self.base_sequence: i64 = NO_SEQUENCE
        self.transactional = False
        self.leader_epoch: i64 = NO_LEADER_EPOCH
        self.attempts_when_leader_changed: i64 = 0
        self.base_offset: i64 = INVALID_OFFSET
        self.log_append_time: i64 = NO_TIMESTAMP
        self._body = BytesWriter()
        self._body_size: i64 = 0
        self._codec: i64 = codec
        self._level = level
        self._ratio = 1.0
        self._write_limit: i64 = write_limit
        self._base_timestamp: i64 = NO_TIMESTAMP
        self._max_timestamp: i64 = NO_TIMESTAMP
        self._data: bytes | None = None
        self._error: KafkaError | None = None
        self._record_errors: dict[int, KafkaError] | None = None
        # By index, in the order of the calls.
        self._watchers: list[tuple[int, Delivery, Callable[[Delivery], Any]]] = []
        self._on_end: list[Callable[[], None]] = []
        self._ended = False
        self._unseen = unseen
        self._unseen_report = 0
        self._looked_at: list[int] = []  # indexes of failed records that are read while callbacks of others are running

    # Appending

    @property
    def estimated_size(self) -> i64:
        """The encoded size: exact without compression or after encoding."""
        if self._data is not None:
            return self.size
        if self._codec == NONE:
            return HEADER_SIZE_V2 + self._body_size
        return HEADER_SIZE_V2 + i64(int(int(self._body_size) * self._ratio * _RATIO_MARGIN))

    @property
    def is_full(self) -> bool:
        """Whether the batch is sent without waiting for linger.ms."""
        return self.closed_for_appends or (self.count > 0 and self._write_limit <= self.estimated_size)

    @property
    def is_compressed(self) -> bool:
        return self._codec != NONE

    def expect_ratio(self, ratio: float) -> None:
        """Sets the expected compression ratio, estimated from earlier batches."""
        self._ratio = ratio

    def try_append(self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> Delivery | None:
        """Adds a record if there is room; the first record always fits."""
        index: i64 = self.count
        if index == 0:
            self._base_timestamp = timestamp
        delta: i64 = timestamp - self._base_timestamp
        key_size: i64 = -1 if key is None else len(key)
        value_size: i64 = -1 if value is None else len(value)
        encoded = _encode_headers(headers) if headers else _NO_HEADERS
        size: i64 = 1 + size_of_varlong(delta) + size_of_varint(index) + size_of_varint(key_size) + size_of_varint(value_size)
        size += len(encoded)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        whole: i64 = size + size_of_varint(size)
        if index > 0 and (self.closed_for_appends or self.estimated_size + whole > self._write_limit):
            return None
        out = self._body
        write_varint(out, size)
        out.append(0)
        write_varlong(out, delta)
        write_varint(out, index)
        write_varint(out, key_size)
        if key is not None:
            out.write(key)
        write_varint(out, value_size)
        if value is not None:
            out.write(value)
        out.write(encoded)
        self._body_size += whole
        self.count = index + 1
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        if whole > self.max_record_size:
            self.max_record_size = whole
        return Delivery(self, index, timestamp, key_size, value_size)

    def watch(self, index: i64, delivery: Delivery, function: Callable[[Delivery], Any]) -> None:
        """Calls `function` when the record at `index` is acknowledged or has failed. The caller holds the lock, and the batch is
        pending."""
        self._watchers.append((index, delivery, function))

    def on_end(self, function: Callable[[], None]) -> bool:
        """Calls `function` after all callbacks of the batch, and of the batches that it is split into; False if all have been called."""
        with self.lock:
            if self.state == SPLIT:
                left = _Countdown(len(self.parts), [function])
                waiting = [part.on_end(left.one_done) or left.passed_over() for part in self.parts]
                return any(waiting)
            if self._ended:
                return False
            self._on_end.append(function)
            return True

    # Sending

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> i64:
        return increment_sequence(self.base_sequence, self.count - 1)

    def set_producer_state(self, producer_id: i64, producer_epoch: i64, base_sequence: i64, transactional: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.transactional = transactional
        self._data = None

    def reset_producer_state(self, producer_id: i64, producer_epoch: i64, base_sequence: i64) -> None:
        """Sets a new sequence for a batch that was sent before: only if certainly no broker has appended it."""
        self.set_producer_state(producer_id, producer_epoch, base_sequence, self.transactional)
        self.sequence_was_reset = True

    def data(self) -> bytes:
        """The encoded bytes; closes the batch for appends."""
        self.closed_for_appends = True
        data = self._data
        if data is None:
            body = self._body.getvalue()
            data = encode_batch(
                body if self._codec == NONE else compress(self._codec, body, MAGIC_V2, self._level),
                self._codec | (TRANSACTIONAL_BIT if self.transactional else 0),
                0,
                self.count - 1,
                self._base_timestamp,
                self._max_timestamp,
                self.count,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
            )
            self._data = data
            self.size = len(data)
            self.sequence_was_reset = False  # later responses are for the new sequence
        return data

    def compression_ratio(self) -> float:
        """The ratio of compressed to uncompressed size of its records; after closing."""
        return int(self.size - HEADER_SIZE_V2) / int(self._body_size) if self._body_size > 0 else 1.0

    def waited_ms(self, now_ms: i64) -> i64:
        return max(0, now_ms - self.last_attempt_ms)

    def reenqueued(self, now_ms: i64) -> None:
        self.attempts += 1
        self.last_attempt_ms = now_ms
        self.in_retry = True

    def update_leader_epoch(self, leader_epoch: i64) -> None:
        """Records the leader epoch: a retry need not wait if another broker has become the leader."""
        if leader_epoch > self.leader_epoch:
            self.attempts_when_leader_changed = self.attempts
            self.leader_epoch = leader_epoch

    @property
    def leader_changed_for_retry(self) -> bool:
        return self.attempts >= 1 and self.attempts == self.attempts_when_leader_changed and self.leader_epoch != NO_LEADER_EPOCH

    # Completion

    def complete(self, base_offset: i64, log_append_time: i64) -> bool:
        """The batch is acknowledged; False if it was already completed (expired while in flight)."""
        return self._end(SUCCEEDED, base_offset, log_append_time, None, None)

    def fail(self, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> bool:
        """Fails the batch; `record_errors` has records whose errors differ."""
        return self._end(FAILED, INVALID_OFFSET, NO_TIMESTAMP, error, record_errors)

    def fail_unsent(self, error: KafkaError) -> None:
        """Fails a batch that represents a record which never got into one."""
        self.state = FAILED
        self.count = 1
        self._error = error
        with self.lock:
            self._ended = True
            self._count_unseen([])

    def looked_at(self, index: i64) -> None:
        """Records that the application has read a failed record. Called under the lock, once for each record."""
        error = self.error_of(index)
        if self._unseen is None or error is None:
            return
        if self._ended:
            self._unseen.seen(self._unseen_report, self.topic_partition, error)
        else:
            self._looked_at.append(index)

    def error_of(self, index: int) -> KafkaError | None:
        if self._record_errors is not None:
            return self._record_errors.get(index, self._error)
        return self._error

    def split(self, target_size: i64) -> list[ProducerBatch]:
        """The same records in several batches of `target_size` where possible. This batch is completed, and its deliveries move to the
        new batches."""
        data = self.data()
        parts: list[ProducerBatch] = []
        for record in each_record(data, read_batch(data, 0, len(data))):
            key, value, headers = record.key, record.value, record.headers
            if not parts or parts[-1].try_append(record.timestamp, key, value, headers) is None:
                limit = max(target_size, size_upper_bound(key, value, headers))
                part = ProducerBatch(
                    self.topic_partition, self.lock, self._codec, self._level, limit, 0, self.created_ms, self._unseen, self.failures
                )
                part.try_append(record.timestamp, key, value, headers)
                part.drained_ms = self.drained_ms
                parts.append(part)
        sequence: i64 = self.base_sequence
        for part in parts:
            part.closed_for_appends = True
            if self.has_sequence:
                part.set_producer_state(self.producer_id, self.producer_epoch, sequence, self.transactional)
                sequence = increment_sequence(sequence, part.count)
        self._hand_over(parts)
        return parts

    def _hand_over(self, parts: list[ProducerBatch]) -> None:
        with self.lock:
            self.parts = parts
            self.state = SPLIT
            if self._on_end:
                left = _Countdown(len(parts), self._on_end)
                for part in parts:
                    part.on_end(left.one_done)  # none has completed yet
            for index, delivery, function in self._watchers:
                for part in parts:
                    if index < part.count:
                        part.watch(index, delivery, function)
                        break
                    index -= part.count
            self._watchers = []
            self._on_end = []
            self._body = _SPENT
            self._data = None

    def _end(
        self, state: i64, base_offset: i64, log_append_time: i64, error: KafkaError | None, record_errors: dict[int, KafkaError] | None
    ) -> bool:
        with self.lock:
            if self.state != PENDING:
                return False
            self.closed_for_appends = True
            self.base_offset = base_offset
            self.log_append_time = log_append_time
            self._error = error
            self._record_errors = record_errors
            self.state = state
            watchers = self._watchers
            self._watchers = []
            self._data = None
            self._body = _SPENT  # frees the records, because deliveries may be kept for long
        for _, delivery, watcher in watchers:
            try:
                watcher(delivery)
            except Exception:
                logger.error("Error executing user-provided callback on message for %s", self.topic_partition, exc_info=True)
        with self.lock:
            self._ended = True
            if error is not None:
                self._count_unseen(watchers)
            on_end = self._on_end
            self._on_end = []
        for function in on_end:
            function()
        return True

    def _count_unseen(self, watchers: list[tuple[int, Delivery, Callable[[Delivery], Any]]]) -> None:
        """Counts the failed records that were not read. Called under the lock, after all callbacks."""
        unseen = self._unseen
        error = self._error
        if unseen is None or error is None:
            return
        read_indexes = {index for index, delivery, _ in watchers if delivery.looked_at}
        read_indexes.update(self._looked_at)
        self._unseen_report = unseen.report
        if self._record_errors is None:
            unseen.add(self.topic_partition, error, int(self.count) - len(read_indexes))
            return
        for index in range(int(self.count)):
            if index not in read_indexes:
                unseen.add(self.topic_partition, self._record_errors.get(index, error), 1)


class _Countdown:
    """Calls functions when the last of several batches has completed."""

    def __init__(self, count: int, functions: list[Callable[[], None]]) -> None:
        self._left = count
        self._functions = functions

    def passed_over(self) -> bool:
        """Counts a batch that had completed before; never triggers the call."""
        self._left -= 1
        return False

    def one_done(self) -> None:
        self._left -= 1
        if self._left == 0:
            for function in self._functions:
                function()


def size_upper_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> i64:
    """An upper bound of the uncompressed size of a batch with this one record."""
    size: i64 = HEADER_SIZE_V2 + RECORD_OVERHEAD_MAX + _size_of(key) + _size_of(value)
    return size + (len(_encode_headers(headers)) if headers else 1)


def _size_of(content: bytes | None) -> i64:
    if content is None:
        return 1
    size: i64 = len(content)
    return size_of_varint(size) + size


def _encode_headers(headers: Sequence[Header]) -> bytes:
    out = BytesWriter()
    write_varint(out, len(headers))
    for name, value in headers:
        encoded = name.encode("utf-8", "replace")
        write_varint(out, len(encoded))
        out.write(encoded)
        write_varint(out, -1 if value is None else len(value))
        if value is not None:
            out.write(value)
    return out.getvalue()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
