"""The state of one transactional id, and each step from there.

An immutable value: every step returns a new one, so that nothing changes before the log has the step. All fields but `last_producer_epoch`
are in the log, and `of_record(to_record(x))` is x without that field. `decisions` chooses the step.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.coordinator.transaction.transaction_state import TransactionState, state_of_id
from barnabas.protocol.coordinator_records.transaction_log_key import TransactionLogKey
from barnabas.protocol.coordinator_records.transaction_log_value import PartitionsSchema, TransactionLogValue
from barnabas.topic_partition import TopicPartition

TRANSACTION_LOG: Final = 0  # the type of the records of `__transaction_state`
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
EPOCH_MAX: Final = 2**15 - 1
LAST_CLIENT_EPOCH: Final = EPOCH_MAX - 1  # no client gets the last epoch, so that every producer can still be fenced
NO_TIMEOUT_MS: Final = 2**31 - 1  # of a two-phase-commit transaction: only its producer ends it
EPOCH_BUMP_VERSION: Final = 2  # of the transaction protocol: every end of a transaction gives its producer a new epoch
FLEXIBLE_RECORDS_VERSION: Final = 1  # of the transaction protocol: the records of the log can have tagged fields


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH  # the previous epoch, if its producer requested the bump; detects a retry
    previous_producer_id: int = NO_PRODUCER_ID  # if the last step changed the producer id; detects a retry of that step
    next_producer_id: int = NO_PRODUCER_ID  # the id the producer continues with, when this one has no epoch left
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp: int = NO_TIMESTAMP
    last_update_timestamp: int = NO_TIMESTAMP
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_two_phase_commit(self) -> bool:
        return self.timeout_ms == NO_TIMEOUT_MS

    def is_timed_out(self, now_ms: int) -> bool:
        if self.state is not TransactionState.ONGOING or self.is_two_phase_commit:
            return False
        return self.start_timestamp + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.state.is_settled and self.last_update_timestamp <= now_ms - expiration_ms

    # -- steps

    def with_epoch(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """InitProducerId: the same producer id with another epoch, or the same epoch again for a retry."""
        return self._settled_anew(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def with_new_producer_id(self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """InitProducerId, when the producer id has no epoch left."""
        return self._settled_anew(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _settled_anew(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        return self._step(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_timestamp=NO_TIMESTAMP,
            last_update_timestamp=now_ms,
        )

    def with_partitions(self, added: frozenset[TopicPartition], client_version: int, now_ms: int) -> TransactionMetadata:
        return self._step(
            TransactionState.ONGOING,
            partitions=self.partitions | added,
            start_timestamp=now_ms if self.state.is_settled else self.start_timestamp,
            last_update_timestamp=now_ms,
            client_transaction_version=client_version,
        )

    def prepared(self, *, committed: bool, client_version: int, next_producer_id: int, now_ms: int) -> TransactionMetadata:
        """The end is decided. From version 2 on with the next epoch, also for the markers: no older record can be appended after them."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_BUMP_VERSION:
            epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
        return self._step(
            TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            # The abort of a transaction that never began needs a start time: now.
            start_timestamp=now_ms if self.state.is_settled else self.start_timestamp,
            last_update_timestamp=now_ms,
            client_transaction_version=client_version,
        )

    def fenced(self, server_version: int, now_ms: int) -> TransactionMetadata:
        """Aborted by the coordinator, with the next epoch, so that the producer of the transaction is fenced. Needs no new producer id."""
        if server_version >= EPOCH_BUMP_VERSION:
            return self.prepared(committed=False, client_version=server_version, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms)
        bumped = self._replace(producer_epoch=min(self.producer_epoch + 1, EPOCH_MAX), last_producer_epoch=NO_PRODUCER_EPOCH)
        return bumped.prepared(committed=False, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms)

    def completed(self, now_ms: int) -> TransactionMetadata:
        """All markers are written."""
        is_rotated = self.client_transaction_version >= EPOCH_BUMP_VERSION and self.next_producer_id != NO_PRODUCER_ID
        return self._step(
            TransactionState.COMPLETE_COMMIT if self.state is TransactionState.PREPARE_COMMIT else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if is_rotated else self.producer_id,
            producer_epoch=0 if is_rotated else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            last_update_timestamp=now_ms,
        )

    def _step(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        if not state.may_follow(self.state):
            raise ValueError(f"Transaction {self.transactional_id} cannot go from {self.state.title} to {state.title}")
        after = self._replace(state=state, previous_producer_id=NO_PRODUCER_ID, **changes)  # type: ignore[arg-type]
        return after if after.producer_id == self.producer_id else after._replace(previous_producer_id=self.producer_id)

    # -- the log

    def to_record(self, transaction_version: int) -> CoordinatorRecord:
        """The record as Kafka writes it at this level of transaction.version: with tagged fields from 1 on."""
        version = 1 if transaction_version >= FLEXIBLE_RECORDS_VERSION else 0
        value = TransactionLogValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state.id,
            transaction_partitions=None if self.state is TransactionState.EMPTY else _by_topic(self.partitions),
            transaction_last_update_timestamp_ms=self.last_update_timestamp,
            transaction_start_timestamp_ms=self.start_timestamp,
        )
        if version:
            value.previous_producer_id = self.previous_producer_id
            value.next_producer_id = self.next_producer_id
            value.client_transaction_version = self.client_transaction_version
        return CoordinatorRecord(TRANSACTION_LOG, TransactionLogKey(self.transactional_id), value, version)

    @staticmethod
    def of_record(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
        return TransactionMetadata(
            transactional_id,
            value.producer_id,
            value.producer_epoch,
            NO_PRODUCER_EPOCH,
            value.previous_producer_id,
            value.next_producer_id,
            value.transaction_timeout_ms,
            state_of_id(value.transaction_status),
            frozenset(
                TopicPartition(topic.topic, partition) for topic in value.transaction_partitions or () for partition in topic.partition_ids
            ),
            value.transaction_start_timestamp_ms,
            value.transaction_last_update_timestamp_ms,
            value.client_transaction_version,
        )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TRANSACTION_LOG, TransactionLogKey(transactional_id))


def is_epoch_exhausted(epoch: int) -> bool:
    return epoch >= LAST_CLIENT_EPOCH


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic, ids) for topic, ids in topics.items()]
