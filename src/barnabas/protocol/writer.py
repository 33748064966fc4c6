# Compiled by mypyc: src/compiled.toml lists this module.
"""Writes the types of Kafka's protocol, and collects the buffers of one frame.

This is the last step before a response is sent. Fields are written into one growing buffer. Large records are not copied: a `Writer` stores
their position in the frame and returns them as they are, so that a fetch of a megabyte costs as little here as an empty one.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i64, u8

from barnabas.protocol.errors import UnwritableMessage
from barnabas.protocol.slices import Records, Streamed

STRING_SIZE_MAX: Final = 0x7FFF
PASS_THROUGH_SIZE_MIN: Final = 2048  # smaller records are cheaper to copy than to send as a separate buffer


@final
class Writer:
    """The frame so far: `out` holds everything except large records."""

    __slots__ = ("out", "_slices", "_slices_size")  # noqa: RUF023 - in the order of the constructor

    def __init__(self) -> None:
        self.out = BytesWriter()
        self._slices: list[tuple[int, Records]] = []
        self._slices_size: i64 = 0

    @property
    def size(self) -> i64:
        return len(self.out) + self._slices_size

    def records(self, records: Records | None, flexible: bool) -> None:
        """Appends records, or null. Large records are not copied."""
        if records is None:
            write_null(self.out, flexible)
            return
        size: i64 = records.size
        write_size(self.out, size, flexible)
        if size < PASS_THROUGH_SIZE_MIN and records.source is None:
            self.out.write(records.to_bytes())
        else:
            self._slices.append((len(self.out), records))
            self._slices_size += size

    def buffers(self) -> list[bytes | memoryview | Streamed]:
        """The frame as buffers for one `writelines`, unless some of its records must be read first (`Streamed`)."""
        gathered = self.out.getvalue()
        if not self._slices:
            return [gathered]
        buffers: list[bytes | memoryview | Streamed] = []
        done = 0
        for at, records in self._slices:
            buffers.append(gathered[done:at])
            if records.source is not None:
                buffers.append(Streamed(records.size, records.source))
            elif records.size == len(records.data):
                buffers.append(records.data)
            else:
                buffers.append(memoryview(records.data)[records.start : records.end])
            done = at
        if done < len(gathered):
            buffers.append(gathered[done:])
        return buffers

    def begin_frame(self) -> None:
        """Reserves the four bytes of the frame size."""
        write_i32_be(self.out, 0)

    def end_frame(self) -> None:
        """Writes the frame size into the bytes that `begin_frame` reserved."""
        size: i64 = self.size - 4
        if size > 0x7FFFFFFF:
            raise ValueError(f"A frame of {size} bytes is larger than the protocol can say")
        self.out[0] = u8((size >> 24) & 0xFF)
        self.out[1] = u8((size >> 16) & 0xFF)
        self.out[2] = u8((size >> 8) & 0xFF)
        self.out[3] = u8(size & 0xFF)


def write_int8(out: BytesWriter, value: int) -> None:
    if not -128 <= value <= 127:
        raise ValueError(f"{value} is no int8")
    out.append(u8(value & 0xFF))


def write_uint16(out: BytesWriter, value: int) -> None:
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{value} is no uint16")
    out.append(u8(value >> 8))
    out.append(u8(value & 0xFF))


def write_boolean(out: BytesWriter, value: bool) -> None:
    out.append(u8(1 if value else 0))


def write_uvarint(out: BytesWriter, value: i64) -> None:
    while value >= 0x80:
        out.append(u8((value & 0x7F) | 0x80))  # u8: an i64 would be boxed
        value >>= 7
    out.append(u8(value))


def write_size(out: BytesWriter, size: i64, flexible: bool) -> None:
    """Writes the size of bytes, or the count of an array."""
    if flexible:
        write_uvarint(out, size + 1)
    else:
        write_i32_be(out, int(size))


def write_null(out: BytesWriter, flexible: bool) -> None:
    """Writes null bytes or a null array."""
    if flexible:
        out.append(u8(0))
    else:
        write_i32_be(out, -1)


def write_string(out: BytesWriter, value: str, flexible: bool) -> None:
    raw = value.encode("utf-8")
    size: i64 = len(raw)
    if size > STRING_SIZE_MAX:
        raise UnwritableMessage(f"A string of {size} bytes is too long to be serialized")
    if flexible:
        write_uvarint(out, size + 1)
    else:
        write_i16_be(out, int(size))
    out.write(raw)


def write_nullable_string(out: BytesWriter, value: str | None, flexible: bool) -> None:
    if value is not None:
        write_string(out, value, flexible)
    elif flexible:
        out.append(u8(0))
    else:
        write_i16_be(out, -1)


def write_bytes(out: BytesWriter, value: bytes, flexible: bool) -> None:
    write_size(out, len(value), flexible)
    out.write(value)


def write_nullable_bytes(out: BytesWriter, value: bytes | None, flexible: bool) -> None:
    if value is None:
        write_null(out, flexible)
    else:
        write_bytes(out, value, flexible)


def write_tagged_field(out: BytesWriter, tag: i64, field: Writer) -> None:
    """Writes a tag, the size of its field, and the field."""
    write_uvarint(out, tag)
    write_uvarint(out, len(field.out))
    out.write(field.out.getvalue())
