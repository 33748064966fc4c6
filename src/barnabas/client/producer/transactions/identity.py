# Compiled by mypyc: src/compiled.toml lists this module.
"""As whom an idempotent producer writes: its producer id and epoch, the sequences of its partitions, and what has become of its batches.

A batch gets its sequence when it is sent for the first time (`assign_sequence`), and comes back here when it was written, refused, or has
expired. Where it is not certain what the broker has, only another epoch helps: `epoch_bump_required` asks for one, and the
TransactionManager sees to it. Nothing here knows of transactions but whether there are any. Calls are made under the manager's lock, which
is handed in, or take it.
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
        # Where a broker has written something of this producer id. Without that it takes any sequence for the first one.
        self.established: set[TopicPartition] = set()
        self.epoch_bump_required = False
        self._lock = lock
        # Batches expired after they were sent: the sequence after them, until it is known whether they were written.
        self._unresolved: dict[TopicPartition, int] = {}
        self._to_rewrite: set[TopicPartition] = set()

    # Producer id and epoch

    def set_producer(self, producer: ProducerIdAndEpoch) -> None:
        logger.info("ProducerId set to %d with epoch %d", producer.producer_id, producer.epoch)
        if producer.producer_id != self.producer.producer_id:
            self.established.clear()
        self.producer = producer

    def request_epoch_bump(self, partition: TopicPartition) -> None:
        """Only another epoch lets the sequences of the partition begin anew without being taken for old ones."""
        self.epoch_bump_required = True
        self._to_rewrite.add(partition)

    def bump_epoch(self) -> None:
        """A producer without transactions takes the next epoch by itself; after the last one it has no id any more."""
        known = self.producer
        self.set_producer(NONE if known.epoch == _EPOCH_MAX else ProducerIdAndEpoch(known.producer_id, known.epoch + 1))
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
        """The first time a batch is sent. From then on its sequence stays: the broker may have written it."""
        sequences = self.sequences.of(batch.topic_partition)
        if sequences.producer != self.producer and not sequences.in_flight:
            sequences.start_at_beginning(self.producer)
        batch.set_producer_state(self.producer.producer_id, self.producer.epoch, sequences.next_sequence, self.is_transactional)
        sequences.increment(batch.count)
        sequences.add_in_flight(batch)

    def has_unresolved_sequence(self, partition: TopicPartition) -> bool:
        return partition in self._unresolved

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """It expired after having been sent: nothing more is sent until what is under way has ended."""
        with self._lock:
            following = batch.last_sequence + 1
            self._unresolved[batch.topic_partition] = max(self._unresolved.get(batch.topic_partition, following), following)

    def resolve(self) -> bool:
        """Looks at partitions with expired batches once nothing of theirs is under way any more; True where a transaction lost some."""
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

    # What has become of a batch

    def batch_completed(self, batch: ProducerBatch, base_offset: int) -> None:
        with self._lock:
            if batch.producer_id == self.producer.producer_id:
                self.established.add(batch.topic_partition)
            known = self.sequences.known(batch.topic_partition)
            if known is not None:
                known.acked_sequence(batch.last_sequence)
            if base_offset != _INVALID_OFFSET and (known is not None or not self.is_transactional):
                self.sequences.of(batch.topic_partition).acked_offset(base_offset + batch.count - 1)
            self.remove_in_flight(batch)

    def batch_failed(self, batch: ProducerBatch, error: KafkaError, adjust_sequences: bool) -> None:
        """`adjust_sequences` says that the broker is certain not to have written it."""
        partition = batch.topic_partition
        if isinstance(error, OutOfOrderSequence) and not self.is_transactional:
            logger.error("The broker returned %r for topic-partition %s with producer %s", error, partition, self.producer)
            self.request_epoch_bump(partition)
        elif isinstance(error, UnknownProducerId):
            # The broker knows nothing of this producer: it takes a batch with sequence 0.
            self.sequences.forget(partition)
            self._unresolved.pop(partition, None)
        elif adjust_sequences:
            known = self.sequences.known(partition)
            if not self.is_transactional:
                self.request_epoch_bump(partition)
            elif known is not None:
                known.close_gap(batch)

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        known = self.sequences.known(batch.topic_partition)
        if known is not None:
            known.remove_in_flight(batch)

    def can_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool:
        """Whether a batch that was refused with this error may be sent again, and prepares for it."""
        with self._lock:
            if code == ErrorCode.UNKNOWN_PRODUCER_ID:
                return self._can_retry_unknown_producer(batch, log_start_offset)
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                return self._can_retry_out_of_order(batch)
            return error_for(code).retriable

    def _can_retry_unknown_producer(self, batch: ProducerBatch, log_start_offset: int) -> bool:
        if log_start_offset == _INVALID_OFFSET or batch.sequence_was_reset:
            # The partition was about to move; or the sequences have begun anew since this batch was sent.
            return True
        sequences = self.sequences.of(batch.topic_partition)
        if self.is_transactional:
            if sequences.last_acked_offset >= log_start_offset:
                return False
            # What it wrote has been deleted, and the broker's memory of it too.
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
            return True  # an earlier one is still to come
        if self.is_transactional:
            return False
        if unresolved is None or unresolved == batch.base_sequence:
            self.request_epoch_bump(partition)
        return True
