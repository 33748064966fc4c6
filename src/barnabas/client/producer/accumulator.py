# Compiled by mypyc: src/compiled.toml lists this module.
"""The record accumulator: for each partition a queue of batches, filled at its tail and drained at its head.

`append` is called for every record, from any thread. The sender calls `ready`, drains batches, and re-enqueues batches that must be
retried. The accumulator decides which batch is sent when, and never uses the network. One lock protects all state that threads share; the
bytes of a batch are built outside it. Memory is bounded by `buffer.memory`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from mypy_extensions import i64

from barnabas.client.cluster import Cluster
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.connection_failures import NO_FAILURES, ConnectionFailures
from barnabas.client.producer.batch import Delivery, ProducerBatch, size_upper_bound
from barnabas.client.producer.buffer_pool import BufferPool
from barnabas.client.producer.partitioners import StickyPartitioner
from barnabas.client.producer.transactions.transaction_manager import TransactionManager
from barnabas.client.producer.unseen_failures import UnseenFailures
from barnabas.errors import KafkaError
from barnabas.records.batch import NO_SEQUENCE
from barnabas.records.codecs.compression import NONE
from barnabas.records.record import Header
from barnabas.topic_partition import TopicPartition

NEVER_MS: Final = 2**62

# Kafka's CompressionRatioEstimator: adapts slowly to better ratios, and quickly to worse ones.
_RATIO_IMPROVING_STEP: Final = 0.005
_RATIO_DETERIORATE_STEP: Final = 0.05


class PartitionQueue:
    """The batches of one partition, oldest first."""

    def __init__(self, topic_partition: TopicPartition, number: int) -> None:
        self.topic_partition = topic_partition
        self.number = number  # in the order in which partitions were first written to
        self.batches: deque[ProducerBatch] = deque()
        self.muted = False


class TopicQueues:
    def __init__(self, sticky: StickyPartitioner) -> None:
        self.queues: dict[int, PartitionQueue] = {}
        self.sticky = sticky
        self.compression_ratio = 1.0


class ReadyCheck:
    """The nodes with data to send now, the time of the next check, and the topics with records but without a known leader."""

    def __init__(self) -> None:
        self.nodes: dict[int, None] = {}
        self.next_check_ms: i64 = NEVER_MS
        self.unknown_leader_topics: set[str] = set()


class AccumulatorConfig:
    def __init__(
        self,
        *,
        batch_size: int = 16384,
        codec: int = NONE,
        level: int | None = None,
        linger_ms: int = 5,
        delivery_timeout_ms: int = 120000,
        adaptive_partitioning: bool = True,
        availability_timeout_ms: int = 0,
        switches_at_new_batch: bool = False,
    ) -> None:
        self.batch_size: i64 = batch_size
        self.codec: i64 = codec
        self.level = level
        self.linger_ms: i64 = linger_ms
        self.delivery_timeout_ms: i64 = delivery_timeout_ms
        self.adaptive_partitioning = adaptive_partitioning
        self.availability_timeout_ms: i64 = availability_timeout_ms
        self.switches_at_new_batch = switches_at_new_batch  # for records without a partition: KIP-480 instead of KIP-794


class RecordAccumulator:
    def __init__(
        self,
        config: AccumulatorConfig,
        pool: BufferPool,
        backoff: ExponentialBackoff,
        transactions: TransactionManager | None,
        lock: threading.RLock,
        *,
        now_ms: Callable[[], int],
        random: Callable[[], int],
        wakeup: Callable[[], None],
        unseen: UnseenFailures | None = None,
        failures: ConnectionFailures = NO_FAILURES,
    ) -> None:
        """`now_ms` is a monotonic clock, read when a batch begins; `wakeup` wakes the sender.

        `unseen` counts failed records whose result the application has not read. `failures` has the connection failures.
        """
        self.config = config
        self.pool = pool
        self.lock = lock
        self._acquire: Callable[[], bool] = lock.acquire  # looked up once, because `append` runs for every record
        self._release: Callable[[], None] = lock.release
        self.closed = False
        self.next_expiry_ms: i64 = NEVER_MS
        self._batch_size: i64 = config.batch_size
        self._codec: i64 = config.codec
        self._level = config.level
        self._switches_at_new_batch = config.switches_at_new_batch
        self._backoff = backoff
        self._transactions = transactions
        self.unseen = unseen
        self.failures = failures
        self._now_ms = now_ms
        self._random = random
        self._wakeup = wakeup
        self._topics: dict[str, TopicQueues] = {}
        # The queues with batches, in the order in which they became non-empty.
        self._filled: dict[PartitionQueue, None] = {}
        self._queue_count = 0
        self._incomplete: dict[ProducerBatch, None] = {}
        self._flushes = 0
        self._drained_up_to: dict[int, int] = {}
        # When each node last had data to send, and when data could last be sent to it.
        self._node_ready_ms: dict[int, int] = {}
        self._node_drained_ms: dict[int, int] = {}

    # Appending

    def append(
        self,
        topic: str,
        partition: i64,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        cluster: Cluster,
        on_done: Callable[[Delivery], None] | None,
        reserved: i64 = 0,
    ) -> Delivery | None:
        """Adds a record to the current batch, or to a new one; None if there is no memory for that.

        A negative partition leaves the choice to the sticky partitioner. `on_done` is called like the delivery's callbacks, in the order of
        appending. `reserved` is memory that the caller has already allocated from the pool for this record: it is used or released.
        """
        wake = False
        self._acquire()  # cheaper than `with` in compiled code
        try:
            if self.closed:
                if reserved:
                    self._give_back(reserved)
                raise KafkaError("Producer closed while send in progress")
            topic_queues = self._topics.get(topic)
            if topic_queues is None:
                topic_queues = self._new_topic(topic)
            chosen: i64 = partition
            if partition < 0:
                chosen = topic_queues.sticky.current(cluster)
            queue = topic_queues.queues.get(chosen)
            if queue is None:
                queue = self._new_queue(topic_queues, TopicPartition(topic, chosen))
            delivery: Delivery | None = None
            if queue.batches:
                batch = queue.batches[-1]
                size: i64 = -batch.estimated_size
                delivery = batch.try_append(timestamp, key, value, headers)
                size += batch.estimated_size
            if delivery is None and partition < 0 and self._switches_at_new_batch:
                chosen = topic_queues.sticky.switch(cluster)
                queue = topic_queues.queues.get(chosen) or self._new_queue(topic_queues, TopicPartition(topic, chosen))
                if queue.batches:
                    batch = queue.batches[-1]
                    size = -batch.estimated_size
                    delivery = batch.try_append(timestamp, key, value, headers)
                    size += batch.estimated_size
            if delivery is not None:
                wake = batch.is_full
                if reserved:
                    self._give_back(reserved)
            else:
                begun = self._begin_batch(topic_queues, queue, size_upper_bound(key, value, headers), reserved)
                if begun is None:
                    return None
                batch = begun
                delivery = batch.try_append(timestamp, key, value, headers)
                assert delivery is not None  # the first record always fits
                size = batch.estimated_size
                wake = True
            if on_done is not None:
                batch.watch(batch.count - 1, delivery, on_done)
            if partition < 0 and not self._switches_at_new_batch:
                topic_queues.sticky.appended(size, cluster, batch.is_full)
        finally:
            self._release()
        if wake:
            self._wakeup()
        return delivery

    def size_to_reserve(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
        return max(self._batch_size, size_upper_bound(key, value, headers))

    def _give_back(self, reserved: i64) -> None:
        self.pool.deallocate(reserved)

    def _new_topic(self, topic: str) -> TopicQueues:
        # With batch.size=0 every record is a batch, and the partition changes with each.
        queues = self._topics[topic] = TopicQueues(StickyPartitioner(topic, max(1, self._batch_size), self._random))
        return queues

    def _new_queue(self, topic_queues: TopicQueues, partition: TopicPartition) -> PartitionQueue:
        self._queue_count += 1
        queue = topic_queues.queues[partition.partition] = PartitionQueue(partition, self._queue_count)
        return queue

    def _begin_batch(self, topic_queues: TopicQueues, queue: PartitionQueue, least: i64, reserved: i64) -> ProducerBatch | None:
        """A new batch after the last one, which is closed; None without memory."""
        size: i64 = max(self._batch_size, least)
        if not reserved:
            if not self.pool.try_allocate(size):
                return None
            reserved = size
        if queue.batches:
            queue.batches[-1].closed_for_appends = True
        now_ms: i64 = self._now_ms()
        batch = ProducerBatch(
            queue.topic_partition, self.lock, self._codec, self._level, size, reserved, now_ms, self.unseen, self.failures
        )
        if self._codec != NONE:
            batch.expect_ratio(topic_queues.compression_ratio)
        queue.batches.append(batch)
        self._filled[queue] = None
        self._incomplete[batch] = None
        return batch

    # Ready batches

    def ready(self, cluster: Cluster, now_ms: i64) -> ReadyCheck:
        """Checks the head of every queue. A batch is ready if it is full or has lingered, during a flush, close, commit or abort, and
        while a caller waits for memory; but not during the back-off of a retry."""
        check = ReadyCheck()
        with self.lock:
            topics: dict[str, None] = {}
            pressed = self.pool.waiting > 0 or self.closed or self._flushes > 0
            if not pressed and self._transactions is not None:
                pressed = self._transactions.is_completing
            for queue in self._filled:
                topics[queue.topic_partition.topic] = None
                self._check_queue(queue, cluster, now_ms, pressed, check)
            if self.config.adaptive_partitioning:
                for topic in topics:
                    self._update_load(topic, cluster)
        return check

    def _check_queue(self, queue: PartitionQueue, cluster: Cluster, now_ms: i64, pressed: bool, check: ReadyCheck) -> None:
        leader = cluster.leader_for(queue.topic_partition)
        if leader is None:
            check.unknown_leader_topics.add(queue.topic_partition.topic)
            return
        if queue.muted or leader.id in check.nodes:
            return
        batch = queue.batches[0]
        batch.update_leader_epoch(cluster.leader_epoch(queue.topic_partition))
        left_ms: i64 = self._backoff_left_ms(batch, now_ms)
        if left_ms > 0:
            check.next_check_ms = min(check.next_check_ms, left_ms)
            return
        linger_left_ms: i64 = self.config.linger_ms - batch.waited_ms(now_ms)
        if pressed or linger_left_ms <= 0 or batch.in_retry or len(queue.batches) > 1 or batch.is_full:
            check.nodes[leader.id] = None
        else:
            check.next_check_ms = min(check.next_check_ms, linger_left_ms)

    def _backoff_left_ms(self, batch: ProducerBatch, now_ms: i64) -> i64:
        """The remaining back-off of a batch that is retried; 0 if its partition has a new leader since."""
        if batch.attempts == 0 or batch.leader_changed_for_retry:
            return 0
        return batch.retry_wait_ms - batch.waited_ms(now_ms)

    def _update_load(self, topic: str, cluster: Cluster) -> None:
        """Updates the queue lengths of the sticky partitioner, once every partition has a queue."""
        topic_queues = self._topics[topic]
        if len(topic_queues.queues) < (cluster.partition_count(topic) or 0):
            topic_queues.sticky.update_load(None, ())
            return
        sizes: list[int] = []
        partitions: list[int] = []
        excluded = False
        for partition, queue in topic_queues.queues.items():
            leader = cluster.leader_for(queue.topic_partition)
            if leader is None or (queue.batches and self._is_slow(leader.id)):
                excluded = True
            else:
                sizes.append(len(queue.batches))
                partitions.append(partition)
        topic_queues.sticky.update_load(sizes, partitions, excluded)

    def _is_slow(self, node: int) -> bool:
        limit = self.config.availability_timeout_ms
        return limit > 0 and node in self._node_ready_ms and self._node_ready_ms[node] - self._node_drained_ms[node] > limit

    def node_checked(self, node: int, now_ms: int, can_drain: bool) -> None:
        """Records that a node had data to send, and whether data could be sent to it."""
        if self.config.availability_timeout_ms <= 0:
            return
        if can_drain or node not in self._node_drained_ms:
            self._node_drained_ms[node] = now_ms
        self._node_ready_ms[node] = now_ms

    # Draining

    def drain(self, cluster: Cluster, nodes: Sequence[int], size_max: i64, now_ms: i64) -> dict[int, list[ProducerBatch]]:
        """Takes for each node the head batch of each of its partitions, as many as fit in a request, and builds their bytes."""
        drained: dict[int, list[ProducerBatch]] = {}
        for node in nodes:
            with self.lock:
                batches = self._drain_node(cluster, node, size_max, now_ms)
            for batch in batches:
                batch.data()
                batch.drained_ms = now_ms
                if batch.is_compressed:
                    self._learn_ratio(batch.topic_partition.topic, batch.compression_ratio())
            if batches:
                drained[node] = batches
        return drained

    def _drain_node(self, cluster: Cluster, node: int, size_max: i64, now_ms: i64) -> list[ProducerBatch]:
        batches: list[ProducerBatch] = []
        size: i64 = 0
        for queue in self._in_turn(cluster, node):
            if queue.muted or not queue.batches:
                continue
            first = queue.batches[0]
            first.update_leader_epoch(cluster.leader_epoch(queue.topic_partition))
            if self._backoff_left_ms(first, now_ms) > 0:
                continue
            if batches and size + first.estimated_size > size_max:
                break
            if self._transactions is not None and not self._may_drain(first, self._transactions):
                continue
            queue.batches.popleft()
            if not queue.batches:
                del self._filled[queue]
            if self._transactions is not None and not first.has_sequence:
                self._transactions.identity.assign_sequence(first)
            first.closed_for_appends = True
            size += first.estimated_size
            batches.append(first)
            self._drained_up_to[node] = queue.number
        return batches

    def _in_turn(self, cluster: Cluster, node: int) -> list[PartitionQueue]:
        """The queues whose leader is the node, starting after the one drained last, so that a large queue does not starve others."""
        led: list[PartitionQueue] = []
        for queue in self._filled:
            leader = cluster.leader_for(queue.topic_partition)
            if leader is not None and leader.id == node:
                led.append(queue)
        if len(led) > 1:
            last = self._drained_up_to.get(node, 0)
            led.sort(key=lambda queue: (queue.number <= last, queue.number))
        return led

    def _may_drain(self, first: ProducerBatch, transactions: TransactionManager) -> bool:
        partition = first.topic_partition
        if not transactions.is_send_to_partition_allowed(partition) or not transactions.has_producer_id:
            return False
        identity = transactions.identity
        sequences = identity.sequences.of(partition)
        if not first.has_sequence:
            if sequences.in_flight and (sequences.producer != identity.producer or partition not in identity.established):
                # Batches of the old epoch are still in flight: sequence 0 of the new epoch could overtake them. Or the very first batch is
                # in flight: if the broker rejects it temporarily, it would take the second for the first.
                return False
            if identity.has_unresolved_sequence(partition):
                # It is not known whether earlier batches were written.
                return False
        elif sequences.first_in_flight_sequence not in (NO_SEQUENCE, first.base_sequence):
            # The batch is retried: to keep the order, one at a time is sent.
            return False
        return True

    def _learn_ratio(self, topic: str, observed: float) -> None:
        topic_queues = self._topics.get(topic)
        if topic_queues is None:
            return
        current = topic_queues.compression_ratio
        if observed > current:
            topic_queues.compression_ratio = max(current + _RATIO_DETERIORATE_STEP, observed)
        elif observed < current:
            topic_queues.compression_ratio = max(current - _RATIO_IMPROVING_STEP, observed)

    # Re-enqueueing

    def reenqueue(self, batch: ProducerBatch, now_ms: i64) -> None:
        """Puts a batch back to be retried."""
        batch.reenqueued(now_ms)
        batch.retry_wait_ms = self._backoff.backoff_ms(batch.attempts - 1)
        with self.lock:
            self._put_back(self._queue_of(batch), batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Replaces a batch that was too large for the broker by smaller ones."""
        with self.lock:
            queue = self._queue_of(batch)
            topic_queues = self._topics[batch.topic_partition.topic]
            topic_queues.compression_ratio = max(1.0, batch.compression_ratio())
            # A batch no larger than batch.size was still too large. Halving it ends eventually.
            parts = batch.split(self._batch_size if batch.size > self._batch_size else batch.size // 2)
            for part in reversed(parts):
                self._incomplete[part] = None
                if self._transactions is not None:
                    self._transactions.identity.sequences.of(part.topic_partition).add_in_flight(part)
                self._put_back(queue, part)
        return parts

    def _queue_of(self, batch: ProducerBatch) -> PartitionQueue:
        partition = batch.topic_partition
        topic_queues = self._topics.get(partition.topic) or self._new_topic(partition.topic)
        return topic_queues.queues.get(partition.partition) or self._new_queue(topic_queues, partition)

    def _put_back(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Inserts a batch at the head, but after batches with lower sequences, because batches in flight may return in any order."""
        at = 0
        if self._transactions is not None:
            for queued in queue.batches:
                if not queued.has_sequence or queued.base_sequence >= batch.base_sequence:
                    break
                at += 1
        queue.batches.insert(at, batch)
        self._filled[queue] = None

    # Completion

    def expired(self, now_ms: i64) -> list[ProducerBatch]:
        """Removes batches that are older than delivery.timeout.ms, and records the next expiry time."""
        expired_batches: list[ProducerBatch] = []
        with self.lock:
            for queue in list(self._filled):
                while queue.batches and self.has_expired(queue.batches[0], now_ms):
                    batch = queue.batches.popleft()
                    batch.closed_for_appends = True
                    expired_batches.append(batch)
                if queue.batches:
                    self.expires_later(queue.batches[0])
                else:
                    del self._filled[queue]
        return expired_batches

    def has_expired(self, batch: ProducerBatch, now_ms: i64) -> bool:
        return now_ms - batch.created_ms >= self.config.delivery_timeout_ms

    def expires_later(self, batch: ProducerBatch) -> None:
        self.next_expiry_ms = min(self.next_expiry_ms, batch.created_ms + self.config.delivery_timeout_ms)

    def deallocate(self, batch: ProducerBatch) -> None:
        """Releases the memory of a completed batch."""
        with self.lock:
            if self._incomplete.pop(batch, batch) is None and batch.reserved:
                self.pool.deallocate(batch.reserved)

    def abort_batches(self, reason: KafkaError) -> None:
        """Fails all batches, also those in flight."""
        self._abort(self._incomplete_now(), reason)

    def abort_undrained(self, reason: KafkaError) -> None:
        """Fails the batches that no broker can have received."""
        with self.lock:
            undrained = [
                batch for batch in self._incomplete if not (batch.has_sequence if self._transactions else batch.closed_for_appends)
            ]
        self._abort(undrained, reason)

    def _abort(self, batches: list[ProducerBatch], reason: KafkaError) -> None:
        for batch in batches:
            with self.lock:
                queue = self._queue_of(batch)
                batch.closed_for_appends = True
                if batch in queue.batches:
                    queue.batches.remove(batch)
                if not queue.batches:
                    self._filled.pop(queue, None)
            batch.fail(reason)
            self.deallocate(batch)

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self.pool.close()

    # Queries

    @property
    def has_undrained(self) -> bool:
        return bool(self._filled)

    @property
    def has_incomplete(self) -> bool:
        return bool(self._incomplete)

    def begin_flush(self) -> list[ProducerBatch]:
        """Stops lingering; returns the batches that must complete for the flush."""
        with self.lock:
            self._flushes += 1
            return list(self._incomplete)

    def end_flush(self) -> None:
        with self.lock:
            self._flushes -= 1

    def mute(self, partition: TopicPartition, muted: bool) -> None:
        topic_queues = self._topics.get(partition.topic)
        if topic_queues is not None and partition.partition in topic_queues.queues:
            topic_queues.queues[partition.partition].muted = muted

    def _incomplete_now(self) -> list[ProducerBatch]:
        with self.lock:
            return list(self._incomplete)
