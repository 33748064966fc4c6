# Compiled by mypyc: src/compiled.toml lists this module.
"""Checks of a log before it writes records, and the result of an append.

The validator checks the records of a leader. A follower accepts the leader's batches unchanged if they are intact and begin at its log end
offset or after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.errors import CorruptRecord, OffsetsOutOfOrder, RecordTooLarge, UnexpectedAppendOffset
from barnabas.records.batch import MAGIC_V2, NO_TIMESTAMP, Batch, read_batches
from barnabas.records.crc import is_valid
from barnabas.records.validation.validation import CLIENT
from barnabas.records.validation.validator import Validated
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.state import BatchMetadata
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.topic_partition import TopicPartition

UNKNOWN_OFFSET: Final = -1

_log = logging.getLogger(__name__)


class LogAppend:
    """One append by a leader: the batches in `data[start:end]`, their origin and the time. The replica manager passes it to the log.

    `at_once` is the most bytes of records that one call validates; -1 means no limit. The replica manager uses one object for all
    partitions of a call, one after the other, because every append needs one.
    """

    __slots__ = ("at_once", "data", "end", "now_ms", "origin", "start", "transaction_version", "verification_guard")

    def __init__(
        self,
        data: bytes,
        now_ms: int,
        *,
        start: int = 0,
        end: int = -1,
        origin: int = CLIENT,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
        at_once: int = -1,
    ) -> None:
        self.data = data
        self.start = start
        self.end = len(data) if end < 0 else end
        self.now_ms = now_ms
        self.origin = origin
        self.verification_guard = verification_guard
        self.transaction_version = transaction_version
        self.at_once = at_once


class LogAppendInfo:
    """The result of an append. For a duplicate these are the offsets of the original.

    `first_offset` is -1 where it is known only after decompressing: formats v0 and v1 on a follower. `looked_at` is the number of bytes of
    records that the validation has read. With `must_flush` the append is acknowledged after the flush that flush.messages requires. A plain
    class, because every append creates one.
    """

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        log_append_time: int,
        log_start_offset: int,
        size: int,
        batches: int,
        duplicate: bool = False,
        converted_records: int = 0,
        looked_at: int = 0,
        must_flush: bool = False,
        temporary_bytes: int = 0,
        conversion_ns: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.size = size
        self.batches = batches
        self.duplicate = duplicate
        self.converted_records = converted_records
        self.looked_at = looked_at
        self.must_flush = must_flush
        self.temporary_bytes = temporary_bytes
        self.conversion_ns = conversion_ns


def nothing_appended(log_start_offset: int) -> LogAppendInfo:
    return LogAppendInfo(UNKNOWN_OFFSET, -1, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, 0, 0)


def duplicate_of(original: BatchMetadata, log_start_offset: int, must_flush: bool) -> LogAppendInfo:
    """The result of a retry: that of the first append. The batch is not written again."""
    return LogAppendInfo(
        original.first_offset,
        original.last_offset,
        original.timestamp,
        original.timestamp,
        log_start_offset,
        0,
        0,
        duplicate=True,
        must_flush=must_flush,
    )


def check_sizes(batches: Iterable[Batch], max_message_bytes: int, partition: TopicPartition) -> None:
    """Checks the sizes again, after conversion or recompression has changed them."""
    for batch in batches:
        if batch.size > max_message_bytes:
            raise RecordTooLarge(
                f"Message batch size is {batch.size} bytes in append to partition {partition} "
                f"which exceeds the maximum configured size of {max_message_bytes}."
            )


def analyze_replicated(data: bytes, leader_epoch: int, partition: TopicPartition) -> Validated:
    """The batches that a follower fetched, checked: whole, intact, with ascending offsets. Batches of a later leader epoch are left out."""
    batches: list[Batch] = []
    last_offset = -1
    max_timestamp, offset_of_max = NO_TIMESTAMP, -1
    for batch in read_batches(data):
        if 0 <= leader_epoch < batch.leader_epoch:
            break
        if batch.base_offset <= last_offset or batch.last_offset < batch.base_offset:
            raise OffsetsOutOfOrder(
                f"Out of order offsets found in append to {partition}: "
                f"{last_offset} is followed by {batch.base_offset} to {batch.last_offset}"
            )
        if not is_valid(data, batch):
            raise CorruptRecord(f"Record is corrupt (stored crc = {batch.crc}) in topic partition {partition}.")
        last_offset = batch.last_offset
        if batch.max_timestamp > max_timestamp:
            max_timestamp, offset_of_max = batch.max_timestamp, last_offset
        batches.append(batch)
    size = batches[-1].end if batches else 0
    whole: bytes | memoryview = data if size == len(data) else memoryview(data)[:size]
    return Validated([whole], size, batches, last_offset, max_timestamp, offset_of_max, NO_TIMESTAMP, False, 0, 0)


def require_next(replicated: Validated, log_end_offset: int, partition: TopicPartition) -> int:
    """The first offset of the batches, -1 where it is known only after decompressing. Raises if it is below the log end offset."""
    first = replicated.batches[0]
    first_offset = first.base_offset if first.magic >= MAGIC_V2 else UNKNOWN_OFFSET
    checked, what = (first.last_offset, "Last offset of the first batch") if first_offset < 0 else (first_offset, "First offset")
    if checked < log_end_offset:
        raise UnexpectedAppendOffset(
            f"Unexpected offset in append to {partition}. {what} {checked} is less than the next offset {log_end_offset}. "
            f"First 10 offsets in append: {[batch.base_offset for batch in replicated.batches[:10]]}, "
            f"last offset in append: {replicated.last_offset}.",
            first.base_offset,
            replicated.last_offset,
        )
    return first_offset


def has_gap(batches: Sequence[Batch], log_end_offset: int) -> bool:
    """Whether records are missing before one of the batches. For a batch of format v0 or v1 this is unknown and counts as no."""
    expected = log_end_offset
    for batch in batches:
        if batch.base_offset > expected and batch.magic >= MAGIC_V2:
            return True
        expected = batch.next_offset
    return False


def assign_epochs(epochs: LeaderEpochCache, batches: Iterable[Batch], partition: TopicPartition) -> None:
    """Notes the leader epochs that begin in the batches of an append."""
    for batch in batches:
        if batch.magic < MAGIC_V2:
            if epochs.entries:
                # Old formats have no leader epoch: without the cache, truncation falls back to the high watermark, which is safe.
                _log.warning("Clearing leader epoch cache of %s after append with message format v%d", partition, batch.magic)
                epochs.clear_and_flush()
        elif batch.leader_epoch != epochs.latest_epoch and batch.leader_epoch >= 0:
            epochs.assign(int(batch.leader_epoch), int(batch.base_offset))
