"""Batches and markers of producers, for tests of the producer state."""

from __future__ import annotations

from pathlib import Path

from barnabas.records.batch import Batch, read_batches
from barnabas.records.control import parse_end_txn_marker
from barnabas.records.reader import read_records
from barnabas.records.validation.validator import CLIENT, COORDINATOR, REPLICATION
from barnabas.storage.disk.files import AnyFiles, Files
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.state import CompletedTxn, ProducerStateConfig, ProducerStateEntry, ProducerStateManager
from barnabas.topic_partition import TopicPartition

PARTITION = TopicPartition("test", 0)
NOW = 1_700_000_000_000
DAY_MS = 86_400_000


def new_state(directory: Path, config: ProducerStateConfig | None = None, files: AnyFiles | None = None) -> ProducerStateManager:
    return ProducerStateManager(files or Files(), str(directory), PARTITION, config)


def entry_of(state: ProducerStateManager, producer_id: int = 1) -> ProducerStateEntry:
    entry = state.last_entry(producer_id)
    assert entry is not None
    return entry


def snapshots_in(directory: Path) -> list[int]:
    return sorted(int(p.stem) for p in directory.glob("*.snapshot"))


def batch(
    offset: int,
    sequence: int,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    count: int = 1,
    timestamp: int = NOW,
    transactional: bool = False,
    control: bool = False,
) -> Batch:
    attributes = (0x10 if transactional else 0) | (0x20 if control else 0)
    last_offset = offset + count - 1
    return Batch(0, 70, 2, attributes, 0, offset, last_offset, 0, timestamp, timestamp, producer_id, epoch, sequence, count)


def append(
    state: ProducerStateManager,
    offset: int,
    sequence: int,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    count: int = 1,
    timestamp: int = NOW,
    transactional: bool = False,
    origin: int = CLIENT,
    place: LogOffset | None = None,
) -> None:
    """A batch checked and written, as a Log does it."""
    written = batch(offset, sequence, producer_id=producer_id, epoch=epoch, count=count, timestamp=timestamp, transactional=transactional)
    info = state.prepare_update(producer_id, origin)
    info.append_batch(written, place)
    state.update(info)
    state.update_map_end_offset(offset + count)


def end_txn(
    state: ProducerStateManager,
    offset: int,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    committed: bool = True,
    coordinator_epoch: int = 0,
    timestamp: int = NOW,
    origin: int = COORDINATOR,
    transaction_version: int = -1,
) -> tuple[CompletedTxn | None, int]:
    """A marker checked, written and applied; the transaction it completed and the last stable offset that goes into the index."""
    info = state.prepare_update(producer_id, origin)
    completed = info.append_end_txn_marker(committed, coordinator_epoch, epoch, offset, timestamp, transaction_version)
    state.update(info)
    last_stable_offset = -1
    if completed is not None:
        last_stable_offset = state.last_stable_offset(completed)
        state.complete_txn(completed)
    state.update_map_end_offset(offset + 1)
    return completed, last_stable_offset


def replay(state: ProducerStateManager, data: bytes) -> list[tuple[int, int, int]]:
    """The batches of a log file, applied; the aborted transactions as the transaction index has them: first, last, last stable offset."""
    aborted: list[tuple[int, int, int]] = []
    for read in read_batches(data):
        if read.has_producer_id and read.is_control:
            record = read_records(data, read)[0]
            marker = parse_end_txn_marker(record)
            completed, last_stable_offset = end_txn(
                state,
                read.base_offset,
                producer_id=read.producer_id,
                epoch=read.producer_epoch,
                committed=marker.committed,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp=record.timestamp,
                origin=REPLICATION,
            )
            if completed is not None and completed.is_aborted:
                aborted.append((completed.first_offset, completed.last_offset, last_stable_offset))
        elif read.has_producer_id:
            info = state.prepare_update(read.producer_id, REPLICATION)
            info.append_batch(read)
            state.update(info)
        state.update_map_end_offset(read.last_offset + 1)
    return aborted
