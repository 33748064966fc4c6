# Compiled by mypyc: src/compiled.toml lists this module.
"""A follower's side of replication: what to ask a leader for next, and what to do with what it says.

One object for each leader that partitions of this broker follow. It decides and never waits: whoever sends the requests asks `wanted`, and
hands the answers to `handle`. A replica that has what its leader never had finds out by the epochs (KIP-101, KIP-279, KIP-595): it names
the epoch of its last record with every fetch, the leader says where that epoch ended, and the replica cuts off what lies behind. So it
never trusts the high watermark alone, which may be behind at both ends of a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, Protocol

from barnabas.errors import CorruptRecord, KafkaError, OutOfDescriptors, StorageFault
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition
from barnabas.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

UNDEFINED: Final = -1
# The leader or the epoch has moved, and one of the two sides does not know yet: asked again in a while.
_PASSING: Final = frozenset(
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
    """The logs of this broker, as far as a follower needs them. A disk that fails raises KafkaStorageError."""

    def end_offset(self, partition: TopicPartition) -> int: ...

    def start_offset(self, partition: TopicPartition) -> int: ...

    def high_watermark(self, partition: TopicPartition) -> int: ...

    def latest_epoch(self, partition: TopicPartition) -> int | None: ...

    def end_of_epoch(self, partition: TopicPartition, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and where it ended; (-1, -1) where there is none."""
        ...

    def append(self, partition: TopicPartition, data: bytes, leader_epoch: int) -> int:
        """Batches of the leader, as they are; the end of the log after them."""
        ...

    def leader_told(self, partition: TopicPartition, high_watermark: int, start_offset: int) -> None:
        """The high watermark moves as far as the log goes, and what the leader has deleted is deleted."""
        ...

    def truncate_to(self, partition: TopicPartition, offset: int) -> None: ...

    def start_anew_at(self, partition: TopicPartition, offset: int) -> None:
        """Nothing of the log is of any use."""
        ...


class State(Enum):
    TRUNCATING = "truncating"  # it has no epochs to compare: back to its high watermark first
    FETCHING = "fetching"
    LOST = "lost"  # what it wants next is not there: the leader has to be asked for its offsets


class Following:
    """One partition that is followed."""

    __slots__ = ("delayed_until_ms", "lag", "leader_epoch", "offset", "state", "topic_id")

    def __init__(self, topic_id: Uuid, leader_epoch: int, offset: int, state: State) -> None:
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.state = state
        self.delayed_until_ms = 0
        self.lag: int | None = None


