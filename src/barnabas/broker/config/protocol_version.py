"""inter.broker.protocol.version: the versions of the requests between brokers that follow from it.

During a rolling upgrade the setting stays at the old version until all brokers run the new software. Versions below 3.2 are refused:
brokers here send topic ids in Fetch and the recovery state of leaders in LeaderAndIsr, which older brokers do not understand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.kafka_version import position

LOWEST: Final = "3.2"


@dataclass(frozen=True, slots=True)
class InterBrokerVersions:
    """The versions of the requests between brokers."""

    leader_and_isr: int
    stop_replica: int
    update_metadata: int
    fetch: int
    list_offsets: int

    @classmethod
    def of(cls, version: str) -> InterBrokerVersions:
        at = position(version)
        has_migration = at >= position("3.4-IV0")
        return cls(
            leader_and_isr=7 if has_migration else 6,
            stop_replica=4 if has_migration else 3,
            update_metadata=8 if has_migration else 7,
            fetch=13 + sum(at >= position(since) for since in ("3.5-IV0", "3.5-IV1", "3.7-IV4", "3.9-IV0")),
            list_offsets=7 + sum(at >= position(since) for since in ("3.5-IV0", "3.9-IV0")),
        )
