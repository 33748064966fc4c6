"""The progress of a stream: committed offsets of a consumer group, and lag in the query's progress.

Spark calls `commit` of a source only when it has planned the next batch, and never for the last one. But it requests the next batch only
when the one before is in the checkpoint: the start offset of `latestOffset` is finished, and is committed at once. A query with
Trigger.AvailableNow calls it once more before it ends, so that its last batch is committed too. A commit never delays a batch and never
fails the query. `progress_listener` commits earlier, for programs that need it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.offsets import METRICS, SOURCE, StreamOffset

_log = logging.getLogger(__name__)

LAST_COMMIT_TIMEOUT_S: Final = 10.0


class GroupProgress:
    """Commits finished offsets to a group, one commit at a time; of waiting commits only the newest is sent."""

    def __init__(self, group_id: str, commit: Callable[[str, Mapping[TopicPartition, int]], Future[None]]) -> None:
        self.group_id = group_id
        self._commit = commit
        self._sent: dict[tuple[TopicPartition, str | None], int] = {}
        self._under_way: Future[None] | None = None
        self._waiting: StreamOffset | None = None
        self._logged = False

    def finished(self, offset: StreamOffset) -> None:
        """Records that everything before these offsets is processed."""
        if self._under_way is not None and not self._under_way.done():
            self._waiting = offset
            return
        self._settle(0)
        self._send(offset)

    def close(self) -> None:
        """Waits a limited time for the last commit."""
        self._settle(LAST_COMMIT_TIMEOUT_S)
        if self._waiting is not None:
            self._send(self._waiting)
            self._settle(LAST_COMMIT_TIMEOUT_S)

    def _send(self, offset: StreamOffset) -> None:
        self._waiting = None
        ids = offset.topic_ids
        # A late call never moves a group back; only a new topic of the same name starts again.
        new = {one: value for one, value in offset.offsets.items() if value > self._sent.get((one, ids.get(one.topic)), -1)}
        if new:
            self._under_way = self._commit(self.group_id, new)
            self._sent.update({(one, ids.get(one.topic)): value for one, value in new.items()})

    def _settle(self, timeout_s: float) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return
        try:
            under_way.result(timeout_s)
        except Exception as error:  # the query continues after any error
            self._sent.clear()  # the next commit contains these offsets again
            if not self._logged:
                self._logged = True
                _log.warning(
                    "Option 'kafka.group.id': the offsets could not be committed to group %s (%s). The query goes on without; a group that "
                    "consumers are members of cannot be used.",
                    self.group_id,
                    error,
                )


def lag(end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The number of offsets of each partition after those of a batch."""
    return {partition: max(0, offset - end.get(partition, offset)) for partition, offset in latest.items()}


def lag_metrics(end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """The metrics of Spark's own connector, by its names."""
    behind = list(lag(end, latest).values())
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": min(behind),
        "maxOffsetsBehindLatest": max(behind),
        "avgOffsetsBehindLatest": sum(behind) / len(behind),
        "offsetsBehindLatest": sum(behind),
    }


class ArrivalRate:
    """The records a second that arrive, from the change of the latest offsets between two calls."""

    def __init__(self) -> None:
        self._before: tuple[int, Mapping[TopicPartition, int]] | None = None

    def update(self, latest: Mapping[TopicPartition, int], now_ms: int) -> float | None:
        before, self._before = self._before, (now_ms, dict(latest))
        if before is None or now_ms <= before[0]:
            return None
        new_records = sum(max(0, offset - before[1].get(partition, offset)) for partition, offset in latest.items())
        return round(new_records * 1000 / (now_ms - before[0]), 3)


def with_metrics(document: dict[str, Any], source: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The latest offsets as a query's progress shows them, with the description and the metrics of the source.

    Spark has no other place for these: see `query_progress`.
    """
    return {**document, SOURCE: source, **({METRICS: dict(metrics)} if metrics else {})}
