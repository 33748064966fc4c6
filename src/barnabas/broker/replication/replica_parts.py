"""The parts of a replica manager that refer back to it. A factory makes them as the last step of the replica manager's construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.isr import IsrUpdates
    from barnabas.broker.replication.long_appends import LongAppends
    from barnabas.broker.replication.long_reads import LongReads
    from barnabas.broker.replication.replica_states import Fetchers


@dataclass(frozen=True)
class ReplicaParts:
    """Every part is optional. Without `long_appends` and `long_reads` each call appends or reads everything itself. Without `isr_updates`
    and `fetchers` there are no other brokers: the ISR never changes, and no replica follows a leader."""

    long_appends: LongAppends | None = None
    long_reads: LongReads | None = None
    isr_updates: IsrUpdates | None = None
    fetchers: Fetchers | None = None
