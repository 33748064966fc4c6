# Compiled by mypyc: src/compiled.toml lists this module.
"""One call of `ReplicaManager.append_records`: the records for some partitions, and the results so far.

Produce, transactional produce and the transaction markers make one. Most calls are done at once; `long_appends` appends the rest of those
whose records take longer to validate than a turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.network.exchange import Peer
from barnabas.protocol.slices import Records
from barnabas.records.validation.validation import CLIENT
from barnabas.storage.log.append import LogAppend
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_partition import TopicPartition


class Order(Protocol):
    """Keeps the requests of one client in order: an Exchange."""

    connection: Peer

    def hold_next(self) -> None: ...

    def release_next(self) -> None: ...


class AppendCall:
    """`on_done` gets one result for each entry, in their order. `order` holds the next request of the client while this one takes long."""

    __slots__ = (
        "_append",
        "entries",
        "internal_topics_allowed",
        "on_done",
        "order",
        "required_acks",
        "results",
        "timeout_ms",
        "verification_guards",
    )

    def __init__(
        self,
        entries: list[tuple[TopicPartition, Records]],
        on_done: Callable[[list[PartitionAppend]], None],
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool = False,
        origin: int = CLIENT,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
        order: Order | None = None,
    ) -> None:
        self.entries = entries
        self.on_done = on_done
        self.timeout_ms = timeout_ms
        self.required_acks = required_acks
        self.internal_topics_allowed = internal_topics_allowed
        self.order = order
        self.verification_guards: dict[TopicPartition, VerificationGuard] | None = None  # of the records of a transaction
        self.results: list[PartitionAppend] = []  # of the entries from the first on
        self._append = LogAppend(b"", 0, origin=origin, transaction_version=transaction_version)

    @property
    def next_entry(self) -> tuple[TopicPartition, Records]:
        return self.entries[len(self.results)]

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self.entries)

    def next_append(self, now_ms: int, at_once: int = -1) -> LogAppend:
        """The append of the next entry, valid until the one after it is taken: one object serves all entries."""
        partition, records = self.entries[len(self.results)]
        append, guards = self._append, self.verification_guards
        append.data, append.start, append.end = records.data, records.start, records.end
        append.verification_guard = None if guards is None else guards.get(partition)
        append.now_ms = now_ms
        append.at_once = at_once
        return append
