"""Where the coordinators count, under Kafka's names. The broker gives one that keeps the counts; nothing in here reads them."""

from __future__ import annotations

from typing import Final, Protocol

OFFSET_COMMITS: Final = "OffsetCommits"
OFFSET_EXPIRATIONS: Final = "OffsetExpired"
OFFSET_DELETIONS: Final = "OffsetDeletions"
COMPLETED_REBALANCES: Final = "CompletedRebalances"
CONSUMER_GROUP_REBALANCES: Final = "ConsumerGroupRebalances"


class Metrics(Protocol):
    def record(self, sensor: str, count: int) -> None: ...


class NoMetrics:
    """Counts nothing."""

    def record(self, sensor: str, count: int) -> None:
        pass