class FollowerFetch:
    """`backoff_ms` is replica.fetch.backoff.ms, `max_bytes` replica.fetch.max.bytes."""

    def __init__(self, leader_id: int, logs: ReplicaLogs, backoff_ms: int = 1000, max_bytes: int = 1_048_576) -> None:
        self.leader_id = leader_id
        self.failed: set[TopicPartition] = set()  # those it has given up until the controller says something new
        self._logs = logs
        self._backoff_ms = backoff_ms
        self._max_bytes = max_bytes
        self._followed: dict[TopicPartition, Following] = {}  # who was served last stands last
        self._served: list[TopicPartition] = []  # since it was last told what is wanted
        self._is_settled = False  # nothing but those has changed since then

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._followed

    def lag(self, partition: TopicPartition) -> int | None:
        """How far behind the leader's high watermark; None before the first answer."""
        return self._followed[partition].lag

    def add(self, partition: TopicPartition, topic_id: Uuid, leader_epoch: int) -> None:
        """Follows from the end of its log on, which the epochs will show to be right or wrong; without any, from the high watermark."""
        self.failed.discard(partition)
        known = self._followed.get(partition)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        has_epochs = self._logs.latest_epoch(partition) is not None
        offset = self._logs.end_offset(partition) if has_epochs else self._logs.high_watermark(partition)
        self._followed[partition] = Following(topic_id, leader_epoch, offset, State.FETCHING if has_epochs else State.TRUNCATING)
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
        """Whether all are being fetched, and asking for `changes` is enough."""
        return self._is_settled

    def truncate(self) -> None:
        """Before fetching: those without epochs go back to their high watermarks, where all replicas agree."""
        for partition, each in list(self._followed.items()):
            if each.state is State.TRUNCATING and self._done(partition, self._logs.truncate_to, each.offset):
                each.offset = self._logs.end_offset(partition)
                each.state = State.FETCHING

    def wanted(self, monotonic_ms: int) -> list[tuple[TopicPartition, Uuid, FetchPartition]]:
        """What to ask for next, those that have waited longest first."""
        asked = [(partition, each.topic_id, self._question(partition, each)) for partition, each in self._ready(monotonic_ms)]
        self._served.clear()
        self._is_settled = 0 < len(asked) == len(self._followed)
        return asked

    def changes(self) -> list[tuple[TopicPartition, Uuid, FetchPartition]]:
        """What to ask anew of a leader that knows what was wanted the last time: those that it has served since. To be asked only while
        this is settled; and that the start of a log has moved by itself is not seen here, so `wanted` is to be asked now and then."""
        asked = []
        for partition in self._served:
            each = self._followed[partition]
            asked.append((partition, each.topic_id, self._question(partition, each)))
        self._served.clear()
        return asked

    def _question(self, partition: TopicPartition, each: Following) -> FetchPartition:
        epoch = self._logs.latest_epoch(partition)
        return FetchPartition(
            partition.partition,
            current_leader_epoch=each.leader_epoch,
            fetch_offset=each.offset,
            last_fetched_epoch=UNDEFINED if epoch is None else epoch,
            log_start_offset=self._logs.start_offset(partition),
            partition_max_bytes=self._max_bytes,
        )

    def _ready(self, monotonic_ms: int) -> Iterator[tuple[TopicPartition, Following]]:
        for partition, each in self._followed.items():
            if each.state is State.FETCHING and each.delayed_until_ms <= monotonic_ms:
                yield partition, each

    def next_ready_ms(self) -> int | None:
        """When the first of those that are made to wait may be asked for again."""
        return min((each.delayed_until_ms for each in self._followed.values() if each.state is State.FETCHING), default=None)

    def delay(self, partitions: list[TopicPartition], monotonic_ms: int) -> None:
        """The leader could not be asked, or said nothing of use."""
        for partition in partitions:
            if (each := self._followed.get(partition)) is not None:
                each.delayed_until_ms = monotonic_ms + self._backoff_ms
                self._is_settled = False
                self._to_the_end(partition)

    # What the leader said

    def handle(self, partition: TopicPartition, asked: FetchPartition, answer: PartitionData, monotonic_ms: int) -> None:
        """An answer to what was asked at another epoch or from another offset is of no use any more."""
        each = self._followed.get(partition)
        if each is None or each.state is not State.FETCHING:
            return
        if asked.fetch_offset != each.offset or asked.current_leader_epoch != each.leader_epoch:
            return
        error = answer.error_code
        if error == ErrorCode.NONE:
            self._done(partition, self._take, each, answer, monotonic_ms=monotonic_ms)
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            each.state = State.LOST
            self._is_settled = False
        elif error == ErrorCode.FENCED_LEADER_EPOCH:
            _log.info("%s is led in a later epoch than %d: waiting for the controller to tell", partition, each.leader_epoch)
            self.remove(partition)
        else:
            if error not in _PASSING:
                _log.error("Error %d for partition %s at offset %d from leader %d", error, partition, each.offset, self.leader_id)
            self.delay([partition], monotonic_ms)

    def _take(self, partition: TopicPartition, each: Following, answer: PartitionData) -> None:
        diverging = answer.diverging_epoch
        if diverging is not None and (diverging.epoch != UNDEFINED or diverging.end_offset != UNDEFINED):
            self._cut_what_diverges(partition, each, diverging)
            return
        end = self._logs.end_offset(partition)
        if each.offset != end:
            raise StorageFault(f"Offset mismatch for partition {partition}: fetched offset = {each.offset}, log end offset = {end}.")
        if answer.records is not None and answer.records.size:
            end = self._logs.append(partition, answer.records.to_bytes(), each.leader_epoch)
        self._logs.leader_told(partition, answer.high_watermark, answer.log_start_offset)
        each.offset = end
        each.lag = max(0, answer.high_watermark - end)
        self._served.append(partition)
        self._to_the_end(partition)

    def _cut_what_diverges(self, partition: TopicPartition, each: Following, leader: EpochEndOffset) -> None:
        """The leader told its largest epoch up to our last one, and where that ended. Where we do not have that epoch ourselves, we go back
        to the end of the one before, and the next fetch compares again."""
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
            _log.warning("Truncating %s to offset %d below its high watermark %d", partition, offset, self._logs.high_watermark(partition))
        self._logs.truncate_to(partition, offset)
        each.offset = self._logs.end_offset(partition)
        self._is_settled = False

    # What is not there any more

    def lost(self) -> list[tuple[TopicPartition, int]]:
        """Those for which the leader's first and last offsets are needed, with the epoch in which to ask."""
        return [(partition, each.leader_epoch) for partition, each in self._followed.items() if each.state is State.LOST]

    def found(self, partition: TopicPartition, leader_epoch: int, start_offset: int, end_offset: int) -> None:
        """The leader has records from `start_offset` to before `end_offset`.

        One that ends before our log was elected without being in sync: what it does not have is gone. One that begins behind it has
        deleted what we never got: nothing of ours connects to it.
        """
        each = self._followed.get(partition)
        if each is None or each.state is not State.LOST or each.leader_epoch != leader_epoch:
            return
        end = self._logs.end_offset(partition)
        if end_offset < end:
            _log.warning("Reset fetch offset for partition %s from %d to current leader's latest offset %d", partition, end, end_offset)
            done = self._done(partition, self._logs.truncate_to, end_offset)
        elif start_offset > end:
            _log.warning("Reset fetch offset for partition %s from %d to current leader's start offset %d", partition, end, start_offset)
            done = self._done(partition, self._logs.start_anew_at, start_offset)
        else:
            done = True
        if done:
            each.offset = self._logs.end_offset(partition)
            each.state = State.FETCHING

    def _done(self, partition: TopicPartition, action: Callable[..., None], *arguments: object, monotonic_ms: int = 0) -> bool:
        """Does it. A disk that fails, or a log that will not take what its leader has, stops this partition and no other."""
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

    def _to_the_end(self, partition: TopicPartition) -> None:
        self._followed[partition] = self._followed.pop(partition)
