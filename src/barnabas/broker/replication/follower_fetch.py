# Compiled by mypyc: src/compiled.toml lists this module.
"""The follower's side of replication: which partitions to fetch next from a leader, and what to do with the results.

There is one object for each leader that this broker follows. It decides and never waits: a `ReplicaFetcher` takes the next fetches from
`next_fetches`, and hands the results to `handle`. Diverging records are detected by leader epochs (KIP-101, KIP-279, KIP-595): every fetch
names the epoch of the follower's last record, the leader returns where that epoch ended, and the follower truncates to there. The high
watermark alone is not enough, because after a crash it may be behind on the leader and on the follower.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, Protocol

from barnabas.broker.quotas.replication_quota import ReplicationQuota
from barnabas.errors import CorruptRecord, KafkaError, OutOfDescriptors, StorageFault
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition
from barnabas.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

UNDEFINED: Final = -1
# The leader or the epoch has changed, and one of the two brokers does not know yet. The fetch is retried after the backoff.
_TRANSIENT: Final = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)

_log = logging.getLogger(__name__)


class ReplicaLogs(Protocol):
    """The operations of this broker's logs that a follower needs. They raise KafkaStorageError if the disk fails."""

    def end_offset(self, partition: TopicPartition) -> int: ...

    def start_offset(self, partition: TopicPartition) -> int: ...

    def high_watermark(self, partition: TopicPartition) -> int: ...

    def latest_epoch(self, partition: TopicPartition) -> int | None: ...

    def end_of_epoch(self, partition: TopicPartition, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and its end offset; (-1, -1) if there is none."""
        ...

    def append(self, partition: TopicPartition, data: bytes, leader_epoch: int) -> int:
        """Appends batches of the leader unchanged; returns the log end offset after them."""
        ...

    def update_offsets(self, partition: TopicPartition, high_watermark: int, start_offset: int) -> None:
        """Takes over the leader's high watermark, at most the log end offset, and its log start offset."""
        ...

    def truncate_to(self, partition: TopicPartition, offset: int) -> None: ...

    def start_anew_at(self, partition: TopicPartition, offset: int) -> None:
        """Deletes all records. The log starts again at this offset."""
        ...


class FollowingState(Enum):
    TRUNCATING = "truncating"  # it has no epochs to compare, and is truncated to its high watermark first
    FETCHING = "fetching"
    LOST = "lost"  # its fetch offset is out of the leader's range: the start and end offsets of the leader are needed


class Following:
    """The state of one partition that this broker follows."""

    __slots__ = ("delayed_until_ms", "lag", "leader_epoch", "offset", "state", "topic_id")

    def __init__(self, topic_id: Uuid, leader_epoch: int, offset: int, state: FollowingState) -> None:
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.state = state
        self.delayed_until_ms = 0
        self.lag: int | None = None


class FollowerFetch:
    """`quota` is the throttle of this broker as a follower, `backoff_ms` replica.fetch.backoff.ms, `max_bytes` replica.fetch.max.bytes."""

    def __init__(
        self, leader_id: int, logs: ReplicaLogs, quota: ReplicationQuota, backoff_ms: int = 1000, max_bytes: int = 1_048_576
    ) -> None:
        self.leader_id = leader_id
        self.failed: set[TopicPartition] = set()  # not fetched until the controller sends a new state
        self._logs = logs
        self._quota = quota
        self._backoff_ms = backoff_ms
        self._max_bytes = max_bytes
        self._followed: dict[TopicPartition, Following] = {}  # the partition with the latest result last
        self._served: list[TopicPartition] = []  # partitions with results since the last fetch
        self._is_settled = False  # no other partition has changed since then

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._followed

    def lag(self, partition: TopicPartition) -> int | None:
        """How many records the partition is behind the leader's high watermark; None before the first result."""
        return self._followed[partition].lag

    def add(self, partition: TopicPartition, topic_id: Uuid, leader_epoch: int) -> None:
        """Fetches from the log end offset on: the epochs detect whether records before it diverge. Without epochs, from the high
        watermark."""
        self.failed.discard(partition)
        before = self._followed.get(partition)
        if before is not None and before.leader_epoch == leader_epoch:
            return
        has_epochs = self._logs.latest_epoch(partition) is not None
        offset = self._logs.end_offset(partition) if has_epochs else self._logs.high_watermark(partition)
        self._followed[partition] = Following(
            topic_id, leader_epoch, offset, FollowingState.FETCHING if has_epochs else FollowingState.TRUNCATING
        )
        self._is_settled = False

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._followed)

    def remove(self, partition: TopicPartition) -> None:
        if self._followed.pop(partition, None) is not None:
            self._is_settled = False
        self.failed.discard(partition)

    @property
    def is_settled(self) -> bool:
        """Whether all partitions are being fetched, so that `changes` has all that the next fetch has to name. With a throttle each fetch
        may leave out other partitions."""
        return self._is_settled and not self._quota.is_in_use

    def truncate(self) -> None:
        """Called before fetching: truncates the partitions without epochs to their high watermarks, up to which all replicas agree."""
        for partition, following in list(self._followed.items()):
            if following.state is FollowingState.TRUNCATING and self._try(partition, self._logs.truncate_to, following.offset):
                following.offset = self._logs.end_offset(partition)
                following.state = FollowingState.FETCHING

    def next_fetches(self, monotonic_ms: int) -> list[tuple[TopicPartition, Uuid, FetchPartition]]:
        """The partitions to fetch next, those that have waited longest first. Throttled partitions that are not in sync are left out while
        the throttle is exceeded."""
        fetches = [(partition, following.topic_id, self._fetch(partition, following)) for partition, following in self._ready(monotonic_ms)]
        self._served.clear()
        self._is_settled = 0 < len(fetches) == len(self._followed)
        return fetches

    def changes(self) -> list[tuple[TopicPartition, Uuid, FetchPartition]]:
        """The partitions whose fetch parameters have changed since the last fetch: those with results since. Valid only while
        `is_settled`. A log start offset that has moved by itself is not seen here, so `next_fetches` has to be called now and then."""
        fetches = []
        for partition in self._served:
            following = self._followed[partition]
            fetches.append((partition, following.topic_id, self._fetch(partition, following)))
        self._served.clear()
        return fetches

    def _fetch(self, partition: TopicPartition, following: Following) -> FetchPartition:
        epoch = self._logs.latest_epoch(partition)
        return FetchPartition(
            partition.partition,
            current_leader_epoch=following.leader_epoch,
            fetch_offset=following.offset,
            last_fetched_epoch=UNDEFINED if epoch is None else epoch,
            log_start_offset=self._logs.start_offset(partition),
            partition_max_bytes=self._max_bytes,
        )

    def _ready(self, monotonic_ms: int) -> Iterator[tuple[TopicPartition, Following]]:
        is_exceeded = self._quota.is_in_use and self._quota.is_exceeded(monotonic_ms)
        for partition, following in self._followed.items():
            if following.state is FollowingState.FETCHING and following.delayed_until_ms <= monotonic_ms:
                if is_exceeded and following.lag != 0 and self._quota.is_throttled(partition):
                    continue
                yield partition, following

    def next_ready_ms(self, monotonic_ms: int) -> int | None:
        """When the first delayed partition may be fetched again. A partition that waits for the throttle is tried after the backoff."""
        fetching = [following for following in self._followed.values() if following.state is FollowingState.FETCHING]
        delayed = [following.delayed_until_ms for following in fetching if following.delayed_until_ms > monotonic_ms]
        if len(delayed) < len(fetching):
            delayed.append(monotonic_ms + (self._backoff_ms if self._quota.is_in_use else 1))
        return min(delayed, default=None)

    def delay(self, partitions: list[TopicPartition], monotonic_ms: int) -> None:
        """The fetch failed: these partitions are not fetched before the backoff has passed."""
        for partition in partitions:
            if (following := self._followed.get(partition)) is not None:
                following.delayed_until_ms = monotonic_ms + self._backoff_ms
                self._is_settled = False
                self._move_to_end(partition)

    # -- results

    def handle(self, partition: TopicPartition, fetch: FetchPartition, result: PartitionData, monotonic_ms: int) -> None:
        """Applies a result. One of a fetch in another leader epoch or from another offset is ignored."""
        following = self._followed.get(partition)
        if following is None or following.state is not FollowingState.FETCHING:
            return
        if fetch.fetch_offset != following.offset or fetch.current_leader_epoch != following.leader_epoch:
            return
        error = result.error_code
        if error == ErrorCode.NONE:
            self._try(partition, self._take, following, result, monotonic_ms=monotonic_ms)
            if self._quota.is_in_use and result.records is not None and self._quota.is_throttled(partition):
                self._quota.record(result.records.size, monotonic_ms)
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            following.state = FollowingState.LOST
            self._is_settled = False
        elif error == ErrorCode.FENCED_LEADER_EPOCH:
            _log.info("%s has a later leader epoch than %d: waiting for a LeaderAndIsr request", partition, following.leader_epoch)
            self.remove(partition)
        else:
            if error not in _TRANSIENT and error != ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # the fetcher logs that once for all partitions
                _log.error("Error %d for partition %s at offset %d from leader %d", error, partition, following.offset, self.leader_id)
            self.delay([partition], monotonic_ms)

    def _take(self, partition: TopicPartition, following: Following, result: PartitionData) -> None:
        diverging = result.diverging_epoch
        if diverging is not None and (diverging.epoch != UNDEFINED or diverging.end_offset != UNDEFINED):
            self._truncate_diverging(partition, following, diverging)
            return
        end = self._logs.end_offset(partition)
        if following.offset != end:
            raise StorageFault(f"Offset mismatch for partition {partition}: fetched offset = {following.offset}, log end offset = {end}.")
        if result.records is not None and result.records.size:
            end = self._logs.append(partition, result.records.to_bytes(), following.leader_epoch)
        self._logs.update_offsets(partition, result.high_watermark, result.log_start_offset)
        following.offset = end
        following.lag = max(0, result.high_watermark - end)
        self._served.append(partition)
        self._move_to_end(partition)

    def _truncate_diverging(self, partition: TopicPartition, following: Following, leader: EpochEndOffset) -> None:
        """Truncates to where the log agrees with the leader's. `leader` is the leader's largest epoch up to our last one, and its end. If
        this log does not have that epoch, it is truncated to the end of the one before, and the next fetch compares again."""
        end = self._logs.end_offset(partition)
        epoch, epoch_end = self._logs.end_of_epoch(partition, leader.epoch)
        if leader.end_offset == UNDEFINED:
            offset = self._logs.high_watermark(partition)
        elif leader.epoch == UNDEFINED or epoch == UNDEFINED:
            offset = min(leader.end_offset, end)
        elif epoch != leader.epoch:
            offset = min(epoch_end, end)
        else:
            offset = min(epoch_end, leader.end_offset, end)
        if offset < self._logs.high_watermark(partition):
            _log.warning("Truncating %s to offset %d below high watermark %d", partition, offset, self._logs.high_watermark(partition))
        self._logs.truncate_to(partition, offset)
        following.offset = self._logs.end_offset(partition)
        self._is_settled = False

    # -- offsets out of range

    def lost(self) -> list[tuple[TopicPartition, int]]:
        """The partitions that need the leader's start and end offsets, with their leader epochs."""
        return [
            (partition, following.leader_epoch) for partition, following in self._followed.items() if following.state is FollowingState.LOST
        ]

    def resume(self, partition: TopicPartition, leader_epoch: int, start_offset: int, end_offset: int) -> None:
        """The leader has records from `start_offset` to before `end_offset`.

        If the leader ends before this log, it was elected without being in sync, and the records that it does not have are lost. If the
        leader starts behind the end of this log, it has deleted records that were never fetched, and this log starts again at its start.
        """
        following = self._followed.get(partition)
        if following is None or following.state is not FollowingState.LOST or following.leader_epoch != leader_epoch:
            return
        end = self._logs.end_offset(partition)
        if end_offset < end:
            _log.warning("Reset fetch offset for partition %s from %d to current leader's latest offset %d", partition, end, end_offset)
            done = self._try(partition, self._logs.truncate_to, end_offset)
        elif start_offset > end:
            _log.warning("Reset fetch offset for partition %s from %d to current leader's start offset %d", partition, end, start_offset)
            done = self._try(partition, self._logs.start_anew_at, start_offset)
        else:
            done = True
        if done:
            following.offset = self._logs.end_offset(partition)
            following.state = FollowingState.FETCHING

    def _try(self, partition: TopicPartition, action: Callable[..., None], *arguments: object, monotonic_ms: int = 0) -> bool:
        """Runs the action; False if it failed. A failed disk, or a log that refuses the leader's records, stops only this partition."""
        try:
            action(partition, *arguments)
        except CorruptRecord as error:
            _log.error("Found invalid messages during fetch for partition %s: %s", partition, error)
            self.delay([partition], monotonic_ms)
            return False
        except OutOfDescriptors as error:
            _log.warning("Replication of %s from leader %d waits: %s", partition, self.leader_id, error)
            self.delay([partition], monotonic_ms)
            return False
        except (StorageFault, KafkaError) as error:
            _log.error("Giving up replication of %s from leader %d: %s", partition, self.leader_id, error)
            self.remove(partition)
            self.failed.add(partition)
            return False
        return True

    def _move_to_end(self, partition: TopicPartition) -> None:
        self._followed[partition] = self._followed.pop(partition)
