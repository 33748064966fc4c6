# Compiled by mypyc: src/compiled.toml lists this module.
"""The path of a record from the application to its batch: interceptors, serializers, partitioner, accumulator; in the caller's thread.

Nothing here waits. If the topic is not known yet, or buffer.memory is full, `send` returns an `Outgoing`; the blocking and the asynchronous
producer each wait in their own way and call `resume`. Errors of one record go to its delivery, as in Java; mistakes of the application are
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.client.clock import Clock
from barnabas.client.cluster import Cluster
from barnabas.client.errors import BufferExhausted, IllegalArgument, IllegalState, Interrupted, SerializationError
from barnabas.client.network.metadata import Metadata
from barnabas.client.producer.accumulator import RecordAccumulator
from barnabas.client.producer.batch import Callback, Delivery, FailedDelivery, ProducerBatch, size_upper_bound
from barnabas.client.producer.interceptors import ProducerInterceptors, failed_metadata
from barnabas.client.producer.partitioners import Partitioner, partition_for_key
from barnabas.client.producer.record import UNKNOWN_PARTITION, GivenHeaders, ProducerRecord, check_record, headers_of
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.client.serialization import BytesSerializer, Serializer
from barnabas.config_def import InvalidConfig
from barnabas.errors import KafkaError, RecordTooLarge
from barnabas.records.record import Header
from barnabas.topic_partition import TopicPartition

NO_HEADERS: Final[tuple[Header, ...]] = ()

_OVERHEAD_MAX: Final = 100  # of a batch with one record without headers, beside its key and value

# Raised: mistakes of the application, and a closed producer. All other errors belong to a record. In Java these are all but ApiException.
_RAISED: Final = (IllegalState, IllegalArgument, SerializationError, Interrupted, InvalidConfig)


class Outgoing:
    """A record that must wait: for the metadata of its topic (`needs_memory` 0), or for `needs_memory` bytes of memory."""

    def __init__(
        self,
        topic: str,
        key: Any,
        value: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Sequence[Header],
        on_done: Callable[[Delivery], None] | None,
        callback: Callback | None,
    ) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.partition = partition
        self.timestamp = timestamp
        self.headers = headers
        self.on_done = on_done
        self.callback = callback
        self.needs_memory = 0
        self.reserved = 0
        # Set after serialization.
        self.key_bytes: bytes | None = None
        self.value_bytes: bytes | None = None
        self.chosen = UNKNOWN_PARTITION


class _PartitionCounts:
    """The partition counts of topics in one snapshot of the cluster, looked up once for each topic."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._counts: dict[str, int] = {}

    def partition_count(self, topic: str) -> int | None:
        count = self._counts.get(topic)
        if count is None:
            count = self.cluster.partition_count(topic)
            if count is not None:
                self._counts[topic] = count
        return count


