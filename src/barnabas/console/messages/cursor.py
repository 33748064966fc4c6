"""Where a look at a topic stands: the next offset of each partition, as a short text for the address of a page.

"Look further" is a link with a cursor, so it can be kept and shared, and the console has nothing to remember. A partition that was looked
through is not in the cursor.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CHARACTERS_MAX: Final = 9_000  # of the address; a page cuts longer arguments
_BYTES_MAX: Final = 16_384  # before they are compressed: some 2,000 partitions
_NUMBER_BITS_MAX: Final = 63


@dataclass(frozen=True)
class Cursor:
    """`positions`: backwards, the offset above the next message to look at; forwards, its offset. `looked`: offsets looked at so far."""

    positions: Mapping[int, int]
    looked: int = 0

    def __str__(self) -> str:
        return _compressed(self._data())

    def address_text(self) -> str | None:
        """The text for an address; None if there are too many partitions for one."""
        data = self._data()
        text = _compressed(data) if len(data) <= _BYTES_MAX else ""
        return text if 0 < len(text) <= CHARACTERS_MAX else None

    def _data(self) -> bytes:
        numbers, before = [self.looked], 0
        for partition, offset in sorted(self.positions.items()):
            numbers += [partition - before, offset]
            before = partition
        return b"".join(map(_varint, numbers))


def parse_cursor(text: str) -> Cursor:
    """The cursor of a link. Raises ValueError."""
    try:
        if len(text) > CHARACTERS_MAX:
            raise ValueError
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), _BYTES_MAX)
        if not unpacking.eof:
            raise ValueError
        numbers = _numbers(data)
        if len(numbers) % 2 == 0:
            raise ValueError
        positions, partition = {}, 0
        for step, offset in zip(numbers[1::2], numbers[2::2], strict=True):
            partition += step
            positions[partition] = offset
        return Cursor(positions, numbers[0])
    except (ValueError, binascii.Error, zlib.error):
        raise ValueError("The link to look further is damaged: begin again") from None


def _compressed(data: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(data, 9)).rstrip(b"=").decode()


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _numbers(data: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
            continue
        shift += 7
        if shift > _NUMBER_BITS_MAX:
            raise ValueError
    if shift:
        raise ValueError
    return numbers
