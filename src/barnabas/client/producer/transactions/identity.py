# Compiled by mypyc: src/compiled.toml lists this module.
"""The identity of an idempotent producer: its producer id and epoch, the sequences of its partitions, and the outcomes of its batches.

A batch gets its sequence when it is sent for the first time (`assign_sequence`). Its outcome is reported here: written, rejected, or
expired. If it is uncertain what the broker has written, only a new epoch helps: `epoch_bump_required` requests one, and the
TransactionManager obtains it. The class knows nothing of transactions except whether the producer is transactional. Calls hold the
manager's lock, or take it.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from barnabas.client.errors import UnknownProducerId, error_for
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.transactions.sequences import NONE, ProducerIdAndEpoch, Sequences
from barnabas.errors import KafkaError, OutOfOrderSequence
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_EPOCH_MAX: Final = 2**15 - 1
_INVALID_OFFSET: Final = -1


class ProducerIdentity:
    def __init__(self, is_transactional: bool, lock: threading.RLock) -> None:
        self.is_transactional = is_transactional
        self.producer = NONE
        self.sequences = Sequences()
        # Partitions where a broker has written batches of this producer id. In others a broker accepts any sequence as the first one.
        self.established: set[TopicPartition] = set()
        self.epoch_bump_required = False
        self._lock = lock
        # Partitions with batches that expired after they were sent: the sequence after them, until it is known whether they were written.
        self._unresolved: dict[TopicPartition, int] = {}
        self._to_rewrite: set[TopicPartition] = set()

    # Producer id and epoch

    def set_producer(self, producer: ProducerIdAndEpoch) -> None:
        logger.info("ProducerId set to %d with epoch %d", producer.producer_id, producer.epoch)
        if producer.producer_id != self.producer.producer_id:
            self.established.clear()
        self.producer = producer

    def request_epoch_bump(self, partition: TopicPartition) -> None:
        """Requests a new epoch: only then can the sequences of the partition restart without being taken for duplicates."""
        self.epoch_bump_required = True
        self._to_rewrite.add(partition)

    def bump_epoch(self) -> None:
        """Increments the epoch of a producer without transactions; after the last epoch the producer id is dropped."""
        current = self.producer
        self.set_producer(NONE if current.epoch == _EPOCH_MAX else ProducerIdAndEpoch(current.producer_id, current.epoch + 1))
        for partition in self._to_rewrite:
            sequences = self.sequences.known(partition)
            if sequences is not None:
                sequences.start_at_beginning(self.producer)
            self._unresolved.pop(partition, None)
        self._to_rewrite.clear()
        self.epoch_bump_required = False

    # Sequences

    def reset_sequences(self) -> None:
        self.sequences.reset()
        self._unresolved.clear()

    def assign_sequence(self, batch: ProducerBatch) -> None:
        """Assigns a sequence when a batch is sent for the first time. After that the sequence stays, because the broker may have written
        the batch."""
        sequences = self.sequences.of(batch.topic_partition)
        if sequences.producer != self.producer and not sequences.in_flight:
            sequences.start_at_beginning(self.producer)
        batch.set_producer_state(self.producer.producer_id, self.producer.epoch, sequences.next_sequence, self.is_transactional)
        sequences.increment(batch.count)
        sequences.add_in_flight(batch)

    def has_unresolved_sequence(self, partition: TopicPartition) -> bool:
        return partition in self._unresolved

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Records a batch that expired after it was sent: nothing more is sent to the partition until all batches in flight have
        completed."""
        with self._lock:
            following = batch.last_sequence + 1
            self._unresolved[batch.topic_partition] = max(self._unresolved.get(batch.topic_partition, following), following)

    def resolve(self) -> bool:
        """Checks partitions with expired batches when none of their batches are in flight; True if a transaction lost a batch."""
        lost = False
        for partition in list(self._unresolved):
            sequences = self.sequences.of(partition)
            if sequences.in_flight:
                continue
            del self._unresolved[partition]
            if sequences.is_next(sequences.next_sequence):
                continue  # later batches were written, so the expired one was too
            if self.is_transactional:
                lost = True
            else:
                self.request_epoch_bump(partition)
        return lost

    # Outcomes of batches

    def batch_completed(self, batch: ProducerBatch, base_offset: int) -> None:
        with self._lock:
            if batch.producer_id == self.producer.producer_id:
                self.established.add(batch.topic_partition)
            sequences = self.sequences.known(batch.topic_partition)
            if sequences is not None:
                sequences.acked_sequence(batch.last_sequence)
            if base_offset != _INVALID_OFFSET and (sequences is not None or not self.is_transactional):
                self.sequences.of(batch.topic_partition).acked_offset(base_offset + batch.count - 1)
            self.remove_in_flight(batch)

    def batch_failed(self, batch: ProducerBatch, error: KafkaError, adjust_sequences: bool) -> None:
        """`adjust_sequences` means that the broker has certainly not written the batch."""
        partition = batch.topic_partition
        if isinstance(error, OutOfOrderSequence) and not self.is_transactional:
            logger.error("The broker returned %r for topic-partition %s with producer %s", error, partition, self.producer)
            self.request_epoch_bump(partition)
        elif isinstance(error, UnknownProducerId):
            # The broker has no state of this producer: it accepts a batch with sequence 0.
            self.sequences.forget(partition)
            self._unresolved.pop(partition, None)
        elif adjust_sequences:
            sequences = self.sequences.known(partition)
            if not self.is_transactional:
                self.request_epoch_bump(partition)
            elif sequences is not None:
                sequences.close_gap(batch)

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        sequences = self.sequences.known(batch.topic_partition)
        if sequences is not None:
            sequences.remove_in_flight(batch)

    def can_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool:
        """Whether a batch that was rejected with this error may be retried; prepares for the retry."""
        with self._lock:
            if code == ErrorCode.UNKNOWN_PRODUCER_ID:
                return self._can_retry_unknown_producer(batch, log_start_offset)
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                return self._can_retry_out_of_order(batch)
            return error_for(code).retriable

    def _can_retry_unknown_producer(self, batch: ProducerBatch, log_start_offset: int) -> bool:
        if log_start_offset == _INVALID_OFFSET or batch.sequence_was_reset:
            # The partition was about to move, or the sequences have restarted since this batch was sent.
            return True
        sequences = self.sequences.of(batch.topic_partition)
        if self.is_transactional:
            if sequences.last_acked_offset >= log_start_offset:
                return False
            # The records that it wrote were deleted, and with them the broker's producer state.
            sequences.start_at_beginning(self.producer)
            return True
        self.request_epoch_bump(batch.topic_partition)
        return True

    def _can_retry_out_of_order(self, batch: ProducerBatch) -> bool:
        partition = batch.topic_partition
        unresolved = self._unresolved.get(partition)
        sequences = self.sequences.of(partition)
        overtaken = not batch.sequence_was_reset and batch.base_sequence <= sequences.last_acked_sequence
        if unresolved is None and not overtaken and (batch.sequence_was_reset or not sequences.is_next(batch.base_sequence)):
            return True  # an earlier batch is still in flight
        if self.is_transactional:
            return False
        if unresolved is None or unresolved == batch.base_sequence:
            self.request_epoch_bump(partition)
        return True
