# Compiled by mypyc: src/compiled.toml lists this module.
"""The parameters and results of a fetch, as the fetch handler and the replica manager exchange them.

The handler or a fetch session makes the parameters; the replica manager returns a `FetchResult` for each partition. Records are slices of
files here, which are not read yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.metrics.topic_metrics import TopicMetrics
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.segments.segment import FileSlice
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.scheduling.steps import StepTimer

CONSUMER_REPLICA_ID: Final = -1
DEBUGGING_REPLICA_ID: Final = -2
FUTURE_LOCAL_REPLICA_ID: Final = -3

NO_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class TopicIdPartition(NamedTuple):
    """A partition with the id of its topic. The id is zero if the client uses names."""

    topic_id: Uuid
    partition: TopicPartition


class ClientMetadata(NamedTuple):
    """The client that fetches, for the choice of a replica near to it (KIP-392)."""

    rack: str
    client_id: str
    client_address: str
    listener_name: str


class PartitionFetch:
    """The parameters of a fetch for one partition."""

    __slots__ = ("current_leader_epoch", "last_fetched_epoch", "log_start_offset", "max_bytes", "offset")

    def __init__(
        self,
        offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int = UNKNOWN_OFFSET,
    ) -> None:
        self.offset = offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch  # -1: unknown to the client, and not checked
        self.last_fetched_epoch = last_fetched_epoch  # of the record before `offset`; -1 if the fetcher cannot truncate
        self.log_start_offset = log_start_offset  # of the follower

    def __repr__(self) -> str:
        return f"PartitionFetch(offset={self.offset}, max_bytes={self.max_bytes}, current_leader_epoch={self.current_leader_epoch})"


RequestedPartition = tuple[TopicIdPartition, PartitionFetch]


class FetchParams:
    """The parameters of a fetch as a whole. `client_metadata` is None if the client cannot be sent to another replica. `usage` counts the
    time of the request; None unless there are quotas on time."""

    __slots__ = (
        "client_metadata",
        "hard_max_bytes",
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "replica_epoch",
        "replica_id",
        "usage",
    )

    def __init__(
        self,
        *,
        replica_id: int = CONSUMER_REPLICA_ID,
        replica_epoch: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 2**31 - 1,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        client_metadata: ClientMetadata | None = None,
        hard_max_bytes: bool = False,
        usage: StepTimer | None = None,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.client_metadata = client_metadata
        self.hard_max_bytes = hard_max_bytes  # versions 0 to 2: even the first batch is cut at the limit
        self.usage = usage

    @property
    def is_from_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def is_from_consumer(self) -> bool:
        return is_consumer(self.replica_id)

    @property
    def fetch_only_leader(self) -> bool:
        return self.is_from_follower or (self.is_from_consumer and self.client_metadata is None)


class FetchResult:
    """The result of a fetch for one partition. `records` is None if there is nothing to send, `aborted` unless read_committed."""

    __slots__ = (
        "aborted",
        "diverging_epoch",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "read_at",
        "records",
        "topic_metrics",
    )

    def __init__(
        self,
        error: int = 0,
        high_watermark: int = UNKNOWN_OFFSET,
        last_stable_offset: int = UNKNOWN_OFFSET,
        log_start_offset: int = UNKNOWN_OFFSET,
        records: FileSlice | None = None,
        aborted: list[AbortedTxn] | None = None,
        diverging_epoch: tuple[int, int] | None = None,
        preferred_read_replica: int = -1,
        read_at: LogOffset | None = None,
        topic_metrics: TopicMetrics | None = None,
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted = aborted
        self.diverging_epoch = diverging_epoch  # (epoch, end offset): the fetcher has to truncate
        self.preferred_read_replica = preferred_read_replica
        self.read_at = read_at  # the position of the fetch offset, from which a delayed fetch counts the available bytes
        self.topic_metrics = topic_metrics  # counts what is sent; None if nothing was read

    @property
    def size(self) -> int:
        return 0 if self.records is None else self.records.size


def is_consumer(replica_id: int) -> bool:
    return replica_id < 0 and replica_id != FUTURE_LOCAL_REPLICA_ID


def fetch_isolation(replica_id: int, isolation_level: int) -> FetchIsolation:
    """How far a fetch sees: brokers up to the log end, consumers up to the high watermark or the last stable offset."""
    if not is_consumer(replica_id):
        return FetchIsolation.LOG_END
    return FetchIsolation.TXN_COMMITTED if isolation_level == READ_COMMITTED else FetchIsolation.HIGH_WATERMARK
