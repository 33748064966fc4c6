# Compiled by mypyc: src/compiled.toml lists this module.
"""A fetch that waits until min_bytes are available.

It computes the available bytes from positions in files, without reading. When there are enough, when the state of a partition has changed,
or after max_wait_ms, it reads all partitions again, and that is its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from barnabas.broker.partitions.fetch_params import NO_EPOCH, FetchParams, FetchResult, PartitionFetch, RequestedPartition, TopicIdPartition
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.errors import KafkaError
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

Fetched = list[tuple[TopicIdPartition, FetchResult]]


class LogReading:
    """One read from some partitions: the results so far, and how many bytes may still be read."""

    __slots__ = ("fetched", "from_purgatory", "left", "min_one_message", "params")

    def __init__(self, params: FetchParams, from_purgatory: bool = False) -> None:
        self.params = params
        self.from_purgatory = from_purgatory
        self.left = params.max_bytes
        self.min_one_message = not params.hard_max_bytes
        self.fetched: Fetched = []


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedFetch(DelayedOperation):
    """`read_at` has the position of each fetch offset in the files, None if it is unknown."""

    def __init__(
        self,
        params: FetchParams,
        requested: list[RequestedPartition],
        read_at: list[LogOffset | None],
        replica_manager: ReplicaManager,
        on_done: Callable[[Fetched], None],
    ) -> None:
        super().__init__(params.max_wait_ms)
        self._params = params
        self._requested = requested
        self._read_at = read_at
        self._replica_manager = replica_manager
        self._on_done = on_done

    def try_complete(self) -> bool:
        accumulated = 0
        is_throttled = self._params.is_from_follower and self._replica_manager.quotas.leader.is_in_use
        for (key, request), start in zip(self._requested, self._read_at, strict=True):
            if start is None:
                continue
            try:
                partition = self._replica_manager.partition_or_raise(key.partition)
                log = partition.local_log(request.current_leader_epoch, self._params.fetch_only_leader)
                available = _bytes_available(start, _readable_end(log, self._params.isolation), request.max_bytes)
                if start.offset > log.log_end_offset or _has_diverged(partition, log, request):
                    return self.force_complete()
                if is_throttled and available != 0 and self._must_wait(partition):
                    continue
                if available < 0:
                    return self.force_complete()
            except KafkaError:
                return self.force_complete()  # no longer the leader, another epoch, a failed disk: the read reports which
            accumulated += available
        return accumulated >= self._params.min_bytes and self.force_complete()

    def _must_wait(self, partition: Partition) -> bool:
        replica_manager = self._replica_manager
        return replica_manager.must_wait(partition, self._params.replica_id, replica_manager.clock.monotonic_ms())

    def on_complete(self) -> None:
        self._replica_manager.read_after_waiting(self._params, self._requested, self._on_done)

    def on_expiration(self) -> None:
        metrics = self._replica_manager.metrics
        if self._params.is_from_follower:
            metrics.expired_follower_fetches += 1
        else:
            metrics.expired_consumer_fetches += 1


def _readable_end(log: Log, isolation: FetchIsolation) -> LogOffset:
    if isolation is FetchIsolation.LOG_END:
        return log.end
    if isolation is FetchIsolation.HIGH_WATERMARK:
        return log.fetch_high_watermark()
    return log.fetch_last_stable_offset()


def _bytes_available(start: LogOffset, end: LogOffset, max_bytes: int) -> int:
    """The bytes available to a fetch; -1 if it should read at once, because the log has rolled to another segment or was truncated."""
    if start.offset == end.offset:
        return 0  # right after a roll the end may still be in the old segment
    if end.on_older_segment(start) or start.on_older_segment(end):
        return -1
    if start.offset > end.offset:
        return 0  # the high watermark of a new leader may be behind what consumers have read already
    return min(end.bytes_after(start), max_bytes) if start.on_same_segment(end) else 0


def _has_diverged(partition: Partition, log: Log, request: PartitionFetch) -> bool:
    """Whether the log was truncated while the fetch waited, so that the fetcher has to truncate too."""
    if request.last_fetched_epoch == NO_EPOCH:
        return False
    if request.last_fetched_epoch == log.epochs.latest_epoch:
        return log.log_end_offset < request.offset
    epoch, end_offset = partition.last_offset_for_leader_epoch(request.current_leader_epoch, request.last_fetched_epoch, False)
    return epoch < request.last_fetched_epoch or end_offset < request.offset
