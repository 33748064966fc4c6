# Compiled by mypyc: src/compiled.toml lists this module.
"""The part of the LZ4 frame format that Kafka uses: independent blocks, no content size, no dictionary.

Frames are written with 64 KB blocks, byte for byte as Kafka's Lz4BlockOutputStream does. Blocks up to 4 MB and block checksums can be read.
Before format v1 Kafka's clients computed the header checksum over the wrong bytes; for v0 that checksum is still written.
"""

from __future__ import annotations

from typing import Final

from cramjam import DecompressionError, lz4
from librt.strings import read_i32_le
from mypy_extensions import i64

from barnabas.errors import CorruptRecord, DecompressedTooLarge

LEVEL_MIN: Final = 1
LEVEL_MAX: Final = 17
LEVEL_DEFAULT: Final = 9  # Kafka's default level means the fast compressor, every other level the high one

_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_HEADER_V0: Final = b"\x04\x22\x4d\x18\x60\x40\x1a"
_HEADER_SIZE: Final = 7
_END_MARK: Final = b"\x00\x00\x00\x00"
_MAGIC: Final = b"\x04\x22\x4d\x18"

_BLOCK_SIZE: Final = 64 * 1024
_UNCOMPRESSED: Final = 0x80000000

_RESERVED_FLAGS: Final = 0x03
_CONTENT_CHECKSUM: Final = 0x04
_CONTENT_SIZE: Final = 0x08
_BLOCK_CHECKSUM: Final = 0x10

# A byte of a match length means at most 255 bytes, so no block decompresses into more than 255 times its size.
_EXPANSION_MAX: Final = 255
_FIRST_TRY_EXPANSION: Final = 8

_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393


def compress(data: bytes, magic: int, level: int) -> bytes:
    parts: list[bytes] = [_HEADER_V0 if magic == 0 else _HEADER]
    if level != LEVEL_DEFAULT:
        _append_high_compression_blocks(parts, data, level)
    else:
        for start in range(0, len(data), _BLOCK_SIZE):
            _append_fast_block(parts, data[start : start + _BLOCK_SIZE])
    parts.append(_END_MARK)
    return b"".join(parts)


def decompress(data: bytes, magic: int, limit: int, enough: int) -> bytes:
    """The content of the frame, or its beginning of at least `enough` bytes. Bytes after the end mark are ignored, as in Kafka."""
    end: i64 = len(data)
    if end < _HEADER_SIZE:
        raise CorruptRecord("Failed to decompress lz4: Stream ended prematurely")
    flags: i64 = data[4]
    block_max: i64 = _check_descriptor(data, magic)
    checksum_size: i64 = 4 if flags & _BLOCK_CHECKSUM else 0
    at: i64 = _HEADER_SIZE + (8 if flags & _CONTENT_SIZE else 0)
    parts: list[bytes] = []
    size: i64 = 0
    while True:
        if at + 4 > end:
            raise CorruptRecord("Failed to decompress lz4: Stream ended prematurely")
        word: i64 = i64(read_i32_le(data, at)) & 0xFFFFFFFF
        at += 4
        block_size: i64 = word & 0x7FFFFFFF
        if block_size == 0:
            break
        if block_size > block_max:
            raise CorruptRecord(f"Failed to decompress lz4: Block size {block_size} exceeded max: {block_max}")
        if at + block_size + checksum_size > end:
            raise CorruptRecord("Failed to decompress lz4: Stream ended prematurely")
        block = data[at : at + block_size]
        at += block_size
        if checksum_size:
            if i64(read_i32_le(data, at)) & 0xFFFFFFFF != xxh32(block):
                raise CorruptRecord("Failed to decompress lz4: Block checksum mismatch")
            at += checksum_size
        if word & _UNCOMPRESSED == 0:
            block = _decompress_block(block, min(block_max, limit - size))
        size += len(block)
        if size > limit:
            raise DecompressedTooLarge(f"Failed to decompress lz4: more than {limit} bytes")
        parts.append(block)
        if size >= enough:
            return b"".join(parts)
    if flags & _CONTENT_CHECKSUM and at + 4 > end:  # Kafka skips the checksum without comparing it
        raise CorruptRecord("Failed to decompress lz4: Stream ended prematurely")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def xxh32(data: bytes) -> i64:
    """xxHash, 32 bits, seed 0: the checksum of LZ4 frames."""
    size: i64 = len(data)
    at: i64 = 0
    value: i64
    if size >= 16:
        lane_1: i64 = (_PRIME_1 + _PRIME_2) & 0xFFFFFFFF
        lane_2: i64 = _PRIME_2
        lane_3: i64 = 0
        lane_4: i64 = 0x100000000 - _PRIME_1
        while at + 16 <= size:
            lane_1 = _round(lane_1, data, at)
            lane_2 = _round(lane_2, data, at + 4)
            lane_3 = _round(lane_3, data, at + 8)
            lane_4 = _round(lane_4, data, at + 12)
            at += 16
        value = _rotate(lane_1, 1) + _rotate(lane_2, 7) + _rotate(lane_3, 12) + _rotate(lane_4, 18)
    else:
        value = _PRIME_5
    value = (value + size) & 0xFFFFFFFF
    while at + 4 <= size:
        word: i64 = i64(read_i32_le(data, at)) & 0xFFFFFFFF
        value = _multiply(_rotate((value + _multiply(word, _PRIME_3)) & 0xFFFFFFFF, 17), _PRIME_4)
        at += 4
    while at < size:
        value = _multiply(_rotate((value + _multiply(i64(data[at]), _PRIME_5)) & 0xFFFFFFFF, 11), _PRIME_1)
        at += 1
    value = _multiply(value ^ (value >> 15), _PRIME_2)
    value = _multiply(value ^ (value >> 13), _PRIME_3)
    return value ^ (value >> 16)


