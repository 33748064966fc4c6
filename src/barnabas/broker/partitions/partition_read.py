# Compiled by mypyc: src/compiled.toml lists this module.
"""Reading from the log of a partition for a fetch: the records, the offsets that go with them, or where the fetcher's history differs.

A fetcher that names the epoch of its last record is told to truncate here, with the fetch itself, when the log holds another history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.partitions.fetch_params import NO_EPOCH, PartitionFetch
from barnabas.errors import OffsetOutOfRange
from barnabas.storage.log.fetch import FetchData, FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition

NOTHING: Final = FetchData(LogOffset(-1), None)


class PartitionRead:
    """What was read, with the offsets of the log at that moment."""

    def __init__(self, log: Log, fetched: FetchData, diverging_epoch: tuple[int, int] | None = None) -> None:
        self.fetched = fetched
        self.diverging_epoch = diverging_epoch
        self.high_watermark = log.high_watermark
        self.last_stable_offset = log.last_stable_offset
        self.log_start_offset = log.log_start_offset
        self.log_end_offset = log.log_end_offset


def read_records(
    partition: Partition, log: Log, wanted: PartitionFetch, isolation: FetchIsolation, max_bytes: int, min_one_message: bool
) -> PartitionRead:
    if wanted.last_fetched_epoch != NO_EPOCH:
        diverging = _diverging_epoch(partition, log, wanted)
        if diverging is not None:
            return PartitionRead(log, NOTHING, diverging)
    return PartitionRead(log, log.read(wanted.offset, max_bytes, isolation, min_one_message))


def _diverging_epoch(partition: Partition, log: Log, wanted: PartitionFetch) -> tuple[int, int] | None:
    """The epoch, and its end, up to which the fetcher's records may be the same as ours; None if all of them are."""
    if wanted.last_fetched_epoch == log.epochs.latest_epoch and log.log_start_offset <= wanted.offset <= log.log_end_offset:
        return None  # nearly always: the epoch that is being written
    epoch, end_offset = partition.last_offset_for_leader_epoch(wanted.current_leader_epoch, wanted.last_fetched_epoch, False)
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(f"Could not determine the end offset of the last fetched epoch {wanted.last_fetched_epoch} from the request")
    if wanted.offset < log.log_start_offset:
        raise OffsetOutOfRange(
            f"Received request for offset {wanted.offset} for partition {partition.partition}, but we only have log segments "
            f"in the range {log.log_start_offset} to {log.log_end_offset}."
        )
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.offset:
        return epoch, end_offset
    return None
