# Compiled by mypyc: src/compiled.toml lists this module.
"""Reads the types of Kafka's protocol from the bytes of one frame.

It reads every request, hostile ones included. A length is compared with the remaining bytes before anything is allocated for it. Whatever
the bytes are, reading returns a value or raises MalformedMessage and no other error, and never allocates more than the size of the frame
justifies.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_f64_be, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.protocol.errors import MalformedMessage, TooManyElements
from barnabas.protocol.slices import Records
from barnabas.protocol.writer import STRING_SIZE_MAX
from barnabas.uuid import UUID_SIZE, Uuid

# A frame of the largest size could hold fifty million structures of two bytes, which would be gigabytes as objects. No real message has so
# many: the cluster state of 200,000 partitions with three replicas each has 1.5 million.
ELEMENTS_MAX: Final = 2_000_000
TAGGED_FIELD_SIZE_MIN: Final = 2  # a tag and a size
_ZERO_UUID: Final = bytes(UUID_SIZE)


@final
class Reader:
    """A position in `data`, which may not pass `end`. A `flexible` argument says whether lengths are compact, as in flexible versions.

    `elements_left` is how many elements the arrays of the message may still have, tagged fields included. For more, TooManyElements is
    raised before an element of that array is read."""

    __slots__ = ("data", "at", "end", "elements_left")  # noqa: RUF023 - in the order of the constructor

    def __init__(self, data: bytes, at: int = 0, end: int = -1) -> None:
        self.data: bytes = data
        self.at: i64 = at
        self.end: i64 = len(data) if end < 0 else end
        self.elements_left: i64 = ELEMENTS_MAX

    def finish(self) -> None:
        """Raises MalformedMessage if bytes are left after the message."""
        if self.at != self.end:
            raise MalformedMessage(f"{self.end - self.at} bytes are left over after the message that ends at byte {self.at}")

    def boolean(self) -> bool:
        return self.int8() != 0

    def int8(self) -> int:
        at = self._take(1)
        value: i64 = self.data[at]
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        return read_i16_be(self.data, self._take(2))

    def uint16(self) -> int:
        signed = int(read_i16_be(self.data, self._take(2)))
        return signed & 0xFFFF

    def int32(self) -> int:
        return read_i32_be(self.data, self._take(4))

    def int64(self) -> int:
        return read_i64_be(self.data, self._take(8))

    def float64(self) -> float:
        return read_f64_be(self.data, self._take(8))

    def uuid(self) -> Uuid:
        at = self._take(UUID_SIZE)
        value = self.data[at : at + UUID_SIZE]
        return Uuid.ZERO if value == _ZERO_UUID else Uuid(value)

    def uvarint(self) -> i64:
        """An unsigned varint of at most 32 bits; further bits are dropped, as in Kafka."""
        at = self.at
        if at < self.end:
            first: i64 = self.data[at]
            if first < 0x80:
                self.at = at + 1
                return first
        return self._long_uvarint()

    def string(self, flexible: bool) -> str:
        return self._text(self._required(self._string_size(flexible), "string"))

    def nullable_string(self, flexible: bool) -> str | None:
        size = self._string_size(flexible)
        return None if size < 0 else self._text(size)

    def byte_string(self, flexible: bool) -> bytes:
        at = self._take(self._required(self._size(flexible), "bytes"))
        return self.data[at : self.at]

    def nullable_byte_string(self, flexible: bool) -> bytes | None:
        size = self._size(flexible)
        if size < 0:
            return None
        at = self._take(size)
        return self.data[at : self.at]

    def records(self, flexible: bool) -> Records:
        at = self._take(self._required(self._size(flexible), "records"))
        return Records(self.data, at, self.at)

    def nullable_records(self, flexible: bool) -> Records | None:
        size = self._size(flexible)
        if size < 0:
            return None
        at = self._take(size)
        return Records(self.data, at, self.at)

    def array(self, flexible: bool, element_size_min: i64) -> i64:
        """The count of an array whose elements take at least `element_size_min` bytes each."""
        return self._required(self.nullable_array(flexible, element_size_min), "array")

    def nullable_array(self, flexible: bool, element_size_min: i64) -> i64:
        """As `array`, or -1 if the array is null."""
        count = self._size(flexible)
        left = self.end - self.at
        if count * element_size_min > left:
            raise MalformedMessage(f"An array of {count} elements at byte {self.at} does not fit in the {left} bytes left")
        if count > 0:
            self.elements_left -= count
            if self.elements_left < 0:
                raise TooManyElements(f"An array of {count} elements before byte {self.at} is more than one message may have")
        return count

    def is_present(self) -> bool:
        """The byte before a structure that may be null."""
        return self.int8() >= 0

    def tagged_fields(self) -> i64:
        """The number of tagged fields that follow."""
        count = self.uvarint()
        if count > 0:
            if count * TAGGED_FIELD_SIZE_MIN > self.end - self.at:
                raise MalformedMessage(f"{count} tagged fields before byte {self.at} do not fit in the {self.end - self.at} bytes left")
            self.elements_left -= count
            if self.elements_left < 0:
                raise TooManyElements(f"{count} tagged fields before byte {self.at} are more than one message may have")
        return count

    def tagged_field_end(self) -> i64:
        """Called after a tag: the position where its field ends."""
        size = self.uvarint()
        if size > self.end - self.at:
            raise self._too_short(size)
        return self.at + size

    def leave_tagged_field(self, end: i64) -> None:
        """Called after a known tagged field was read; raises MalformedMessage unless it has the size that it declares."""
        if self.at != end:
            raise MalformedMessage(f"A tagged field was to end at byte {end} and ended at byte {self.at}")

    def skip_tagged_field(self, end: i64) -> None:
        """Skips a tagged field of a newer sender."""
        self.at = end

    def skip_tagged_fields(self) -> None:
        """Skips all tagged fields of a structure that defines none."""
        for _ in range(self.tagged_fields()):
            self.uvarint()
            self.at = self.tagged_field_end()

    def _take(self, size: i64) -> i64:
        """Skips `size` bytes and returns the position where they begin."""
        at = self.at
        if size > self.end - at:
            raise self._too_short(size)
        self.at = at + size
        return at

    def _text(self, size: i64) -> str:
        if size > STRING_SIZE_MAX:
            raise MalformedMessage(f"The string at byte {self.at} has invalid length {size}")
        at = self._take(size)
        raw = self.data[at : self.at]
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace")  # as Java does: an invalid client id is no reason to reject a client

    def _string_size(self, flexible: bool) -> i64:
        return self.uvarint() - 1 if flexible else self.int16()

    def _size(self, flexible: bool) -> i64:
        return self.uvarint() - 1 if flexible else self.int32()

    def _required(self, size: i64, what: str) -> i64:
        if size < 0:
            raise MalformedMessage(f"The {what} before byte {self.at} has length {size}, and it may not be null")
        return size

    def _long_uvarint(self) -> i64:
        value: i64 = 0
        shift: i64 = 0
        while shift <= 28:
            byte: i64 = self.data[self._take(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
            shift += 7
        raise MalformedMessage(f"Varint is too long, the most significant bit in the 5th byte is set, before byte {self.at}")

    def _too_short(self, size: i64) -> MalformedMessage:
        return MalformedMessage(f"{size} bytes were to follow at byte {self.at}, and {self.end - self.at} are left")
