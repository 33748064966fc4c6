# Compiled by mypyc: src/compiled.toml lists this module.
"""Records of a transaction, from a produce to the logs: first their coordinator is asked, then they are appended.

The way of Produce when it names a transactional id; all others go to the replica manager straight away. What the coordinator refuses is not
appended, and told with an error that producers of all ages know what to do about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.partitions.append_call import Order
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

Entries = list[tuple[TopicPartition, Records]]
OnDone = Callable[[list[PartitionAppend]], None]

_ATTRIBUTES_AT: Final = 22  # their low byte, in a batch of format v2

_INVALID_TXN_STATE: Final = int(ErrorCode.INVALID_TXN_STATE)
_NOT_ENOUGH_REPLICAS: Final = int(ErrorCode.NOT_ENOUGH_REPLICAS)
_CONCURRENT_TRANSACTIONS: Final = int(ErrorCode.CONCURRENT_TRANSACTIONS)

# The coordinator could not be asked. Old producers do not send again after these, but do after NOT_ENOUGH_REPLICAS, and without asking for
# metadata first.
_NOT_ASKED: Final = {
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
    """One produce with a transactional id. Its results are those of `ReplicaManager.append_records`: one for each entry, in order."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        support: Support,
        timeout_ms: int,
        required_acks: int,
        entries: Entries,
        on_done: OnDone,
        *,
        internal_topics_allowed: bool,
        order: Order | None = None,
    ) -> None:
        self._replica_manager = replica_manager
        self._support = support
        self._timeout_ms = timeout_ms
        self._required_acks = required_acks
        self._entries = entries
        self._on_done = on_done
        self._internal_topics_allowed = internal_topics_allowed
        self._order = order

    def begin(self, verification: TransactionVerification, transactional_id: str) -> None:
        """Raises InvalidProducerIdMapping, for the produce as a whole, where it holds the records of more than one producer."""
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
            self._append(self._entries, self._on_done)
            return
        ((producer_id, producer_epoch),) = producers
        if self._order is not None:
            # What the client has sent next would be verified as soon as these records are, and overtake them if appending takes long.
            self._order.hold_next()
        verification.verify(self._support, transactional_id, producer_id, producer_epoch, sequences, self._verified, retries=True)

    def _verified(self, errors: Errors, guards: Guards) -> None:
        if self._order is not None:
            self._order.release_next()  # a later turn of the loop hands over the next request; a long append holds it again before that
        if not errors:
            self._append(self._entries, self._on_done, guards)
            return
        accepted = [entry for entry in self._entries if entry[0] not in errors]

        def merge(results: list[PartitionAppend]) -> None:
            appended = iter(results)
            merged = []
            for partition, _ in self._entries:
                code = errors.get(partition)
                merged.append(next(appended) if code is None else self._refused(partition, code))
            self._on_done(merged)

        if accepted:
            self._append(accepted, merge, guards)
        else:
            merge([])

    def _append(self, entries: Entries, on_done: OnDone, guards: Guards | None = None) -> None:
        self._replica_manager.append_records(
            self._timeout_ms,
            self._required_acks,
            entries,
            on_done,
            internal_topics_allowed=self._internal_topics_allowed,
            verification_guards=guards,
            order=self._order,
        )

    def _refused(self, partition: TopicPartition, code: int) -> PartitionAppend:
        if code == _INVALID_TXN_STATE:
            return PartitionAppend(partition, code, error_message="Partition was not added to the transaction")
        # With transaction version 2 the end of the last transaction is so often met that it is better called by its name.
        is_told = code == _CONCURRENT_TRANSACTIONS and self._support is Support.ADD_PARTITION
        if code in _NOT_ASKED and not is_told:
            message = f"Unable to verify the partition has been added to the transaction. Underlying error: {_NOT_ASKED[code]}"
            return PartitionAppend(partition, _NOT_ENOUGH_REPLICAS, error_message=message)
        return PartitionAppend(partition, code)


def is_transactional(records: Records) -> bool:
    """Whether its first batch is a transaction's; says nothing about a batch that is cut short."""
    data, start = records.data, records.start
    is_v2 = records.size >= HEADER_SIZE_V2 and data[start + MAGIC_AT] == MAGIC_V2
    return is_v2 and data[start + _ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
