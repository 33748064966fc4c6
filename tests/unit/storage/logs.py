"""Logs, segments and batches for tests of the storage core, on the simulated disk unless a test asks for the real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from barnabas.records.batch import Batch, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import end_txn_marker
from barnabas.records.reader import read_records, records_of
from barnabas.records.validation.validator import COORDINATOR
from barnabas.simulation.disk import DiskEvent, SimulatedFiles
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log.append import LogAppend, LogAppendInfo
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.state import ProducerStateConfig, ProducerStateManager
from barnabas.storage.segments.segment import Segment
from barnabas.topic_partition import TopicPartition

PARTITION = TopicPartition("orders", 0)
LOG_DIR = "/data"
DIRECTORY = f"{LOG_DIR}/{PARTITION}"
NOW = 1_700_000_000_000
DAY = 86_400_000


class RecordingHost:
    """Remembers what its logs ask for, and does it when told."""

    def __init__(self) -> None:
        self.deletions: list[tuple[int, Callable[[], None]]] = []
        self.flushes: list[tuple[Log, int]] = []
        self.failures: list[tuple[str, str]] = []

    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        self.deletions.append((delay_ms, delete))

    def flush_later(self, log: Log, offset: int) -> None:
        self.flushes.append((log, offset))

    def note_gaps(self, log: Log) -> None:
        return None

    def disk_failed(self, directory: str, message: str, error: Exception) -> None:
        self.failures.append((directory, message))

    def delete_due(self, after_ms: int) -> None:
        due = [delete for delay_ms, delete in self.deletions if delay_ms <= after_ms]
        self.deletions = [(delay_ms, delete) for delay_ms, delete in self.deletions if delay_ms > after_ms]
        for delete in due:
            delete()


def config(**settings: Any) -> LogConfig:
    """Transactions need no coordinator to vouch for them, and nothing is too far in the past or the future."""
    return LogConfig(**{"timestamp_after_max_ms": 2**62, **settings})


def make_log(
    files: AnyFiles | None = None,
    settings: LogConfig | None = None,
    *,
    directory: str = DIRECTORY,
    host: RecordingHost | None = None,
    now_ms: int = NOW,
    clean: bool = False,
    verify_transactions: bool = False,
    **request: Any,
) -> Log:
    """Loads the log in a directory, an empty one where there is none."""
    return load_log(
        LoadRequest(
            files if files is not None else SimulatedFiles(),
            directory,
            PARTITION,
            settings or config(),
            host or RecordingHost(),
            now_ms,
            clean_shutdown=clean,
            producer_config=ProducerStateConfig(transaction_verification_enabled=verify_transactions),
            **request,
        )
    )


def make_segment(files: AnyFiles | None = None, base_offset: int = 0, settings: LogConfig | None = None, **options: Any) -> Segment:
    disk = files if files is not None else SimulatedFiles()
    disk.make_dirs(DIRECTORY)
    segment = Segment(disk, DIRECTORY, base_offset, settings or config(), options.pop("now_ms", NOW), **options)
    if options.get("create", True):
        segment.create_indexes()
    return segment


def make_producers(files: AnyFiles) -> ProducerStateManager:
    return ProducerStateManager(files, DIRECTORY, PARTITION)


def batch(
    values: int | Sequence[bytes | None] = 1,
    *,
    offset: int = 0,
    timestamp: int = NOW,
    timestamps: Sequence[int] | None = None,
    key: bytes | None = None,
    size: int = 0,
    **options: Any,
) -> bytes:
    """One batch of records `v0`, `v1`, …, or of the given values, the first of them filled up so that the batch has `size` bytes."""
    contents = [b"v%d" % n for n in range(values)] if isinstance(values, int) else list(values)
    times = [timestamp] * len(contents) if timestamps is None else timestamps
    built = _build(contents, times, offset, key, options)
    first, padding = contents[0] or b"", size - len(built)
    for _ in range(3 if padding > 0 else 0):  # a longer value also has a longer length before it
        built = _build([first + b"." * padding, *contents[1:]], times, offset, key, options)
        padding -= len(built) - size
    return built


def _build(contents: Sequence[bytes | None], times: Sequence[int], offset: int, key: bytes | None, options: dict[str, Any]) -> bytes:
    builder = BatchBuilder(base_offset=offset, **options)
    for at, value in zip(times, contents, strict=True):
        builder.append(at, key, value)
    return builder.build()


def produced(
    producer_id: int,
    sequence: int,
    values: int | Sequence[bytes | None] = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    **options: Any,
) -> bytes:
    return batch(values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional, **options)


def marker(producer_id: int, committed: bool, *, epoch: int = 0, coordinator_epoch: int = 0, offset: int = 0) -> bytes:
    return end_txn_marker(committed, producer_id, epoch, coordinator_epoch, NOW, offset)


def offsets_of(info: LogAppendInfo) -> tuple[int, int]:
    return info.first_offset, info.last_offset


def append(log: Log, data: bytes | None = None, *, epoch: int = 0, now_ms: int = NOW) -> LogAppendInfo:
    return log.append_as_leader(LogAppend(batch() if data is None else data, now_ms), epoch)


def append_many(log: Log, count: int, **options: Any) -> None:
    """So many batches of one record each, whose value is its offset."""
    for _ in range(count):
        append(log, batch([b"%d" % log.log_end_offset], **options))


class Producer:
    """A transactional producer that writes to one log."""

    def __init__(self, log: Log, producer_id: int, epoch: int = 0) -> None:
        self.log = log
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def write(self, values: int | Sequence[bytes | None] = 1, **options: Any) -> LogAppendInfo:
        data = produced(self.producer_id, self.sequence, values, epoch=self.epoch, transactional=True, **options)
        info = append(self.log, data, epoch=max(self.log.latest_epoch, 0))
        self.sequence += info.last_offset - info.first_offset + 1
        return info

    def commit(self) -> int:
        return self._end(True)

    def abort(self) -> int:
        return self._end(False)

    def _end(self, committed: bool) -> int:
        data = marker(self.producer_id, committed, epoch=self.epoch)
        return self.log.append_as_leader(LogAppend(data, NOW, origin=COORDINATOR), max(self.log.latest_epoch, 0)).last_offset


def commit_all(log: Log) -> None:
    """Every record is replicated."""
    log.update_high_watermark(log.log_end_offset)


# -- what a log holds


def records(log: Log, isolation: FetchIsolation = FetchIsolation.LOG_END, max_bytes: int = 1000) -> list[tuple[int, bytes | None]]:
    """Offsets and values as a client reads them, fetch by fetch; aborted records are not left out."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, max_bytes, isolation, min_one_message=True)
        data = b"" if fetched.records is None else fetched.records.read()
        got = [(record.offset, record.value) for record in records_of(data) if record.offset >= offset]
        if not got:
            return found
        found += got
        offset = got[-1][0] + 1


