# Compiled by mypyc: src/compiled.toml lists this module.
"""Base-128 varints with zigzag, the integers inside a v2 record.

Every length, delta and count of a record is one of these. Reading never goes past the given bytes and rejects an encoding longer than the
widest integer of its kind. The caller checks whether a length is plausible.
"""

from __future__ import annotations

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

from barnabas.errors import CorruptRecord


def read_varint(data: bytes, at: i64) -> tuple[i64, i64]:
    """A zigzag int32 at `at`, and the position after it. Bits beyond the 32nd are dropped, as Kafka does."""
    size: i64 = len(data)
    raw: i64 = 0
    shift: i64 = 0
    position: i64 = at
    while position < size:
        byte: i64 = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
        if shift > 28:
            raise CorruptRecord(f"Varint is too long, the most significant bit in the 5th byte is set, at byte {at}")
    raise CorruptRecord(f"Varint at byte {at} runs past the end of the data ({size} bytes)")


def read_varlong(data: bytes, at: i64) -> tuple[i64, i64]:
    """A zigzag int64 at `at`, and the position after it."""
    size: i64 = len(data)
    raw: i64 = 0
    shift: i64 = 0
    position: i64 = at
    while position < size:
        byte: i64 = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            # The mask makes the shift logical, and drops the bits of a tenth byte that int64 has no room for.
            return ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1), position
        shift += 7
        if shift > 63:
            raise CorruptRecord(f"Varlong is too long, most significant bit in the 10th byte is set, at byte {at}")
    raise CorruptRecord(f"Varlong at byte {at} runs past the end of the data ({size} bytes)")


def write_varint(out: BytesWriter, value: i64) -> None:
    """Appends `value`, an int32, as a zigzag varint of one to five bytes."""
    raw: i64 = (value << 1) ^ (value >> 31)
    while raw >= 0x80:
        out.append(u8((raw & 0x7F) | 0x80))  # u8: an i64 would be boxed
        raw >>= 7
    out.append(u8(raw))


def write_varlong(out: BytesWriter, value: i64) -> None:
    """Appends `value`, an int64, as a zigzag varint of one to ten bytes."""
    raw: i64 = (value << 1) ^ (value >> 63)
    while raw & -0x80:
        out.append(u8((raw & 0x7F) | 0x80))  # u8: an i64 would be boxed
        raw = (raw >> 7) & 0x01FFFFFFFFFFFFFF
    out.append(u8(raw))


def size_of_varint(value: i64) -> i64:
    raw: i64 = (value << 1) ^ (value >> 31)
    if raw < 0x80:
        return 1
    if raw < 0x4000:
        return 2
    if raw < 0x200000:
        return 3
    if raw < 0x10000000:
        return 4
    return 5


def size_of_varlong(value: i64) -> i64:
    raw: i64 = (value << 1) ^ (value >> 63)
    size: i64 = 1
    while raw & -0x80:
        size += 1
        raw = (raw >> 7) & 0x01FFFFFFFFFFFFFF
    return size
