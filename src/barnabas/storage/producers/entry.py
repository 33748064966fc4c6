# Compiled by mypyc: src/compiled.toml lists this module.
"""The state of one producer in a partition: its epoch, its last five batches, and the first offset of its open transaction.

Idempotence relies on it. The response to a retry of one of the five batches has the offsets of the original. There are five because a
producer may have five requests in flight.

A broker may have a hundred thousand of these objects. None is part of a reference cycle, so the compiled classes are not tracked by the
garbage collector (`acyclic`), whose pauses grow with the number of tracked objects.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX, Batch

NUM_BATCHES_TO_RETAIN: Final = 5
NO_COORDINATOR_EPOCH: Final = -1
NO_OFFSET: Final = -1


@mypyc_attr(acyclic=True)
class BatchMetadata:
    """The properties of a batch in the log by which a retry is recognised and answered."""

    def __init__(self, last_sequence: i64, last_offset: i64, offset_delta: i64, timestamp: i64) -> None:
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp

    @property
    def first_sequence(self) -> i64:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> i64:
        return self.last_offset - self.offset_delta


@mypyc_attr(acyclic=True)
class ProducerStateEntry:
    """One producer. `current_txn_first_offset` is -1 while it has no open transaction in this partition."""

    def __init__(
        self,
        producer_id: i64,
        producer_epoch: i64 = NO_PRODUCER_EPOCH,
        coordinator_epoch: i64 = NO_COORDINATOR_EPOCH,
        last_timestamp: i64 = NO_TIMESTAMP,
        current_txn_first_offset: i64 = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches: list[BatchMetadata] = []  # oldest first

    @property
    def is_empty(self) -> bool:
        return not self.batches

    @property
    def first_sequence(self) -> i64:
        return self.batches[0].first_sequence if self.batches else NO_SEQUENCE

    @property
    def last_sequence(self) -> i64:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def first_data_offset(self) -> i64:
        return self.batches[0].first_offset if self.batches else NO_OFFSET

    @property
    def last_data_offset(self) -> i64:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> i64:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, batch: Batch) -> BatchMetadata | None:
        """The batch in the log of which this one is a retry."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        last_sequence: i64 = batch.last_sequence
        for appended in self.batches:
            if appended.last_sequence == last_sequence and appended.first_sequence == batch.base_sequence:
                return appended
        return None

    def without_batches(self) -> ProducerStateEntry:
        return ProducerStateEntry(
            self.producer_id, self.producer_epoch, self.coordinator_epoch, self.last_timestamp, self.current_txn_first_offset
        )

    def add_batch(self, producer_epoch: i64, last_sequence: i64, last_offset: i64, offset_delta: i64, timestamp: i64) -> None:
        self._set_epoch(producer_epoch)
        self.retain(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        self.last_timestamp = timestamp

    def end_transaction(self, producer_epoch: i64, coordinator_epoch: i64, timestamp: i64) -> None:
        self._set_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_OFFSET
        self.last_timestamp = timestamp

    def absorb(self, later: ProducerStateEntry) -> None:
        """Adds the batches that were appended after this state."""
        self._set_epoch(later.producer_epoch)
        for batch in later.batches:
            self.retain(batch)
        self.coordinator_epoch = later.coordinator_epoch
        self.current_txn_first_offset = later.current_txn_first_offset
        self.last_timestamp = later.last_timestamp

    def retain(self, batch: BatchMetadata) -> None:
        if len(self.batches) == NUM_BATCHES_TO_RETAIN:
            del self.batches[0]
        self.batches.append(batch)

    def _set_epoch(self, producer_epoch: i64) -> None:
        """In a new epoch sequences start at 0 again: no batch of the old epoch can be retried."""
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


def decrement_sequence(sequence: i64, decrement: i64) -> i64:
    """Sequences wrap from 0 back to 2**31 - 1."""
    if sequence < decrement:
        return SEQUENCE_MAX - (decrement - sequence) + 1
    return sequence - decrement
