"""Print the contents of log segments, indexes and producer snapshots, as kafka-dump-log does.

Reads the files it is given, and for an index the other files of its segment; it takes no lock and needs no write permission. Options,
output and exit codes are those of Apache Kafka 4.2. It reports damage and never changes a file.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.errors import CorruptIndex, CorruptRecord, CorruptSnapshot, KafkaError, StorageFault
from barnabas.records.batch import (
    HEADER_SIZE_V2,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V1,
    MAGIC_V2,
    NO_TIMESTAMP,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    Batch,
    read_batch,
)
from barnabas.records.reader import read_records
from barnabas.records.record import Record
from barnabas.storage.directory.names import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from barnabas.storage.disk.files import AnyFile, Files
from barnabas.storage.indexes.offset_index import OffsetIndex
from barnabas.storage.indexes.time_index import TimeIndex
from barnabas.storage.indexes.txn_index import LAYOUT as TXN_LAYOUT
from barnabas.storage.producers.snapshot import decode_snapshot
from barnabas.tools.command_line.options import KAFKA_VERSION, Option, Options, UsageError
from barnabas.tools.records import dump_decoders
from barnabas.tools.records.dump_decoders import Decoder, Shown
from barnabas.tools.records.dump_text import DECODERS, STRING_DECODER, batch_line, decode, optional, record_metadata

ABOUT: Final = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly corrupt log segment."
)
_DECODER: Final = (
    " This class should implement org.apache.kafka.tools.api.Decoder trait. Custom jar should be available in kafka/libs directory."
)
_INT_MAX: Final = 2**31 - 1
OPTIONS: Final = (
    Option(
        "print-data-log",
        "If set, printing the messages content when dumping data logs. Automatically set if any decoder option is specified.",
    ),
    Option("verify-index-only", "If set, just verify the index log without printing its content."),
    Option(
        "index-sanity-check",
        "If set, just checks the index sanity without printing its content. "
        "This is the same check that is executed on broker startup to determine if an index needs rebuilding or not.",
    ),
    Option(
        "files",
        "REQUIRED: The comma separated list of data and index log files to be dumped.",
        argument="required",
        described_as="file1, file2, ...",
    ),
    Option("max-message-size", "Size of largest message.", "required", "Integer", "size", str(5 * 1024 * 1024)),
    Option(
        "max-bytes",
        "Limit the amount of total batches read in bytes avoiding reading the whole .log file(s).",
        "required",
        "Integer",
        "size",
        str(_INT_MAX),
    ),
    Option("deep-iteration", "If set, uses deep instead of shallow iteration. Automatically set if print-data-log is enabled."),
    Option("value-decoder-class", "If set, used to deserialize the messages." + _DECODER, "optional", default=STRING_DECODER),
    Option("key-decoder-class", "If set, used to deserialize the keys." + _DECODER, "optional", default=STRING_DECODER),
    Option("offsets-decoder", "If set, log data will be parsed as offset data from the __consumer_offsets topic."),
    Option("transaction-log-decoder", "If set, log data will be parsed as transaction metadata from the __transaction_state topic."),
    Option("cluster-metadata-decoder", "If set, log data will be parsed as cluster metadata records."),
    Option("share-group-state-decoder", "If set, log data will be parsed as share group state data from the __share_group_state topic."),
    Option("skip-record-metadata", "Skip metadata when printing records. This flag also skips control records."),
)

CHECKPOINT_SUFFIX: Final = ".checkpoint"  # a snapshot of KRaft's metadata: batches, like a log
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"


def main(arguments: Sequence[str]) -> int:
    try:
        options = Options(OPTIONS, arguments)
        if options.is_empty or options.has("help"):
            return _usage(options, ABOUT)
        if options.has("version"):
            print(KAFKA_VERSION)
            return 0
        if not options.has("files"):
            return _usage(options, 'Missing required argument "[files]"')
        paths = options.text("files").rstrip(",").split(",")
        dump = Dump(DumpSettings.of(options))
        for path in paths:
            dump.file(re.sub("/+", "/", path))
    except (UsageError, KafkaError, StorageFault) as error:
        return _failed(str(error))
    except BrokenPipeError:
        raise  # the command ends quietly on it
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    dump.faults.print()
    return 0


@dataclass(frozen=True)
class DumpSettings:
    print_data: bool
    deep: bool
    skip_record_metadata: bool
    verify_only: bool
    sanity_only: bool
    max_message_size: int
    max_bytes: int
    key_decoder: str
    value_decoder: str
    decoder: Decoder | None  # decodes a whole record, instead of key and value

    @classmethod
    def of(cls, options: Options) -> DumpSettings:
        topics = [name for name in dump_decoders.NAMES if options.has(name)]
        print_data = any(map(options.has, ("print-data-log", "key-decoder-class", "value-decoder-class", *topics)))
        decoders = options.text("key-decoder-class"), options.text("value-decoder-class")
        for decoder in decoders:
            if decoder not in DECODERS:
                raise UsageError(f"There is no decoder class {decoder}, only {', '.join(DECODERS)}")
        return cls(
            print_data,
            print_data or options.has("deep-iteration"),
            options.has("skip-record-metadata"),
            options.has("verify-index-only"),
            options.has("index-sanity-check"),
            options.integer("max-message-size"),
            options.integer("max-bytes"),
            *decoders,
            dump_decoders.make(topics[0]) if topics else None,
        )


Pairs = dict[str, list[tuple[int, int]]]  # by file: what the index says, and what the log says


@dataclass
class FileFaults:
    """The inconsistencies between files. They are printed after all files."""

    index_mismatches: Pairs = field(default_factory=dict)
    timestamp_mismatches: Pairs = field(default_factory=dict)
    timestamps_out_of_order: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    non_consecutive: Pairs = field(default_factory=dict)

    def print(self) -> None:
        """Prints the faults in Kafka's order: two of the lists begin with the last one found."""
        for path, pairs in self.index_mismatches.items():
            _complain(f"Mismatches in :{path}", "  Index offset: {}, log offset: {}", reversed(pairs))
        for path, pairs in self.timestamp_mismatches.items():
            _complain(f"Found timestamp mismatch in :{path}", "  Index timestamp: {}, log timestamp: {}", pairs)
        for path, pairs in self.timestamps_out_of_order.items():
            _complain(f"Found out of order timestamp in :{path}", "  Index timestamp: {}, Previously indexed timestamp: {}", pairs)
        for pairs in self.offsets_not_found.values():
            _complain("The following indexed offsets are not found in the log.", "Indexed offset: {}, found log offset: {}", pairs)
        for path, pairs in self.non_consecutive.items():
            _complain(f"Non-consecutive offsets in {path}", "  {} is followed by {}", reversed(pairs))


