# Compiled by mypyc: src/compiled.toml lists this module.
"""The sequence numbers of an idempotent producer: for each partition the next one, the last acknowledged one, and the batches in flight.

A broker appends the batches of a producer in the order of their sequences, and detects duplicates by them. A sequence is assigned when a
batch is sent for the first time, and reused only if certainly no broker has received it.
"""

from __future__ import annotations

from bisect import insort
from typing import Final, NamedTuple

from barnabas.client.errors import IllegalState
from barnabas.client.producer.batch import ProducerBatch
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_MAX, increment_sequence
from barnabas.topic_partition import TopicPartition

NO_LAST_ACKED_SEQUENCE: Final = -1


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    def __str__(self) -> str:
        return f"(producerId={self.producer_id}, epoch={self.epoch})"


NONE: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class PartitionSequences:
    """The sequences of one partition."""

    def __init__(self) -> None:
        self.producer = NONE
        self.next_sequence = 0
        self.last_acked_sequence = NO_LAST_ACKED_SEQUENCE
        self.last_acked_offset = -1
        # Batches that were sent and are not completed, oldest first; the key is unique, so that batches are never compared.
        self._in_flight: list[tuple[tuple[int, int, int], ProducerBatch]] = []

    @property
    def in_flight(self) -> bool:
        return bool(self._in_flight)

    @property
    def first_in_flight_sequence(self) -> int:
        return self._in_flight[0][1].base_sequence if self._in_flight else NO_SEQUENCE

    def increment(self, count: int) -> None:
        self.next_sequence = increment_sequence(self.next_sequence, count)

    def add_in_flight(self, batch: ProducerBatch) -> None:
        if not batch.has_sequence:
            raise IllegalState(f"Can't track batch for partition {batch.topic_partition} when sequence is not set.")
        insort(self._in_flight, (_order(batch), batch), key=lambda entry: entry[0])

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        self._in_flight = [entry for entry in self._in_flight if entry[1] is not batch]

    def acked_sequence(self, sequence: int) -> None:
        self.last_acked_sequence = max(self.last_acked_sequence, sequence)

    def acked_offset(self, offset: int) -> None:
        self.last_acked_offset = max(self.last_acked_offset, offset)

    def is_next(self, sequence: int) -> bool:
        return sequence - self.last_acked_sequence == 1

    def start_at_beginning(self, producer: ProducerIdAndEpoch) -> None:
        """Restarts the sequences with 0 for another producer id or epoch, also those of batches in flight."""
        sequence = 0
        batches = [batch for _, batch in self._in_flight]
        for batch in batches:
            batch.reset_producer_state(producer.producer_id, producer.epoch, sequence)
            sequence = increment_sequence(sequence, batch.count)
        self._in_flight = [(_order(batch), batch) for batch in batches]
        self.producer = producer
        self.next_sequence = sequence
        self.last_acked_sequence = NO_LAST_ACKED_SEQUENCE

    def close_gap(self, failed: ProducerBatch) -> None:
        """Closes the gap of a rejected batch: later batches take over its sequences, otherwise they would be rejected as well."""
        self.next_sequence = decrement_sequence(self.next_sequence, failed.count)
        batches = [batch for _, batch in self._in_flight]
        for batch in batches:
            if batch.base_sequence < failed.base_sequence:
                continue
            sequence = batch.base_sequence - failed.count
            if sequence < 0:
                raise IllegalState(
                    f"Sequence number for batch with sequence {batch.base_sequence} for partition {batch.topic_partition} "
                    f"is going to become negative: {sequence}"
                )
            batch.reset_producer_state(batch.producer_id, batch.producer_epoch, sequence)
        self._in_flight = [(_order(batch), batch) for batch in batches]


class Sequences:
    """The sequences of all partitions of a producer."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionSequences] = {}

    def of(self, partition: TopicPartition) -> PartitionSequences:
        sequences = self._partitions.get(partition)
        if sequences is None:
            sequences = self._partitions[partition] = PartitionSequences()
        return sequences

    def known(self, partition: TopicPartition) -> PartitionSequences | None:
        return self._partitions.get(partition)

    def forget(self, partition: TopicPartition) -> None:
        self._partitions.pop(partition, None)

    def reset(self) -> None:
        self._partitions.clear()


def decrement_sequence(sequence: int, count: int) -> int:
    return SEQUENCE_MAX - (count - sequence) + 1 if sequence < count else sequence - count


def _order(batch: ProducerBatch) -> tuple[int, int, int]:
    return (batch.producer_id, batch.producer_epoch, batch.base_sequence)
