# Compiled by mypyc: src/compiled.toml lists this module.
"""Applies batches of a log to the state of its producers: checks an append, and rebuilds the state from segments.

The producer state itself reads no bytes. This module reads the only record that it needs, the marker that ends a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.records.batch import MAGIC_V2, Batch
from barnabas.records.control import ABORT, COMMIT, parse_control_type, parse_end_txn_marker
from barnabas.records.reader import read_records
from barnabas.records.validation.validator import CLIENT, COORDINATOR, REPLICATION, Validated
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.state import BatchMetadata, CompletedTxn, ProducerAppendInfo, ProducerStateManager
from barnabas.storage.producers.verification import SENTINEL, VerificationGuard

if TYPE_CHECKING:
    from barnabas.storage.segments.segment import Segment
    from barnabas.storage.segments.segments import Segments


class ProducerUpdates(NamedTuple):
    """The changes of the producer state to apply once the batches are written, or the batch of which this append is a retry."""

    appended: list[ProducerAppendInfo]
    completed: list[CompletedTxn]
    duplicate: BatchMetadata | None = None


def check_producers(
    producers: ProducerStateManager,
    segment: Segment,
    records: Validated,
    origin: int,
    guard: VerificationGuard | None,
    transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
) -> ProducerUpdates | None:
    """Checks epochs and sequences of an append at the end of `segment`; returns None if no batch has a producer id."""
    batches = records.batches
    if len(batches) == 1 and not batches[0].has_producer_id:
        return None
    appended: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    data: bytes | None = None  # joined at the first marker, once for all markers
    for batch in batches:
        if not batch.has_producer_id:
            continue
        producer_id = int(batch.producer_id)
        if origin == CLIENT:
            duplicate = producers.find_duplicate(batch)
            if duplicate is not None:
                return ProducerUpdates([], [], duplicate)
        if origin in (CLIENT, COORDINATOR):
            producers.require_verified(batch, guard or SENTINEL)
        info = appended.get(producer_id)
        if info is None:
            info = appended[producer_id] = producers.prepare_update(producer_id, origin)
        txn: CompletedTxn | None = None
        if batch.is_control:
            data = b"".join(records.buffers) if data is None else data
            txn = _append_marker(info, data, batch, transaction_version)
        elif batch.is_transactional:
            info.append_batch(batch, LogOffset(int(batch.base_offset), segment.base_offset, segment.size + int(batch.at)))
        else:
            info.append_batch(batch)
        if batch.is_transactional:
            producers.clear_verification(producer_id)
        if txn is not None:
            completed.append(txn)
    return ProducerUpdates(list(appended.values()), completed) if appended else None


def replay_batch(producers: ProducerStateManager, data: bytes, batch: Batch) -> CompletedTxn | None:
    """Applies a batch of the log; returns the transaction that it ends, which the caller must complete."""
    if not batch.has_producer_id:
        return None
    info = producers.prepare_update(int(batch.producer_id), REPLICATION)
    txn: CompletedTxn | None = None
    if batch.is_control:
        txn = _append_marker(info, data, batch, TRANSACTION_VERSION_UNKNOWN)
    else:
        info.append_batch(batch)
    producers.update(info)
    return txn


def _append_marker(info: ProducerAppendInfo, data: bytes, batch: Batch, transaction_version: int) -> CompletedTxn | None:
    records = read_records(data, batch)
    if not records or parse_control_type(records[0]) not in (ABORT, COMMIT):
        return None  # compaction may leave an empty batch; other control types do not end a transaction
    marker = parse_end_txn_marker(records[0])
    return info.append_end_txn_marker(
        marker.committed,
        marker.coordinator_epoch,
        batch.producer_epoch,
        batch.base_offset,
        records[0].timestamp,
        transaction_version,
    )


def rebuild_producer_state(
    producers: ProducerStateManager,
    segments: Segments,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    from_clean_shutdown: bool = False,
) -> None:
    """Brings the state to `end_offset`, from the latest usable snapshot and the segments after it.

    Snapshots are taken at the start of the last two segments and at the end, so that the next rebuild is short.
    """
    snapshot_offsets = _snapshot_offsets(segments, end_offset)
    if from_clean_shutdown and producers.latest_snapshot_offset is None:
        # A clean shutdown writes a snapshot if there is any producer state: without a snapshot there is none.
        for offset in snapshot_offsets:
            producers.update_map_end_offset(offset)
            producers.take_snapshot()
        return
    was_empty = producers.is_empty and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(log_start_offset, end_offset, now_ms)
    if end_offset > producers.map_end_offset and not was_empty:
        last = segments.floor(end_offset)
        for segment in segments.between(producers.map_end_offset, end_offset):
            start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.update_map_end_offset(start)
            if segment.base_offset in snapshot_offsets:
                producers.take_snapshot()
            _replay_segment(producers, segment, start, end_offset if segment is last else None)
    producers.update_map_end_offset(end_offset)
    producers.take_snapshot()


def _snapshot_offsets(segments: Segments, end_offset: int) -> list[int]:
    offsets = [end_offset]
    if len(segments):
        active = segments.active.base_offset
        before = segments.lower(active)
        offsets = ([before.base_offset] if before else []) + [active, end_offset]
    return offsets


def _replay_segment(producers: ProducerStateManager, segment: Segment, start_offset: int, end_offset: int | None) -> None:
    first = segment.locate(start_offset)
    if first is None:
        return
    stop = segment.locate(end_offset) if end_offset is not None else None
    for chunk in segment.chunks(first.position, stop.position if stop else None):
        for batch in chunk.batches:
            if batch.magic >= MAGIC_V2 and batch.has_producer_id:
                txn = replay_batch(producers, chunk.data, batch)
                if txn is not None:
                    producers.complete_txn(txn)
