# Compiled by mypyc: src/compiled.toml lists this module.
"""Handles a Produce with a transactional id: verifies its partitions with the transaction coordinator, then appends the records.

A Produce without a transactional id goes directly to the replica manager. Records that the coordinator rejects are not appended; the error
codes are ones that all versions of producers understand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.transactions.transaction_verification import Errors, Guards, Support
from barnabas.errors import InvalidProducerIdMapping
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.slices import Records
from barnabas.records.batch import HEADER_SIZE_V2, MAGIC_AT, MAGIC_V2, TRANSACTIONAL_BIT, read_batch
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.transactions.transaction_verification import TransactionVerification

ATTRIBUTES_AT: Final = 22  # of their low byte, in a batch of format v2

_INVALID_TXN_STATE: Final = int(ErrorCode.INVALID_TXN_STATE)
_NOT_ENOUGH_REPLICAS: Final = int(ErrorCode.NOT_ENOUGH_REPLICAS)
_CONCURRENT_TRANSACTIONS: Final = int(ErrorCode.CONCURRENT_TRANSACTIONS)

# The coordinator could not verify. Old producers do not retry after these codes, but they retry after NOT_ENOUGH_REPLICAS, without
# refreshing their metadata first.
_UNVERIFIED: Final = {
    int(code): code.name
    for code in (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
}


class TransactionalProduce:
    """One Produce with a transactional id. `on_done` gets one result per entry, in order, as from `ReplicaManager.append_records`."""

    def __init__(self, replica_manager: ReplicaManager, support: Support, call: AppendCall) -> None:
        self._replica_manager = replica_manager
        self._support = support
        self._call = call
        self._entries = call.entries
        self._on_done = call.on_done

    def begin(self, verification: TransactionVerification, transactional_id: str) -> None:
        """Raises InvalidProducerIdMapping, for the whole request, if it has records of more than one producer."""
        sequences: dict[TopicPartition, int] = {}
        producers: set[tuple[int, int]] = set()
        for partition, records in self._entries:
            if is_transactional(records):
                batch = read_batch(records.data, records.start, records.size)
                if batch.has_producer_id:
                    producers.add((batch.producer_id, batch.producer_epoch))
                    sequences[partition] = batch.base_sequence
        if len(producers) > 1:
            raise InvalidProducerIdMapping("Transactional records contained more than one producer ID")
        if not producers:
            self._replica_manager.append_records(self._call)
            return
        ((producer_id, producer_epoch),) = producers
        if self._call.order is not None:
            # The next request of the client would be verified as soon as these records are, and overtake them if appending takes long.
            self._call.order.hold_next()
        verification.verify(self._support, transactional_id, producer_id, producer_epoch, sequences, self._verified, retries=True)

    def _verified(self, errors: Errors, guards: Guards) -> None:
        call = self._call
        if call.order is not None:
            call.order.release_next()  # a later turn of the loop hands over the next request; a long append holds it again before that
        if errors:
            call.entries = [entry for entry in self._entries if entry[0] not in errors]
            call.on_done = lambda results: self._on_done(self._merged(errors, results))
        if call.entries:
            call.verification_guards = guards
            self._replica_manager.append_records(call)
        else:
            call.on_done([])

    def _merged(self, errors: Errors, results: list[PartitionAppend]) -> list[PartitionAppend]:
        """The results of all entries, in their order: those that were appended, and those that the coordinator refused."""
        appended = iter(results)
        merged = []
        for partition, _ in self._entries:
            code = errors.get(partition)
            merged.append(next(appended) if code is None else self._refused(partition, code))
        return merged

    def _refused(self, partition: TopicPartition, code: int) -> PartitionAppend:
        if code == _INVALID_TXN_STATE:
            return PartitionAppend(partition, code, error_message="Partition was not added to the transaction")
        # With transaction version 2 a producer often begins before its last transaction has ended, and it understands this code.
        is_understood = code == _CONCURRENT_TRANSACTIONS and self._support is Support.ADD_PARTITION
        if code in _UNVERIFIED and not is_understood:
            message = f"Unable to verify the partition has been added to the transaction. Underlying error: {_UNVERIFIED[code]}"
            return PartitionAppend(partition, _NOT_ENOUGH_REPLICAS, error_message=message)
        return PartitionAppend(partition, code)


def is_transactional(records: Records) -> bool:
    """Whether the first batch is transactional. False for a batch that is cut short."""
    data, start = records.data, records.start
    is_v2 = records.size >= HEADER_SIZE_V2 and data[start + MAGIC_AT] == MAGIC_V2
    return is_v2 and data[start + ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
