"""Transactions that hang: a partition has records of an open transaction, but no coordinator will end it.

Readers with read_committed stop before such a transaction, and the log cannot be compacted from there on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.async_admin import AsyncAdmin
    from barnabas.client.admin.topics.producers import ProducerState
    from barnabas.client.admin.topics.transactions import TransactionDescription

PARTITIONS_MAX: Final = 20_000  # in one search
_BATCH: Final = 500  # partitions a request


@dataclass(frozen=True, slots=True)
class Hanging:
    """An open transaction of a producer in one partition."""

    partition: TopicPartition
    producer: ProducerState

    @property
    def coordinator_epoch(self) -> int:
        """The epoch for the abort: a producer that has never completed a transaction has none, and 0 is never too new."""
        return max(self.producer.coordinator_epoch or 0, 0)


async def find_hanging(admin: AsyncAdmin, partitions: Sequence[TopicPartition], longer_than_ms: int, now_ms: int) -> list[Hanging]:
    """The transactions in these partitions that hang. Raises KafkaError; partitions that cannot be described are left out."""
    candidates: list[Hanging] = []
    for start in range(0, len(partitions), _BATCH):
        described = await admin.describe_producers(partitions[start : start + _BATCH])
        candidates += long_open(described.successes, longer_than_ms, now_ms)
    if not candidates:
        return []
    ids = {one.producer.producer_id for one in candidates}
    listed = (await admin.list_transactions(producer_ids=ids)).all()
    names = {one.producer_id: one.transactional_id for listings in listed.values() for one in listings}
    known: dict[str, TransactionDescription] = {}
    if names:
        outcomes = await admin.describe_transactions(sorted(set(names.values())))
        for refusal in outcomes.errors.values():
            if refusal.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise refusal
        known = outcomes.successes
    return unknown_to_coordinators(candidates, names, known)


def long_open(producers: Mapping[TopicPartition, Iterable[ProducerState]], longer_than_ms: int, now_ms: int) -> list[Hanging]:
    """The producers with a transaction that is open and has had no record for so long."""
    return [
        Hanging(partition, producer)
        for partition, states in producers.items()
        for producer in states
        if producer.current_transaction_start_offset is not None and now_ms - producer.last_timestamp > longer_than_ms
    ]


def unknown_to_coordinators(
    candidates: Iterable[Hanging], names: Mapping[int, str], known: Mapping[str, TransactionDescription]
) -> list[Hanging]:
    """Those whose coordinator does not have the partition in a transaction, so that it will write no marker there."""
    hanging = []
    for one in candidates:
        description = known.get(names.get(one.producer.producer_id, ""))
        if description is None or one.partition not in description.topic_partitions:
            hanging.append(one)
    return hanging
