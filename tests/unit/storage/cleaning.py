"""Compacted logs for tests of the cleaner: keyed records, cleanings, and what a reader makes of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.records.batch import Batch, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.reader import read_records
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.compaction.cleaner import Cleaning, exhaust
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from tests.unit.storage.logs import NOW, Producer, RecordingHost, append, config, make_log

Keyed = tuple[int, bytes | None, bytes | None]


def compact_config(**settings: Any) -> LogConfig:
    return config(**{"cleanup_policy": frozenset({"compact"}), "file_delete_delay_ms": 0, **settings})


def compact_log(files: AnyFiles | None = None, host: RecordingHost | None = None, **settings: Any) -> Log:
    return make_log(files if files is not None else SimulatedFiles(lambda: NOW), compact_config(**settings), host=host)


def keyed_batch(
    pairs: Mapping[str, str | None] | Sequence[tuple[str | None, str | None]], *, timestamp: int = NOW, **options: Any
) -> bytes:
    """A batch of these keys and values; a value of None is a tombstone."""
    builder = BatchBuilder(**options)
    for key, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        builder.append(timestamp, None if key is None else key.encode(), None if value is None else value.encode())
    return builder.build()


def put(log: Log, **pairs: str | None) -> None:
    """Appends one batch with these keys and values."""
    append(log, keyed_batch(pairs))


class Writer(Producer):
    """A transactional producer of keyed records."""

    def put(self, **pairs: str | None) -> None:
        self.put_all(list(pairs.items()))

    def put_all(self, pairs: Sequence[tuple[str, str | None]]) -> None:
        producer: dict[str, Any] = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": self.sequence}
        append(self.log, keyed_batch(pairs, transactional=True, **producer))
        self.sequence += len(pairs)


def roll(log: Log) -> None:
    """Closes the active segment, so that all that was written can be cleaned."""
    log.roll(NOW)
    log.update_high_watermark(log.log_end_offset)


def clean(
    log: Log, first_dirty: int = 0, first_uncleanable: int | None = None, *, now_ms: int = NOW, settings: CleanerConfig | None = None
) -> Cleaning:
    """One cleaning, to its end: of everything but the active segment unless told otherwise."""
    end = log.active_segment.base_offset if first_uncleanable is None else first_uncleanable
    cleaning = Cleaning(log, first_dirty, end, settings or CleanerConfig(), now_ms)
    exhaust(cleaning, now_ms)
    return cleaning


def keyed(log: Log) -> list[Keyed]:
    """Every record in the files that is not a marker: offset, key, value."""
    found: list[Keyed] = []
    for data, read in batches(log):
        if not read.is_control:
            found += [(record.offset, record.key, record.value) for record in read_records(data, read)]
    return found


def batches(log: Log) -> list[tuple[bytes, Batch]]:
    contents = [log.files.read_bytes(segment.file.path) for segment in log.segments]
    return [(data, read) for data in contents for read in read_batches(data)]


def headers(log: Log) -> list[Batch]:
    return [read for _, read in batches(log)]


def committed(log: Log) -> dict[bytes, bytes]:
    """What a consumer with read_committed makes of the log from its start: the last value of each key that was not deleted."""
    state: dict[bytes, bytes] = {}
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, 300, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        if fetched.records is None or fetched.records.size == 0:
            return state
        aborted = [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in fetched.aborted or []]
        data = fetched.records.read()
        for read in read_batches(data):
            skipped = any(pid == read.producer_id and first <= read.base_offset < last for pid, first, last in aborted)
            if not read.is_control and not (read.is_transactional and skipped):
                _apply(state, [r for r in read_records(data, read) if r.offset >= offset])
            offset = read.last_offset + 1


def _apply(state: dict[bytes, bytes], records: list[Any]) -> None:
    for record in records:
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value


def cleaned_files(log: Log) -> list[str]:
    """Files of a cleaning that is not finished."""
    return [entry.name for entry in log.files.list_dir(log.directory) if entry.name.endswith((".cleaned", ".swap"))]