def values(log: Log) -> list[bytes | None]:
    return [value for _, value in records(log)]


def scanned(log: Log) -> list[tuple[int, bytes | None]]:
    """Offsets and values straight from the files, without any index."""
    found: list[tuple[int, bytes | None]] = []
    for segment in log.segments:
        data = log.files.read_bytes(segment.file.path)
        for read in read_batches(data):
            found += [(record.offset, record.value) for record in read_records(data, read)]
    return found


def batches_of(log: Log) -> list[Batch]:
    return [read for segment in log.segments for read in read_batches(log.files.read_bytes(segment.file.path))]


def index_entries(segment: Segment) -> list[tuple[int, int]]:
    index = segment.offset_index
    return [tuple(index.entry(n)) for n in range(index.entries)]  # type: ignore[misc]


def time_entries(segment: Segment) -> list[tuple[int, int]]:
    index = segment.time_index
    return [tuple(index.entry(n)) for n in range(index.entries)]  # type: ignore[misc]


# -- files


def names_in(files: AnyFiles, directory: str = DIRECTORY) -> list[str]:
    return [entry.name for entry in files.list_dir(directory)]


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def path(offset: int, suffix: str, directory: str = DIRECTORY) -> str:
    return f"{directory}/{file_name(offset, suffix)}"


def write_file(files: AnyFiles, name: str, content: bytes = b"") -> None:
    file = files.open(name, create=True, truncate=True)
    file.append_bytes(content)
    file.close()


def flip(files: AnyFiles, name: str, position: int, mask: int = 0xFF) -> None:
    content = bytearray(files.read_bytes(name))
    content[position] ^= mask
    write_file(files, name, bytes(content))


def watch(files: SimulatedFiles, kind: str, suffix: str = "") -> list[DiskEvent]:
    """Everything of a kind that the disk is asked for from now on."""
    seen: list[DiskEvent] = []

    def note(event: DiskEvent) -> bool:
        if event.kind == kind and event.path.endswith(suffix):
            seen.append(event)
        return False

    files.fail_when(note)
    return seen


def restarted(files: SimulatedFiles) -> SimulatedFiles:
    """The disk as the next process finds it."""
    return files.process_crash()
