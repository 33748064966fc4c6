# Compiled by mypyc: src/compiled.toml lists this module.
"""One append to some partitions: what is to be appended, and what became of it so far.

The replica manager makes it for every produce and is mostly done with it in the same call; where some of the records take longer, the rest
is left to `long_appends`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.network.exchange import Peer
from barnabas.protocol.slices import Records
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_partition import TopicPartition


class Order(Protocol):
    """What keeps the requests of one client in order: an Exchange."""

    connection: Peer

    def hold_next(self) -> None: ...

    def release_next(self) -> None: ...


class AppendCall:
    """One call of `ReplicaManager.append_records`: what is to be appended, and what became of it so far."""

    __slots__ = (
        "entries",
        "internal_topics_allowed",
        "on_done",
        "origin",
        "required_acks",
        "results",
        "timeout_ms",
        "transaction_version",
        "verification_guards",
    )

    def __init__(
        self,
        timeout_ms: int,
        required_acks: int,
        entries: list[tuple[TopicPartition, Records]],
        on_done: Callable[[list[PartitionAppend]], None],
        internal_topics_allowed: bool,
        origin: int,
        verification_guards: dict[TopicPartition, VerificationGuard] | None,
        transaction_version: int,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.required_acks = required_acks
        self.entries = entries
        self.on_done = on_done
        self.internal_topics_allowed = internal_topics_allowed
        self.origin = origin
        self.verification_guards = verification_guards
        self.transaction_version = transaction_version
        self.results: list[PartitionAppend] = []  # of the entries from the first on

    @property
    def next_entry(self) -> tuple[TopicPartition, Records]:
        return self.entries[len(self.results)]

    def guard_of(self, partition: TopicPartition) -> VerificationGuard | None:
        return None if self.verification_guards is None else self.verification_guards.get(partition)
