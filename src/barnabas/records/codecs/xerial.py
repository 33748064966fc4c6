# Compiled by mypyc: src/compiled.toml lists this module.
"""Snappy in the framing of xerial's snappy-java, which Kafka's clients write.

A stream is a 16-byte header and blocks of up to 32 KB, each with its compressed size before it. Clients in other languages send one plain
snappy block without the framing, which is read but never written. The size that a block claims is checked before anything is allocated.
"""

from __future__ import annotations

from typing import Final

from cramjam import DecompressionError, snappy
from librt.strings import read_i32_be
from mypy_extensions import i64

from barnabas.errors import CorruptRecord, DecompressedTooLarge

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version, and the oldest version that can read it
_HEADER_SIZE: Final = 16
_BLOCK_SIZE: Final = 32 * 1024

# The densest element of the format is a 3-byte copy of 64 bytes: a block that claims more than 22 times its size is corrupt.
_EXPANSION_MAX: Final = 22


def compress(data: bytes) -> bytes:
    parts: list[bytes] = [_HEADER]
    for start in range(0, len(data), _BLOCK_SIZE):
        block = bytes(snappy.compress_raw(data[start : start + _BLOCK_SIZE]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def decompress(data: bytes, limit: int, enough: int) -> bytes:
    """The content of the blocks, or its beginning of at least `enough` bytes. A block is always decompressed whole."""
    if not data.startswith(_MAGIC) or len(data) < _HEADER_SIZE:
        return _decompress_block(data, limit)
    parts: list[bytes] = []
    size: i64 = 0
    at: i64 = 0
    end: i64 = len(data)
    while at < end:
        if data[at] == _MAGIC[0]:  # streams may follow one another; as a block size these bytes would be too large
            _check_header(data, at)
            at += _HEADER_SIZE
            continue
        if at + 4 > end:
            raise CorruptRecord("Failed to decompress snappy: unexpected end of input")
        block_size: i64 = i64(read_i32_be(data, at))
        at += 4
        if block_size < 0 or at + block_size > end:
            raise CorruptRecord(f"Failed to decompress snappy: a block of {block_size} bytes where {end - at} are left")
        block = _decompress_block(data[at : at + block_size], limit - size)
        parts.append(block)
        size += len(block)
        at += block_size
        if size >= enough:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_header(data: bytes, at: i64) -> None:
    if data[at : at + 8] != _MAGIC or at + _HEADER_SIZE > len(data):
        raise CorruptRecord("Failed to decompress snappy: damaged stream header")
    version: i64 = i64(read_i32_be(data, at + 8))
    if version < 1:
        raise CorruptRecord(f"Failed to decompress snappy: stream version {version} is not compatible")


def _decompress_block(block: bytes, limit: i64) -> bytes:
    claimed = _claimed_size(block)
    if claimed > limit:
        raise DecompressedTooLarge(f"Failed to decompress snappy: more than {limit} bytes")
    if claimed > _EXPANSION_MAX * len(block):
        raise CorruptRecord(f"Failed to decompress snappy: {len(block)} bytes claim to hold {claimed}")
    try:
        return bytes(snappy.decompress_raw(block))
    except (DecompressionError, OSError) as error:
        raise CorruptRecord(f"Failed to decompress snappy: {error}") from error


def _claimed_size(block: bytes) -> i64:
    """The decompressed size at the start of a block: a little-endian base-128 number of at most five bytes."""
    size: i64 = 0
    shift: i64 = 0
    for at in range(min(5, len(block))):
        size |= (i64(block[at]) & 0x7F) << shift
        if block[at] < 0x80:
            return size
        shift += 7
    raise CorruptRecord("Failed to decompress snappy: unexpected end of input")
