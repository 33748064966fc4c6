# Compiled by mypyc: src/compiled.toml lists this module.
"""Validates in steps the records that would hold the event loop too long, otherwise as `validator` does in one call.

A batch of a few kilobytes may decompress into megabytes, with millions of records and headers. Codecs release the GIL, so they run on a
thread. Compiled loops over records hold it, so they run on the event loop in slices. The base offset is unknown until the end: the result
is for offset 0, and `placed` sets the offsets when the records are appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from barnabas.errors import DecompressedTooLarge, InvalidRecord, RecordTooLarge, TakesTurns
from barnabas.records import legacy
from barnabas.records.batch import CODEC_MASK, HEADER_SIZE_V2, LOG_OVERHEAD, MAGIC_V2, Batch, entry_size, read_batch, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import (
    FIRST_LOOK,
    NONE,
    PRODUCED_SIZE_MAX,
    compress,
    decompress,
    decompress_start,
    produced_size_max,
)
from barnabas.records.codecs.varint import read_varint
from barnabas.records.reader import records_in
from barnabas.records.record import Record
from barnabas.records.record_walk import WalkFault, slice_end, walk_records, walk_start
from barnabas.records.validation.entry_validator import Tally, header_size
from barnabas.records.validation.validation import Append, RecordCheck, Validated, ValidationRules, append_anew, builder_of, rebuilt_by
from barnabas.records.validation.validator import (
    AS_IT_IS,
    RECOMPRESSED,
    Walked,
    as_it_is,
    check_as_received,
    check_batch,
    check_codecs,
    fault_in,
    is_old_format,
    is_suspect,
    recompressed,
    temporary_bytes,
    validate,
    way_of,
)

SLICE_BYTES: Final = 512 * 1024  # of records that one slice walks over
SLICE_RECORDS: Final = 5_000  # that one slice checks one by one, or rewrites
_HEADERS_OF_A_RECORD: Final = 32  # this many headers are skipped in the time that one record takes
_EPOCH_END: Final = 16  # the end of base offset, size and leader epoch, which the checksum does not cover

# After each step: None, or a call that the driver makes on a thread before the next step.
Step = Callable[[], None] | None


class LongValidation:
    """The driver runs `steps` to the end; then `validated` holds the result. The steps raise the errors of `validate`."""

    def __init__(self, data: bytes, start: i64, end: i64, now_ms: i64, leader_epoch: i64, origin: i64, rules: ValidationRules) -> None:
        self.validated: Validated | None = None
        self.looked_at: i64 = 0  # bytes of records in this slice, for drivers that measure the work of a slice
        self._append = Append(data, 0, now_ms, leader_epoch, origin, rules)
        self._start = start
        self._end = end
        self._codec: i64 = NONE
        self._target_codec: i64 = NONE
        self._compressed: bytes = b""  # to be decompressed on a thread
        self._magic: i64 = MAGIC_V2
        self._body: bytes = b""  # the decompressed bytes
        self._at: i64 = 0
        self._body_end: i64 = 0
        self._walked: Walked = (0, 0, 0, 0)
        self._builder: BatchBuilder | None = None
        self._built: bytes = b""  # the bytes that a thread has rewritten

    def finish(self) -> Validated:
        """Runs all steps at once, for callers without an event loop."""
        for step in self.steps():
            if step is not None:
                step()
        assert self.validated is not None
        return self.validated

    def steps(self) -> Iterator[Step]:
        if is_old_format(self._append.data, self._start):
            yield from self._steps_of_entries()
        else:
            yield from self._steps_of_batch()

    # -- format v2

    def _steps_of_batch(self) -> Iterator[Step]:
        append = self._append
        size: i64 = entry_size(append.data, self._start, self._end)
        if size == 0:
            raise InvalidRecord("Record batch has no batches at all")
        batch = read_batch(append.data, self._start, size)
        check_as_received(append, batch)
        if entry_size(append.data, self._start + size, self._end) != 0:
            raise InvalidRecord("Compressed outer record has more than one batch")
        check_batch(append, batch, batch)
        self._choose_codecs(batch, batch.attributes & CODEC_MASK)
        yield None
        yield from self._open_batch(batch)
        yield from self._walk(batch)
        if is_suspect(append, batch, self._walked):
            yield from self._check(batch, records_in(self._body, self._at, self._body_end, batch))
        way = way_of(append, batch, self._body, self._at, self._walked, self._codec, self._target_codec)
        size = self._body_end - self._at
        if way == AS_IT_IS:
            self.validated = as_it_is(append, batch, self._walked, self._codec, self._target_codec, size)
        elif way == RECOMPRESSED:
            yield self._compress
            self.validated = recompressed(append, batch, self._walked, self._built, self._target_codec, size)
        else:
            temporary: i64 = temporary_bytes(self._codec, self._target_codec, size)
            yield from self._rebuild(batch, records_in(self._body, self._at, self._body_end, batch), temporary)

    def _choose_codecs(self, first: Batch, source_codec: i64) -> None:
        rules = self._append.rules
        self._codec = source_codec
        self._target_codec = source_codec if rules.codec < 0 else rules.codec
        check_codecs(first.magic, rules.target_magic, source_codec, self._target_codec)

    def _open_batch(self, batch: Batch) -> Iterator[Step]:
        """If there are many decompressed bytes, the first of them are checked before the rest is decompressed."""
        start: i64 = batch.at + HEADER_SIZE_V2
        if self._codec == NONE:
            self._body, self._at, self._body_end = self._append.data, start, batch.at + batch.size
            return
        self._compressed = self._append.data[start : batch.end]
        yield self._open_start
        if len(self._body) >= FIRST_LOOK:
            yield None
            if read_varint(self._body, 0)[0] > self._limit:
                raise self._too_large()  # the first record alone is too large
            try:
                walk_start(self._body, len(self._body), batch.count, PRODUCED_SIZE_MAX)
            except WalkFault as fault:
                raise fault_in(self._body, len(self._body), batch, fault) from fault
            yield self._open_all
        self._body_end = len(self._body)

    def _open_start(self) -> None:
        self._body = decompress_start(self._codec, self._compressed, self._magic)

    def _open_all(self) -> None:
        try:
            self._body = decompress(self._codec, self._compressed, self._magic, self._limit)
        except DecompressedTooLarge as fault:
            raise self._too_large() from fault

    @property
    def _limit(self) -> i64:
        return produced_size_max(len(self._compressed))

    def _too_large(self) -> RecordTooLarge:
        """The error that makes a producer divide the batch and send it again."""
        where = self._append.rules.topic_partition
        return RecordTooLarge(f"The record batch in the append to {where} unfolds into more than {self._limit} bytes")

    def _walk(self, batch: Batch) -> Iterator[Step]:
        least: i64 = 0x7FFFFFFFFFFFFFFF
        greatest: i64 = -0x7FFFFFFFFFFFFFFF
        without_key: i64 = 0
        misplaced: i64 = 0
        at: i64 = self._at
        index: i64 = 0
        count: i64 = batch.count
        while True:
            yield None
            stop, stop_index = slice_end(self._body, at, self._body_end, index, count, SLICE_BYTES)
            try:
                walked = walk_records(self._body, at, stop, stop_index, index)
            except WalkFault as fault:
                raise fault_in(self._body, self._body_end, batch, fault) from fault
            least = min(least, walked[0])
            greatest = max(greatest, walked[1])
            without_key += walked[2]
            misplaced += walked[3]
            self.looked_at = stop - at
            at, index = stop, stop_index
            if index >= count:
                break
        self._walked = (least, greatest, without_key, misplaced)

    def _compress(self) -> None:
        self._built = compress(self._target_codec, self._body[self._at : self._body_end], MAGIC_V2, self._append.level)

    # -- formats v0 and v1, which are always rewritten

    def _steps_of_entries(self) -> Iterator[Step]:
        append = self._append
        entries: list[Batch] = []
        yield from self._read_entries(entries)
        if not entries:
            raise InvalidRecord("Record batch has no batches at all")
        first = entries[0]
        source_codec: i64 = NONE
        for entry in entries:
            if entry.attributes & CODEC_MASK != NONE:
                source_codec = entry.attributes & CODEC_MASK
        if len(entries) > 1 and source_codec != NONE:
            raise InvalidRecord("Compressed outer record has more than one batch")
        for entry in entries:
            check_batch(append, first, entry)
        self._choose_codecs(first, source_codec)
        if source_codec != NONE:
            yield from self._open_wrapper(first)
        temporary: i64 = 0
        compressed: bool = source_codec != NONE or self._target_codec != NONE
        tally = Tally(first.magic)
        yield from self._check_entries(entries, tally)
        if compressed:
            temporary = header_size(append.rules.target_magic, source_codec) * len(entries) + tally.size
        yield from self._rebuild(first, self._records_of(entries), temporary)

    def _read_entries(self, entries: list[Batch]) -> Iterator[Step]:
        append = self._append
        at: i64 = self._start
        while True:
            stop: i64 = at
            read: i64 = 0
            while read < SLICE_RECORDS:
                size: i64 = entry_size(append.data, stop, self._end)
                if size == 0:
                    break
                stop += size
                read += 1
            if read == 0:
                return
            for entry in read_batches(append.data, at, stop):
                check_as_received(append, entry)
                entries.append(entry)
            self.looked_at = stop - at
            at = stop
            yield None

    def _open_wrapper(self, wrapper: Batch) -> Iterator[Step]:
        self._compressed = legacy.wrapped_value(self._append.data, wrapper)
        self._magic = wrapper.magic
        yield self._open_start
        if len(self._body) >= FIRST_LOOK:
            yield None
            size: i64 = entry_size(self._body, 0, len(self._body))
            if size > 0:
                legacy.check_inner(self._body, 0, size, wrapper.magic)
            yield self._open_all
        yield None

    def _records_of(self, entries: list[Batch]) -> Iterator[Record]:
        for entry in entries:
            if entry.attributes & CODEC_MASK == NONE:
                yield from legacy.each_record(self._append.data, entry)
            else:
                yield from legacy.inner_records(self._body, entry)

    def _check_entries(self, entries: list[Batch], tally: Tally) -> Iterator[Step]:
        read: i64 = 0
        for entry in entries:
            check = RecordCheck(self._append, entry)
            for record in tally.counted(self._records_of([entry])):
                if check.is_full:
                    break
                check.look_at(record)
                read += 1
                if read % SLICE_RECORDS == 0:
                    yield None
            check.conclude()

    # -- all formats

    def _check(self, batch: Batch, records: Iterator[Record]) -> Iterator[Step]:
        check = RecordCheck(self._append, batch)
        weight: i64 = 0
        for record in records:
            if check.is_full:
                break
            check.look_at(record)
            weight += 1 + record.header_count // _HEADERS_OF_A_RECORD
            if weight >= SLICE_RECORDS:
                weight = 0
                yield None
        check.conclude()

    def _rebuild(self, first: Batch, records: Iterator[Record], temporary: i64) -> Iterator[Step]:
        append = self._append
        builder = self._builder = builder_of(append, first, self._target_codec)
        weight: i64 = 0
        for offset, record in enumerate(records):
            self._write(record, offset)
            weight += 1 + record.header_count // _HEADERS_OF_A_RECORD
            if weight >= SLICE_RECORDS:
                weight = 0
                yield None
        yield self._build
        self.validated = rebuilt_by(append, builder, self._built, temporary)

    def _write(self, record: Record, offset: i64) -> None:
        assert self._builder is not None
        try:
            append_anew(self._builder, record, offset)
        except ValueError as fault:
            raise InvalidRecord(f"{fault} in topic partition {self._append.rules.topic_partition}") from fault

    def _build(self) -> None:
        assert self._builder is not None
        try:
            self._built = self._builder.build()
        except ValueError as fault:
            raise InvalidRecord(f"{fault} in topic partition {self._append.rules.topic_partition}") from fault


def validate_whole(
    data: bytes, start: i64, end: i64, base_offset: i64, now_ms: i64, leader_epoch: i64, origin: i64, rules: ValidationRules
) -> Validated:
    """As `validate`, for callers without an event loop: long validations run to the end in this call."""
    try:
        return validate(data, start, end, base_offset, now_ms, leader_epoch, origin, rules)
    except TakesTurns:
        return placed(LongValidation(data, start, end, now_ms, leader_epoch, origin, rules).finish(), base_offset, leader_epoch)


def placed(validated: Validated, base_offset: i64, leader_epoch: i64) -> Validated:
    """The result of a long validation, with offsets from `base_offset` on and the leader epoch set. Changes `validated`."""
    (batch,) = validated.batches
    first = validated.buffers[0]
    out = BytesWriter()
    write_i64_be(out, base_offset)
    write_i32_be(out, i32(batch.size - LOG_OVERHEAD))
    write_i32_be(out, i32(leader_epoch))
    validated.buffers = [out.getvalue(), memoryview(first)[_EPOCH_END:], *validated.buffers[1:]]
    batch.base_offset = base_offset
    batch.last_offset += base_offset
    batch.leader_epoch = leader_epoch
    validated.last_offset += base_offset
    if validated.offset_of_max_timestamp >= 0:
        validated.offset_of_max_timestamp += base_offset
    return validated