class Dump:
    """One run of the tool: prints each file and collects the faults."""

    def __init__(self, settings: DumpSettings) -> None:
        self.faults = FileFaults()
        self._settings = settings
        self._files = Files()
        self._kinds = {
            LOG_SUFFIX: self._log,
            CHECKPOINT_SUFFIX: self._log,
            INDEX_SUFFIX: self._index,
            TIME_INDEX_SUFFIX: self._time_index,
            TXN_INDEX_SUFFIX: self._txn_index,
            SNAPSHOT_SUFFIX: self._producer_snapshot,
        }

    def file(self, path: str) -> None:
        print(f"Dumping {path}")
        kind = self._kinds.get(os.path.splitext(path)[1])
        if kind is None:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
        else:
            kind(path)

    # -- batches

    def _log(self, path: str) -> None:
        settings = self._settings
        print(_log_title(path))
        file = self._files.open(path, writable=False)
        end = min(file.size, settings.max_bytes)
        valid_bytes = 0
        last_offset = -1
        for position, data in _walk(file, 0, end):
            batch = _header(data, path, position)
            print(batch_line(data, batch, position))
            if settings.deep:
                last_offset = self._records(path, position, data, batch, last_offset)
            valid_bytes += len(data)
        if end > valid_bytes and settings.max_bytes == _INT_MAX:
            print(f"Found {end - valid_bytes} invalid bytes at the end of {os.path.basename(path)}")
        file.close()

    def _records(self, path: str, position: int, data: bytes, batch: Batch, last_offset: int) -> int:
        """Prints the records of a batch and returns the offset of the last one."""
        try:
            records = read_records(data, batch)
        except KafkaError as error:
            raise CorruptRecord(f"{path}, batch at position {position}: {error}") from error
        for record in records:
            if last_offset not in (-1, record.offset - 1):
                _note(self.faults.non_consecutive, path, last_offset, record.offset)
            last_offset = record.offset
            print(self._record_line(batch, record))
        return last_offset

    def _record_line(self, batch: Batch, record: Record) -> str:
        settings = self._settings
        line = "" if settings.skip_record_metadata else f"| {record_metadata(batch, record)}"
        if not settings.print_data or batch.is_control:
            return line
        key, value = settings.decoder(record) if settings.decoder is not None else self._decoded(record)
        if key is not None:
            line += f"{' ' if line else '| '}key: {key}"
        if value is not None:
            line += f" payload: {value}"
        return line

    def _decoded(self, record: Record) -> Shown:
        key, value, settings = record.key, record.value, self._settings
        return (
            None if key is None else decode(settings.key_decoder, key, record.offset),
            None if value is None else decode(settings.value_decoder, value, record.offset),
        )

    # -- indexes

    def _index(self, path: str) -> None:
        base_offset = _base_offset(path)
        log = self._files.open(_sibling(path, LOG_SUFFIX), writable=False)
        data = self._files.read_bytes(path)
        if len(data) < OffsetIndex.entry_size:
            print(f"{path} is empty.")
        elif self._settings.sanity_only:
            OffsetIndex(self._files, path, base_offset, writable=False).sanity_check()
            print(f"{path} passed sanity check.")
        else:
            for relative_offset, position in _entries(data, OffsetIndex.layout, 0):
                self._index_entry(path, log, base_offset + relative_offset, position)

    def _index_entry(self, path: str, log: AnyFile, offset: int, position: int) -> None:
        batch = next(_walk(log, position, min(log.size, position + self._settings.max_message_size)), None)
        if batch is None:
            raise CorruptIndex(f"{path}: offset {offset} is said to stand at position {position}, where {log.path} has no whole batch")
        log_offset = _header(batch[1], log.path, position).last_offset
        if log_offset != offset:
            _note(self.faults.index_mismatches, path, offset, log_offset)
        if not self._settings.verify_only:
            print(f"offset: {offset} position: {position}")

    def _time_index(self, path: str) -> None:
        base_offset = _base_offset(path)
        log = self._files.open(_sibling(path, LOG_SUFFIX), writable=False)
        if self._settings.sanity_only:
            TimeIndex(self._files, path, base_offset, writable=False).sanity_check()
            print(f"{path} passed sanity check.")
            return
        index = list(_entries(self._files.read_bytes(_sibling(path, INDEX_SUFFIX)), OffsetIndex.layout, 0))
        previous = NO_TIMESTAMP
        for timestamp, relative_offset in _entries(self._files.read_bytes(path), TimeIndex.layout, 1):
            slot = bisect_right(index, relative_offset, key=_first)
            start = index[slot - 1][1] if slot else 0
            self._time_index_entry(path, log, timestamp, base_offset + relative_offset, start, previous)
            previous = timestamp

    def _time_index_entry(self, path: str, log: AnyFile, timestamp: int, offset: int, start: int, previous: int) -> None:
        batch, data = _find(log, start, offset)
        if batch is None or batch.last_offset != offset:
            _note(self.faults.offsets_not_found, path, offset, -1 if batch is None else batch.last_offset)
        else:
            in_log = max((record.timestamp for record in read_records(data, batch)), default=NO_TIMESTAMP)
            if in_log != timestamp:
                _note(self.faults.timestamp_mismatches, path, timestamp, in_log)
            if previous >= timestamp:
                _note(self.faults.timestamps_out_of_order, path, timestamp, previous)
        if not self._settings.verify_only:
            print(f"timestamp: {timestamp} offset: {offset}")

    def _txn_index(self, path: str) -> None:
        data = self._files.read_bytes(path)
        whole = data[: len(data) - len(data) % TXN_LAYOUT.size]
        for version, producer_id, first_offset, last_offset, last_stable_offset in TXN_LAYOUT.iter_unpack(whole):
            print(
                f"version: {version} producerId: {producer_id} firstOffset: {first_offset} "
                f"lastOffset: {last_offset} lastStableOffset: {last_stable_offset}"
            )

    # -- producers

    def _producer_snapshot(self, path: str) -> None:
        try:
            entries = decode_snapshot(self._files.read_bytes(path), path)
        except CorruptSnapshot as error:
            print(error, file=sys.stderr)
            return
        for entry in entries:
            line = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
                f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {optional(entry.current_txn_first_offset, -1)} "
                f"lastTimestamp: {entry.last_timestamp} "
            )
            for batch in entry.batches[:1]:
                line += (
                    f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                    f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
                )
            print(line)


