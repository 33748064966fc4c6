"""The counters of the coordinators, under Kafka's names. The broker passes an object that keeps the counts; coordinators never read
them."""

from __future__ import annotations

from typing import Final, Protocol

OFFSET_COMMITS: Final = "OffsetCommits"
OFFSET_EXPIRATIONS: Final = "OffsetExpired"
OFFSET_DELETIONS: Final = "OffsetDeletions"
COMPLETED_REBALANCES: Final = "CompletedRebalances"
CONSUMER_GROUP_REBALANCES: Final = "ConsumerGroupRebalances"


class CoordinatorMetrics(Protocol):
    def record(self, sensor: str, count: int) -> None: ...


class NoMetrics:
    """Counts nothing."""

    def record(self, sensor: str, count: int) -> None:
        pass
