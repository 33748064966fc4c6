# Compiled by mypyc: src/compiled.toml lists this module.
"""One pass over the v2 records of a batch, without creating objects.

The validator does this for every batch of a producer, so it is the innermost loop of an append. The walk only detects that a record is
damaged; the validator then gets the error in Kafka's words from the reader.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le
from mypy_extensions import i64

from barnabas.errors import CorruptRecord, InvalidRecord, TooManyHeaders
from barnabas.records.codecs.varint import read_varint, read_varlong
from barnabas.records.reader import skip_headers

# Attributes, two deltas, two sizes and the header count, one byte each.
_BODY_SIZE_MIN: Final = 6
_SIZE_SIZE_MAX: Final = 5

# The most headers that a record of a producer may have. Kafka has no bound; a consumer in Java would need gigabytes for a batch of more.
HEADERS_MAX: Final = 100_000


class WalkFault(CorruptRecord):
    """Record number `index` of a batch, which begins at `at`, is damaged, or does not end where it must."""

    def __init__(self, index: int, at: int) -> None:
        super().__init__("a record is damaged")
        self.index = index
        self.at = at


def slice_end(body: bytes, start: i64, end: i64, index: i64, count: i64, size: i64) -> tuple[i64, i64]:
    """Where a walk from record `index` at `start` on may pause after about `size` bytes: the position of a record, and its index.

    Reads only the sizes of records. At an invalid size there is no pause, so that the walk reaches and reports it.
    """
    at: i64 = start
    while index < count and at - start < size:
        if at + _SIZE_SIZE_MAX > end:
            return end, count
        record_size, at = read_varint(body, at)
        if record_size < _BODY_SIZE_MIN or record_size > end - at:
            return end, count
        at += record_size
        index += 1
    return (end, count) if index == count else (at, index)


def walk_start(body: bytes, end: i64, count: i64, size_max: i64) -> None:
    """Checks the complete records in `body[:end]`, which is the beginning, or all, of `count` records of at most `size_max` bytes each.

    Raises as `walk_records` does, also if bytes follow the last of `count` records.
    """
    at: i64 = 0
    whole: i64 = 0
    while whole < count and at + _SIZE_SIZE_MAX <= end:
        size, body_at = read_varint(body, at)
        if size < _BODY_SIZE_MIN or size > size_max:
            raise WalkFault(whole, at)
        if body_at + size > end:
            break
        at = body_at + size
        whole += 1
    walk_records(body, 0, at, whole)
    if whole == count and at < end:
        raise WalkFault(whole, at)


def walk_records(body: bytes, start: i64, end: i64, count: i64, first: i64 = 0) -> tuple[i64, i64, i64, i64]:
    """Checks that `body[start:end]` is exactly the records of a batch from number `first` up to, but without, number `count`.

    Returns the least and the greatest timestamp delta, how many records have no key, and how many have an offset delta that differs from
    their number. Raises WalkFault for any fault of structure, and TooManyHeaders.
    """
    try:
        return _walk(body, start, end, count, first)
    except TooManyHeaders:
        raise
    except (CorruptRecord, InvalidRecord, IndexError) as fault:
        raise _fault(body, start, end, count, first) from fault


def _fault(body: bytes, start: i64, end: i64, count: i64, first: i64) -> WalkFault:
    """Searches the fault in a second walk: tracking the position in the first would take a fifth of the time of every walk."""
    at: i64 = start
    index: i64 = first
    while index < count:
        try:
            size, body_at = read_varint(body, at)
            if size < _BODY_SIZE_MIN or size > end - body_at:
                break
            _walk(body, at, body_at + size, index + 1, index)
        except (CorruptRecord, InvalidRecord, IndexError):
            break
        at = body_at + size
        index += 1
    return WalkFault(index, at)


def _walk(body: bytes, start: i64, end: i64, count: i64, first: i64) -> tuple[i64, i64, i64, i64]:
    at: i64 = start
    index: i64 = first
    least_delta: i64 = 0x7FFFFFFFFFFFFFFF
    greatest_delta: i64 = -0x7FFFFFFFFFFFFFFF
    without_key: i64 = 0
    misplaced: i64 = 0
    word: i64 = 0
    size: i64 = 0
    delta: i64 = 0
    while index < count:
        # Varints of one and two bytes are decoded inline, from one read of two bytes (at least the header count follows each of them);
        # calls to `read_varint` would take half of the time of the whole walk.
        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            size = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            size = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            size, at = read_varint(body, at)
        record_end: i64 = at + size
        if size < _BODY_SIZE_MIN or record_end > end:
            raise CorruptRecord("a record does not fit in its batch")

        delta = body[at + 1]
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
            at += 2
        else:
            delta, at = read_varlong(body, at + 1)
        if delta < least_delta:
            least_delta = delta
        if delta > greatest_delta:
            greatest_delta = delta

        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            delta = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            delta = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            delta, at = read_varint(body, at)
        if delta != index:
            misplaced += 1

        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            size = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            size = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            size, at = read_varint(body, at)
        if size < 0:
            without_key += 1
        else:
            at += size
        if at >= record_end:
            raise CorruptRecord("a key runs past the end of its record")

        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            size = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            size = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            size, at = read_varint(body, at)
        if size > 0:
            at += size
        if at >= record_end:
            raise CorruptRecord("a value runs past the end of its record")

        size = body[at]
        at += 1
        if size != 0:
            size, at = read_varint(body, at - 1)
            if size < 0 or size > record_end - at:
                raise CorruptRecord("more headers than bytes")
            if size > HEADERS_MAX:
                raise TooManyHeaders(f"Record {index} of the batch has {size} headers, and no more than {HEADERS_MAX} are accepted")
            at = skip_headers(body, at, size, record_end)
        if at != record_end:
            raise CorruptRecord("a record has another size than it says")
        index += 1
    if at != end:
        raise CorruptRecord("records remain behind the last one")
    return least_delta, greatest_delta, without_key, misplaced