def _append_fast_block(parts: list[bytes], chunk: bytes) -> None:
    block = bytes(lz4.compress_block(chunk, store_size=False))
    if len(block) >= len(chunk):
        parts.append((len(chunk) | _UNCOMPRESSED).to_bytes(4, "little"))
        parts.append(chunk)
    else:
        parts.append(len(block).to_bytes(4, "little"))
        parts.append(block)


def _append_high_compression_blocks(parts: list[bytes], data: bytes, level: int) -> None:
    """Appends the blocks of a frame that the library wrote, without the block checksums, which it always writes."""
    compressor = lz4.Compressor(level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    frame = bytes(compressor.finish())
    at: i64 = _HEADER_SIZE
    size: i64 = i64(read_i32_le(frame, at)) & 0x7FFFFFFF
    while size > 0:
        parts.append(frame[at : at + 4 + size])
        at += 4 + size + 4
        size = i64(read_i32_le(frame, at)) & 0x7FFFFFFF


def _check_descriptor(data: bytes, magic: int) -> i64:
    """Checks the frame header; returns the largest size of a block."""
    if not data.startswith(_MAGIC):
        raise CorruptRecord("Failed to decompress lz4: Stream unsupported (invalid magic bytes)")
    flags: i64 = data[4]
    if flags & _RESERVED_FLAGS:
        raise CorruptRecord("Failed to decompress lz4: Reserved bits must be 0")
    if flags >> 6 != 1:
        raise CorruptRecord(f"Failed to decompress lz4: Version {flags >> 6} is unsupported")
    if flags & 0x20 == 0:
        raise CorruptRecord("Failed to decompress lz4: Dependent block stream is unsupported")
    descriptor: i64 = data[5]
    if descriptor & 0x8F:
        raise CorruptRecord("Failed to decompress lz4: Reserved field must be 0")
    if descriptor < 0x40:
        raise CorruptRecord("Failed to decompress lz4: Block size value must be between 4 and 7")
    _check_header_checksum(data, magic, 14 if flags & _CONTENT_SIZE else 6)
    return 1 << (8 + 2 * (descriptor >> 4))


def _check_header_checksum(data: bytes, magic: int, end: i64) -> None:
    if end >= len(data):
        raise CorruptRecord("Failed to decompress lz4: Stream ended prematurely")
    if magic == 0 or data[:_HEADER_SIZE] == _HEADER:
        return  # v0 was written with several wrong checksums, so Kafka checks none
    stored: i64 = data[end]
    if stored == (xxh32(data[4:end]) >> 8) & 0xFF:
        return
    if magic == 1 and stored == (xxh32(data[:end]) >> 8) & 0xFF:
        return
    raise CorruptRecord("Failed to decompress lz4: Stream frame descriptor corrupted")


def _decompress_block(block: bytes, room: i64) -> bytes:
    """Decompresses into a buffer that starts small and grows: frames of Go clients declare 4 MB blocks and hold a few KB."""
    most: i64 = min(room, _EXPANSION_MAX * i64(len(block)))
    size: i64 = min(most, max(_BLOCK_SIZE, _FIRST_TRY_EXPANSION * i64(len(block))))
    while True:
        output = bytearray(size)
        try:
            written = lz4.decompress_block_into(block, output)
        except (DecompressionError, OSError) as error:
            if size >= most:
                raise CorruptRecord(f"Failed to decompress lz4: a block is damaged or holds more than {most} bytes") from error
            size = min(most, size * 8)
            continue
        return bytes(memoryview(output)[:written])


def _round(lane: i64, data: bytes, at: i64) -> i64:
    word: i64 = i64(read_i32_le(data, at)) & 0xFFFFFFFF
    return _multiply(_rotate((lane + _multiply(word, _PRIME_2)) & 0xFFFFFFFF, 13), _PRIME_1)


def _rotate(value: i64, by: i64) -> i64:
    return ((value << by) | (value >> (32 - by))) & 0xFFFFFFFF


def _multiply(a: i64, b: i64) -> i64:
    """The low 32 bits of a product, in steps that fit 63 bits."""
    return ((a & 0xFFFF) * b + ((((a >> 16) * b) & 0xFFFF) << 16)) & 0xFFFFFFFF
