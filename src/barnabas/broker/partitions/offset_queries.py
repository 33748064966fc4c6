"""Queries for offsets of a partition: by timestamp (ListOffsets) and by leader epoch (OffsetForLeaderEpoch)."""

from __future__ import annotations

from barnabas.broker.partitions.fetch_params import NO_EPOCH, READ_COMMITTED
from barnabas.broker.partitions.partition import Partition
from barnabas.errors import OffsetNotAvailable
from barnabas.records.batch import NO_TIMESTAMP
from barnabas.storage.log import offset_lookup
from barnabas.storage.segments.segment import TimestampAndOffset


class LeaderEpochEndOffset:
    """The end offset of a leader epoch: the result of OffsetForLeaderEpoch for one partition."""

    def __init__(self, error: int, leader_epoch: int = -1, end_offset: int = -1) -> None:
        self.error = error
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset

    def __repr__(self) -> str:
        return f"LeaderEpochEndOffset(error={self.error}, leader_epoch={self.leader_epoch}, end_offset={self.end_offset})"


def list_offsets(
    partition: Partition, timestamp: int, isolation: int | None, current_leader_epoch: int, fetch_only_from_leader: bool
) -> TimestampAndOffset | None:
    log = partition.local_log(current_leader_epoch, fetch_only_from_leader)
    if isolation is None:
        last_fetchable = log.log_end_offset
    else:
        last_fetchable = log.last_stable_offset if isolation == READ_COMMITTED else log.high_watermark
    if timestamp == offset_lookup.LATEST:
        _require_high_watermark(partition, isolation, current_leader_epoch)
        return TimestampAndOffset(NO_TIMESTAMP, last_fetchable, partition.leader_epoch)
    record = offset_lookup.offset_for_timestamp(log, timestamp)
    if timestamp in (offset_lookup.EARLIEST, offset_lookup.EARLIEST_LOCAL):
        return record
    if record is not None and record.offset < last_fetchable:
        return record
    _require_high_watermark(partition, isolation, current_leader_epoch)
    return None


def _require_high_watermark(partition: Partition, isolation: int | None, current_leader_epoch: int) -> None:
    """Raises OffsetNotAvailable while the high watermark of a new leader is behind that of the last one: offsets would go backwards."""
    log, epoch_start = partition.log, partition.leader_epoch_start_offset
    if isolation is None or log is None or epoch_start is None or epoch_start <= log.high_watermark:
        return
    epoch = "unknown epoch" if current_leader_epoch == NO_EPOCH else f"epoch {current_leader_epoch}"
    raise OffsetNotAvailable(
        f"Failed to fetch offsets for partition {partition.partition} with leader {epoch} as this partition's high watermark "
        f"({log.high_watermark}) is lagging behind the start offset from the beginning of this epoch ({epoch_start})."
    )


def legacy_offsets(
    partition: Partition, timestamp: int, max_offsets: int, is_from_consumer: bool, only_from_leader: bool, now_ms: int
) -> list[int]:
    log = partition.local_log(NO_EPOCH, only_from_leader)
    offsets = offset_lookup.offsets_before(log, timestamp, max_offsets, now_ms)
    high_watermark = log.high_watermark
    if not is_from_consumer or all(offset <= high_watermark for offset in offsets):
        return offsets
    return [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