def _walk(file: AnyFile, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yields the batches with their positions. A batch that exceeds `end` ends the walk; a length below the minimum of every format is an
    error."""
    position = start
    while position < end - MAGIC_AT - 1:
        (length,) = struct.unpack_from(">i", file.pread(LOG_OVERHEAD, position), 8)
        if length < RECORD_OVERHEAD_V0:
            raise CorruptRecord(
                f"Found record size {length} smaller than minimum record overhead ({RECORD_OVERHEAD_V0})"
                f" in file {file.path} at position {position}."
            )
        if position + LOG_OVERHEAD + length > end:
            return
        yield position, file.pread(LOG_OVERHEAD + length, position)
        position += LOG_OVERHEAD + length


def _header(data: bytes, path: str, position: int) -> Batch:
    """The header of a batch. A magic above 2 is read as 2, because it is most likely damage."""
    magic = data[MAGIC_AT]
    least = HEADER_SIZE_V2 if magic >= MAGIC_V2 else LOG_OVERHEAD + (RECORD_OVERHEAD_V1 if magic == MAGIC_V1 else RECORD_OVERHEAD_V0)
    if len(data) < least:
        raise CorruptRecord(f"{path}: a batch of {len(data)} bytes at position {position}, where magic {magic} needs at least {least}")
    if magic > MAGIC_V2:
        data = data[:MAGIC_AT] + bytes([MAGIC_V2]) + data[MAGIC_AT + 1 :]
    return read_batch(data, 0, len(data))


def _find(log: AnyFile, start: int, offset: int) -> tuple[Batch | None, bytes]:
    """The first batch from `start` on that ends at the offset or later."""
    for position, data in _walk(log, start, log.size):
        batch = _header(data, log.path, position)
        if batch.last_offset >= offset:
            return batch, data
    return None, b""


def _entries(data: bytes, layout: struct.Struct, offset_column: int) -> Iterator[tuple[int, int]]:
    """The entries of an index up to the zeros with which Kafka pads an active one."""
    for n in range(len(data) // layout.size):
        entry: tuple[int, int] = layout.unpack_from(data, n * layout.size)
        if n > 0 and entry[offset_column] == 0:
            return
        yield entry


def _first(entry: tuple[int, int]) -> int:
    return entry[0]


def _log_title(path: str) -> str:
    name = os.path.basename(path)
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    if name.endswith(CHECKPOINT_SUFFIX):
        of = re.fullmatch(r"([0-9]{20})-([0-9]{10})\.checkpoint", name)
        if of is None:
            raise UsageError(f"{path}: a snapshot is named after its end offset and epoch")
        return f"Snapshot end offset: {int(of[1])}, epoch: {int(of[2])}"
    return f"Log starting offset: {_base_offset(path)}"


def _base_offset(path: str) -> int:
    prefix = os.path.basename(path).partition(".")[0]
    if not re.fullmatch("[0-9]{1,20}", prefix):
        raise UsageError(f'{path}: the file of a segment is named after its base offset, and "{prefix}" is none')
    return int(prefix)


def _sibling(path: str, suffix: str) -> str:
    """Another file of the same segment."""
    return os.path.join(os.path.dirname(path), os.path.basename(path).partition(".")[0] + suffix)


def _note(pairs: Pairs, path: str, first: int, second: int) -> None:
    pairs.setdefault(os.path.join(os.getcwd(), path), []).append((first, second))


def _complain(title: str, line: str, pairs: Iterable[tuple[int, int]]) -> None:
    print(title, file=sys.stderr)
    for pair in pairs:
        print(line.format(*pair), file=sys.stderr)


def _usage(options: Options, message: str) -> int:
    print(message, file=sys.stderr)
    print(options.help(), file=sys.stderr)
    return 1


def _failed(message: str) -> int:
    print(message, file=sys.stderr)
    return 1
