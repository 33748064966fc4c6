# Compiled by mypyc: src/compiled.toml lists this module.
"""Reads from the log of a partition for a fetch: the records with the offsets of the log, or the epoch in which the fetcher diverges.

A fetcher that sends the epoch of its last record gets the diverging epoch in the fetch response, and truncates (KIP-595).
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
    """The fetched records, with the offsets of the log at that moment."""

    def __init__(self, log: Log, fetched: FetchData, diverging_epoch: tuple[int, int] | None = None) -> None:
        self.fetched = fetched
        self.diverging_epoch = diverging_epoch
        self.high_watermark = log.high_watermark
        self.last_stable_offset = log.last_stable_offset
        self.log_start_offset = log.log_start_offset
        self.log_end_offset = log.log_end_offset


def read_records(
    partition: Partition, log: Log, request: PartitionFetch, isolation: FetchIsolation, max_bytes: int, min_one_message: bool
) -> PartitionRead:
    if request.last_fetched_epoch != NO_EPOCH:
        diverging = _diverging_epoch(partition, log, request)
        if diverging is not None:
            return PartitionRead(log, NOTHING, diverging)
    return PartitionRead(log, log.read(request.offset, max_bytes, isolation, min_one_message))


def _diverging_epoch(partition: Partition, log: Log, request: PartitionFetch) -> tuple[int, int] | None:
    """The epoch and its end offset up to which the fetcher's records may agree with the log; None if they all agree."""
    if request.last_fetched_epoch == log.epochs.latest_epoch and log.log_start_offset <= request.offset <= log.log_end_offset:
        return None  # nearly always: the fetcher is in the current epoch
    epoch, end_offset = partition.last_offset_for_leader_epoch(request.current_leader_epoch, request.last_fetched_epoch, False)
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRange(
            f"Could not determine the end offset of the last fetched epoch {request.last_fetched_epoch} from the request"
        )
    if request.offset < log.log_start_offset:
        raise OffsetOutOfRange(
            f"Received request for offset {request.offset} for partition {partition.partition}, but we only have log segments "
            f"in the range {log.log_start_offset} to {log.log_end_offset}."
        )
    if epoch < request.last_fetched_epoch or end_offset < request.offset:
        return epoch, end_offset
    return None