class SendPath:
    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        transactions: TransactionManager | None,
        interceptors: ProducerInterceptors,
        key_serializer: Serializer[Any],
        value_serializer: Serializer[Any],
        partitioner: Partitioner | None,
        clock: Clock,
        *,
        ignore_keys: bool,
        request_size_max: int,
    ) -> None:
        self.accumulator = accumulator
        self.interceptors = interceptors
        self.on_failure: Callable[[], None] = lambda: None
        self.closed = False
        self._metadata = metadata
        self._transactions = transactions
        self._is_transactional = transactions is not None and transactions.is_transactional
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._plain_bytes = type(key_serializer) is BytesSerializer and type(value_serializer) is BytesSerializer
        self._has_interceptors = bool(interceptors)
        self._partitioner = partitioner
        self._ignore_keys = ignore_keys
        self._request_size_max = request_size_max
        self._surely_small = min(request_size_max, accumulator.pool.total) - _OVERHEAD_MAX
        self._now_ms = clock.now_ms
        self._partition_counts = _PartitionCounts(metadata.cluster)

    def send(
        self,
        record: ProducerRecord | str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: GivenHeaders | None,
        callback: Callback | None,
    ) -> Delivery | Outgoing:
        """Sends a record, or a topic and the fields of a record; returns a delivery, or an `Outgoing` to wait for before `resume`."""
        if self.closed:
            raise IllegalState("Cannot perform operation after producer has been closed")
        if self._has_interceptors or not isinstance(record, str):
            if isinstance(record, str):
                record = ProducerRecord(record, value, key, partition=partition, timestamp=timestamp, headers=headers)
            if self._has_interceptors:
                record = self.interceptors.on_send(record)
            topic = record.topic
            value = record.value
            key = record.key
            partition = record.partition
            timestamp = record.timestamp
            headers = record.headers
        else:
            topic = record
            if partition is not None or timestamp is not None:
                check_record(topic, partition, timestamp)
        sent_headers: Sequence[Header] = NO_HEADERS
        if headers:
            sent_headers = headers_of(headers)
        on_done: Callable[[Delivery], None] | None = None
        if callback is not None or self._has_interceptors:
            on_done = self._notice(callback, sent_headers)
        cluster: Cluster = self._metadata.cluster
        count = self._partition_count(cluster, topic)
        if count is None or (partition is not None and partition >= count):
            return Outgoing(topic, key, value, partition, timestamp, sent_headers, on_done, callback)
        return self._dispatch(cluster, topic, key, value, partition, timestamp, sent_headers, on_done, callback)

    def resume(self, outgoing: Outgoing) -> Delivery | Outgoing:
        """Continues with a record after its wait."""
        if outgoing.needs_memory == 0:
            return self._dispatch(
                self._metadata.cluster,
                outgoing.topic,
                outgoing.key,
                outgoing.value,
                outgoing.partition,
                outgoing.timestamp,
                outgoing.headers,
                outgoing.on_done,
                outgoing.callback,
            )
        try:
            return self._append(outgoing)
        except Exception as error:
            return self._refused(error, outgoing.topic, outgoing.chosen, outgoing.headers, outgoing.callback)

    def fail(self, outgoing: Outgoing, error: Exception) -> Delivery:
        """Fails a record whose wait ended with an error."""
        return self._refused(error, outgoing.topic, outgoing.chosen, outgoing.headers, outgoing.callback)

    def memory_error(self, size: int, max_block_ms: int) -> BufferExhausted:
        pool = self.accumulator.pool
        return self._metadata.failures.error(
            BufferExhausted,
            f"Failed to allocate {size} bytes within the configured max blocking time {max_block_ms} ms. Total memory: {pool.total} bytes. "
            f"Available memory: {pool.available} bytes. Poolable size: {self.accumulator.config.batch_size} bytes",
        )

    def _dispatch(
        self,
        cluster: Cluster,
        topic: str,
        key: Any,
        value: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Sequence[Header],
        on_done: Callable[[Delivery], None] | None,
        callback: Callback | None,
    ) -> Delivery | Outgoing:
        chosen = UNKNOWN_PARTITION
        try:
            key_bytes: bytes | None
            value_bytes: bytes | None
            if self._plain_bytes and (key is None or type(key) is bytes) and (value is None or type(value) is bytes):
                key_bytes = key
                value_bytes = value
            else:
                # Serializers may add headers.
                headers = list(headers)
                key_bytes = _bytes(self._key_serializer.serialize(topic, key, headers), "key.serializer")
                value_bytes = _bytes(self._value_serializer.serialize(topic, value, headers), "value.serializer")
            chosen = self._partition(cluster, topic, partition, key, key_bytes, value, value_bytes)
            size = (0 if key_bytes is None else len(key_bytes)) + (0 if value_bytes is None else len(value_bytes))
            if headers or size > self._surely_small:
                self._check_size(size_upper_bound(key_bytes, value_bytes, headers))
            transactions = self._transactions
            if transactions is not None and (self._is_transactional or transactions.failed):
                transactions.check_send(topic, chosen)
            time_ms = self._now_ms() if timestamp is None else timestamp
            delivery = self.accumulator.append(topic, chosen, time_ms, key_bytes, value_bytes, headers, cluster, on_done)
            if delivery is not None:
                return self._joined(delivery) if self._is_transactional else delivery
        except Exception as error:
            return self._refused(error, topic, chosen, headers, callback)
        outgoing = Outgoing(topic, key, value, partition, time_ms, headers, on_done, callback)
        outgoing.key_bytes = key_bytes
        outgoing.value_bytes = value_bytes
        outgoing.chosen = chosen
        outgoing.needs_memory = self.accumulator.size_to_reserve(key_bytes, value_bytes, headers)
        return outgoing

    def _append(self, outgoing: Outgoing) -> Delivery | Outgoing:
        assert outgoing.timestamp is not None
        reserved = outgoing.reserved
        outgoing.reserved = 0
        delivery = self.accumulator.append(
            outgoing.topic,
            outgoing.chosen,
            outgoing.timestamp,
            outgoing.key_bytes,
            outgoing.value_bytes,
            outgoing.headers,
            self._metadata.cluster,
            outgoing.on_done,
            reserved,
        )
        return outgoing if delivery is None else self._joined(delivery)

    def _joined(self, delivery: Delivery) -> Delivery:
        """Adds the partition to the transaction: the sender does not send to it before that."""
        if self._is_transactional and self._transactions is not None:
            self._transactions.maybe_add_partition(delivery.topic_partition)
        return delivery

    def _partition(
        self,
        cluster: Cluster,
        topic: str,
        partition: int | None,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
    ) -> int:
        if partition is not None:
            return partition
        if self._partitioner is not None:
            chosen = self._partitioner.partition(topic, key, key_bytes, value, value_bytes, cluster)
            if chosen < 0:
                raise IllegalArgument(
                    f"The partitioner generated an invalid partition number: {chosen}. Partition number should always be non-negative."
                )
            return chosen
        if key_bytes is not None and not self._ignore_keys:
            return partition_for_key(key_bytes, self._partition_count(cluster, topic) or 1)
        return UNKNOWN_PARTITION

    def _partition_count(self, cluster: Cluster, topic: str) -> int | None:
        counts = self._partition_counts
        if counts.cluster is not cluster:
            counts = self._partition_counts = _PartitionCounts(cluster)
        return counts.partition_count(topic)

    def _check_size(self, size: int) -> None:
        if size > self._request_size_max:
            raise RecordTooLarge(
                f"The message is {size} bytes when serialized which is larger than {self._request_size_max}, which is the value of the "
                "max.request.size configuration."
            )
        if size > self.accumulator.pool.total:
            raise RecordTooLarge(
                f"The message is {size} bytes when serialized which is larger than the total memory buffer you have configured with the "
                "buffer.memory configuration."
            )

    def _refused(self, error: Exception, topic: str, partition: int, headers: Sequence[Header], callback: Callback | None) -> Delivery:
        """Raises a mistake of the application; any other error completes the record's delivery."""
        self.on_failure()
        self.interceptors.on_acknowledgement(failed_metadata(topic, partition), error, headers)
        if not isinstance(error, KafkaError) or isinstance(error, _RAISED) or type(error) is KafkaError:
            raise error
        if callback is not None:
            callback(None, error)
        if self._transactions is not None:
            self._transactions.error_seen(error, poison=False)
        accumulator = self.accumulator
        batch = ProducerBatch(
            TopicPartition(topic, partition), accumulator.lock, 0, None, 0, 0, 0, accumulator.unseen, accumulator.failures
        )
        return FailedDelivery(batch, error, error_was_seen=callback is not None)

    def _notice(self, callback: Callback | None, headers: Sequence[Header]) -> Callable[[Delivery], None]:
        """Calls the interceptors, then the application."""
        if not self._has_interceptors:
            assert callback is not None
            user_callback = callback
            return lambda delivery: _call_back(delivery, user_callback)
        interceptors = self.interceptors

        def notice(delivery: Delivery) -> None:
            error = delivery.failure()
            partition = delivery.topic_partition
            metadata = delivery.metadata() if error is None else failed_metadata(partition.topic, partition.partition)
            interceptors.on_acknowledgement(metadata, error, headers)
            if callback is not None:
                _call_back(delivery, callback)

        return notice


def _call_back(delivery: Delivery, callback: Callback) -> None:
    error = delivery.exception()
    if error is None:
        callback(delivery.metadata(), None)
    else:
        callback(None, error)


def _bytes(content: Any, name: str) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise SerializationError(f"The serializer of {name} returned a {type(content).__name__} instead of bytes or None")
