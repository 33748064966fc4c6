# Compiled by mypyc: src/compiled.toml lists this module.
"""The log of a coordinator's partition, as its runtime uses it, and the producer that records belong to."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.verification import VerificationGuard


class TransactionProducer(NamedTuple):
    """The producer in whose transaction the records of a write belong. `guard` is issued by the log and proves that the transaction
    coordinator has verified the partition. `transaction_version` says how to interpret the epoch of an end marker."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    guard: VerificationGuard | None = None
    transaction_version: int = TRANSACTION_VERSION_UNKNOWN


NO_TRANSACTION: Final = TransactionProducer()


class CoordinatorPartitionLog(Protocol):
    """The partitions of the coordinator's topic, as the runtime uses them. All calls are synchronous, on the event loop."""

    def append(self, partition: int, batch: bytes, producer: TransactionProducer = NO_TRANSACTION) -> int:
        """Append one batch as leader and return the offset of its first record. Raises the KafkaError a producer would receive."""

    def high_watermark(self, partition: int) -> int: ...

    def max_batch_size(self, partition: int) -> int:
        """max.message.bytes of the topic."""

    def log_start_offset(self, partition: int) -> int: ...

    def log_end_offset(self, partition: int) -> int:
        """-1 when this broker is not the leader."""

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Whole batches starting with the one that contains `offset`, at least one; empty at the end of the log. Raises CorruptRecord
        where the log is damaged."""

    def next_segment(self, partition: int, offset: int) -> int:
        """The base offset of the segment after the one that contains `offset`, or the log end offset."""
