# Compiled by mypyc: src/compiled.toml lists this module.
"""An append of one producer, checked batch by batch before anything is written.

The check starts from the state of the producer in the partition and collects the changes. `ProducerStateManager.update` applies them once
the batches are in the log. Epochs fence zombies, sequences reveal gaps. A follower does not repeat the checks of its leader.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64, mypyc_attr

from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence, TransactionCoordinatorFenced
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, SEQUENCE_MAX, Batch
from barnabas.records.validation.validation import CLIENT, REPLICATION
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.entry import NO_OFFSET, ProducerStateEntry
from barnabas.storage.producers.verification import VerificationStateEntry

_log = logging.getLogger(__name__)

TRANSACTION_VERSION_UNKNOWN: Final = -1


@mypyc_attr(acyclic=True)
class TxnMetadata:
    """A transaction with data in this partition. `last_offset` is the offset of its marker, -1 while it is open."""

    def __init__(self, producer_id: i64, first_offset: LogOffset) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset: i64 = NO_OFFSET


@mypyc_attr(acyclic=True)
class CompletedTxn:
    """A transaction whose marker, at `last_offset`, was appended."""

    def __init__(self, producer_id: i64, first_offset: i64, last_offset: i64, is_aborted: bool) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.is_aborted = is_aborted


@mypyc_attr(acyclic=True)
class ProducerAppendInfo:
    def __init__(
        self,
        partition: str,
        producer_id: i64,
        current: ProducerStateEntry,
        origin: i64,
        verification: VerificationStateEntry | None = None,
    ) -> None:
        self.partition = partition
        self.producer_id = producer_id
        self.current = current
        self.updated = current.without_batches()
        self.origin = origin
        self.verification = verification
        self.started: list[TxnMetadata] | None = None

    def append_batch(self, batch: Batch, first_offset: LogOffset | None = None) -> None:
        """Checks a batch of data, which has its final offsets; `first_offset` is its position in the log, if known."""
        updated = self.updated
        epoch: i64 = batch.producer_epoch
        if epoch < updated.producer_epoch:
            self._fence(epoch, batch.base_offset, TRANSACTION_VERSION_UNKNOWN)
        if self.origin == CLIENT:
            self._check_sequence(epoch, batch.base_sequence, batch.base_offset)
        updated.add_batch(epoch, batch.last_sequence, batch.last_offset, batch.last_offset - batch.base_offset, batch.max_timestamp)
        if batch.is_transactional:
            if updated.current_txn_first_offset == NO_OFFSET:
                updated.current_txn_first_offset = batch.base_offset
                txn = TxnMetadata(self.producer_id, first_offset or LogOffset(batch.base_offset))
                if self.started is None:
                    self.started = []
                self.started.append(txn)
        elif updated.current_txn_first_offset != NO_OFFSET:
            place = first_offset or LogOffset(batch.base_offset)
            raise InvalidTxnState(
                f"Expected transactional write from producer {self.producer_id} at offset (offset={place.offset}, "
                f"segment=[{place.segment_base}:{place.position}]) in partition {self.partition}"
            )

    def append_end_txn_marker(
        self,
        committed: bool,
        coordinator_epoch: i64,
        producer_epoch: i64,
        offset: i64,
        timestamp: i64,
        transaction_version: i64 = TRANSACTION_VERSION_UNKNOWN,
    ) -> CompletedTxn | None:
        """Checks a marker; returns the transaction that it ends, None if there is none, because then nothing changes for a reader.

        From transaction version 2 on the coordinator raises the epoch with every marker. So a marker of the current epoch is late, unless
        the transaction has already ended and the marker is a retry. Only the leader knows the version: it is not in the marker.
        """
        updated = self.updated
        late = producer_epoch < updated.producer_epoch
        if transaction_version >= 2 and producer_epoch == updated.producer_epoch:
            late = updated.current_txn_first_offset != NO_OFFSET
        if late:
            self._fence(producer_epoch, offset, max(transaction_version, 0))
        if coordinator_epoch < updated.coordinator_epoch:
            self._fence_coordinator(coordinator_epoch, offset)
        completed: CompletedTxn | None = None
        if updated.current_txn_first_offset != NO_OFFSET:
            completed = CompletedTxn(self.producer_id, updated.current_txn_first_offset, offset, not committed)
        updated.end_transaction(producer_epoch, coordinator_epoch, timestamp)
        return completed

    def _check_sequence(self, epoch: i64, first_sequence: i64, offset: i64) -> None:
        if self.verification is not None:
            self._check_verification(self.verification, first_sequence, offset)
        updated = self.updated
        if epoch != updated.producer_epoch:
            if first_sequence != 0 and updated.producer_epoch != NO_PRODUCER_EPOCH:
                # The missing space is Kafka's: scripts match this text.
                raise OutOfOrderSequence(
                    f"Invalid sequence number for new epoch of producer {self.producer_id}at offset {offset} in partition "
                    f"{self.partition}: {epoch} (request epoch), {first_sequence} (seq. number), "
                    f"{updated.producer_epoch} (current producer epoch)"
                )
            return
        current = self.current
        last_sequence: i64 = NO_SEQUENCE
        if updated.batches:
            last_sequence = updated.last_sequence
        elif epoch == current.producer_epoch:
            last_sequence = current.last_sequence
        if first_sequence == last_sequence + 1 or (first_sequence == 0 and last_sequence == SEQUENCE_MAX):
            return
        # Without state of the producer, because it expired or its records were deleted, any sequence is accepted.
        if current.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequence(
                f"Out of order sequence number for producer {self.producer_id} at offset {offset} in partition "
                f"{self.partition}: {first_sequence} (incoming seq. number), {last_sequence} (current end sequence number)"
            )

    def _check_verification(self, verification: VerificationStateEntry, first_sequence: i64, offset: i64) -> None:
        if verification.supports_epoch_bump and first_sequence != 0 and self.current.is_empty:
            raise OutOfOrderSequence(
                f"Invalid sequence number for producer {self.producer_id} at offset {offset} in partition {self.partition}: "
                f"{first_sequence} (incoming seq. number). "
                "Expected sequence 0 for transactions v2 idempotent producer with no existing state."
            )
        if first_sequence > verification.lowest_sequence:
            raise OutOfOrderSequence(
                f"Out of order sequence number for producer {self.producer_id} at offset {offset} in partition {self.partition}: "
                f"{first_sequence} (incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)"
            )

    def _fence(self, epoch: i64, offset: i64, transaction_version: i64) -> None:
        comparison = "<=" if transaction_version >= 2 else "<"
        message = (
            f"Epoch of producer {self.producer_id} at offset {offset} in {self.partition} is {epoch}, which is {comparison} "
            f"the last seen epoch {self.updated.producer_epoch} (TV{transaction_version})"
        )
        if self.origin != REPLICATION:
            raise InvalidProducerEpoch(message)
        _log.warning("%s", message)

    def _fence_coordinator(self, coordinator_epoch: i64, offset: i64) -> None:
        current: i64 = self.updated.coordinator_epoch
        if self.origin != REPLICATION:
            raise TransactionCoordinatorFenced(
                f"Invalid coordinator epoch for producerId {self.producer_id} at offset {offset} in partition {self.partition}: "
                f"{coordinator_epoch} (zombie), {current} (current)"
            )
        _log.info(
            "Detected invalid coordinator epoch for producerId %d at offset %d in partition %s: "
            "%d is older than previously known coordinator epoch %d",
            self.producer_id,
            offset,
            self.partition,
            coordinator_epoch,
            current,
        )
