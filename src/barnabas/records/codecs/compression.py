# Compiled by mypyc: src/compiled.toml lists this module.
"""The five codecs of Kafka's `compression.type`, from bytes to bytes.

All compression of batches goes through this module; each codec uses the framing of Kafka's Java clients. Input is never trusted: whatever
size a frame claims, at most `limit` bytes are decompressed, and bad input of any kind raises CorruptRecord.
"""

from __future__ import annotations

import zlib
from typing import Final

from cramjam import DecompressionError, zstd
from mypy_extensions import i64

from barnabas.errors import CorruptRecord, DecompressedTooLarge
from barnabas.records.codecs import lz4_frame, xerial

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

# The most bytes that one batch may decompress into. Kafka streams a batch and needs no bound; here it is in memory as a whole. Five times
# the largest default request (socket.request.max.bytes, 100 MiB) leaves room for batches that compress well and stops a bomb early.
DECOMPRESSED_SIZE_MAX: Final = 512 * 1024 * 1024
# The same for a batch of a producer: what it could have sent uncompressed in the largest request.
PRODUCED_SIZE_MAX: Final = 100 * 1024 * 1024
# The largest compression ratio of a batch of a producer that decompresses into more than PRODUCED_SIZE_OF_ANY_RATIO. Logs and JSON reach
# 20, zeros 1,000 and more.
PRODUCED_RATIO_MAX: Final = 100
PRODUCED_SIZE_OF_ANY_RATIO: Final = 32 * 1024 * 1024
# How many bytes are decompressed and checked before the whole batch is decompressed. Most batches are not larger.
FIRST_LOOK: Final = 1024 * 1024

_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

_GZIP_LEVEL_DEFAULT: Final = -1
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time, unknown system, as Java writes it since 16
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_WITH_HEADER: Final = 31
_DEFLATE_ONLY: Final = -15
# Java reads concatenated gzip members as one stream, and each may be empty; Kafka writes a single one.
_GZIP_MEMBERS_MAX: Final = 1024

_ZSTD_LEVEL_DEFAULT: Final = 3
_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE: Final = 0x184D2A50  # the low four bits are free
_ZSTD_BLOCK_MAX: Final = 128 * 1024
_ZSTD_NO_ROOM: Final = "whole buffer"


def codec_name(codec: int) -> str:
    if 0 <= codec < len(_NAMES):
        return _NAMES[codec]
    raise ValueError(f"Unknown compression type id: {codec}")


def codec_id(name: str) -> int:
    if name in _NAMES:
        return _NAMES.index(name)
    raise ValueError(f"Unknown compression name: {name}")


def check_level(codec: int, level: int) -> None:
    """Raises ValueError unless `level` is valid for compression.<codec>.level."""
    if codec == GZIP:
        if level > 9 or (level < 1 and level != _GZIP_LEVEL_DEFAULT):
            raise ValueError("Value must be between 1 and 9 or equal to -1")
    elif codec == LZ4:
        _check_between(level, lz4_frame.LEVEL_MIN, lz4_frame.LEVEL_MAX)
    elif codec == ZSTD:
        _check_between(level, -131072, 22)
    else:
        raise ValueError(f"Compression levels are not defined for this compression type: {codec_name(codec)}")


def compress(codec: int, data: bytes, magic: int = 2, level: int | None = None) -> bytes:
    """`data` compressed, in the framing of batches of format `magic`; `level` None means Kafka's default for the codec."""
    if codec == ZSTD:
        return _compress_zstd(data, _ZSTD_LEVEL_DEFAULT if level is None else level)
    if codec == LZ4:
        return lz4_frame.compress(data, magic, lz4_frame.LEVEL_DEFAULT if level is None else level)
    if codec == SNAPPY:
        return xerial.compress(data)
    if codec == GZIP:
        return _compress_gzip(data, _GZIP_LEVEL_DEFAULT if level is None else level)
    if codec == NONE:
        return data
    raise ValueError(f"Unknown compression type id: {codec}")


def decompress(codec: int, data: bytes, magic: int = 2, limit: int = DECOMPRESSED_SIZE_MAX) -> bytes:
    """The decompressed bytes. Raises CorruptRecord if `data` is damaged, incomplete, or decompresses into more than `limit` bytes."""
    if codec == ZSTD:
        return _decompress_zstd(data, limit)
    if codec == LZ4:
        return lz4_frame.decompress(data, magic, limit, limit + 1)
    if codec == SNAPPY:
        return xerial.decompress(data, limit, limit + 1)
    if codec == GZIP:
        return _decompress_gzip(data, limit, limit + 1)
    if codec == NONE:
        return data
    raise CorruptRecord(f"Unknown compression type id: {codec}")


def decompress_start(codec: int, data: bytes, magic: int = 2, enough: int = FIRST_LOOK) -> bytes:
    """The beginning of the decompressed bytes, at least `enough`; fewer only if these are all, checked as by `decompress`."""
    if codec == ZSTD:
        return _decompress_zstd_start(data, enough)
    if codec == LZ4:
        return lz4_frame.decompress(data, magic, DECOMPRESSED_SIZE_MAX, enough)
    if codec == SNAPPY:
        return xerial.decompress(data, DECOMPRESSED_SIZE_MAX, enough)
    if codec == GZIP:
        return _decompress_gzip(data, DECOMPRESSED_SIZE_MAX, enough)
    return decompress(codec, data, magic)


def produced_size_max(compressed_size: i64) -> i64:
    """The most bytes into which this many compressed bytes of a producer may decompress."""
    by_ratio: i64 = min(PRODUCED_SIZE_MAX, PRODUCED_RATIO_MAX * compressed_size)
    return max(PRODUCED_SIZE_OF_ANY_RATIO, by_ratio)


def _check_between(level: int, least: int, most: int) -> None:
    if level < least:
        raise ValueError(f"Value must be at least {least}")
    if level > most:
        raise ValueError(f"Value must be no more than {most}")


def _compress_gzip(data: bytes, level: int) -> bytes:
    deflater = zlib.compressobj(level, zlib.DEFLATED, _DEFLATE_ONLY)
    body = deflater.compress(data) + deflater.flush()
    trailer = zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join((_GZIP_HEADER, body, trailer))


def _decompress_gzip(data: bytes, limit: int, enough: int) -> bytes:
    member, rest = _inflate_member(data, limit, enough)
    if rest[:3] != _GZIP_MAGIC:  # Java ignores bytes after the last member
        return member
    members: list[bytes] = [member]
    size = len(member)
    while rest[:3] == _GZIP_MAGIC and size < enough:
        if len(members) == _GZIP_MEMBERS_MAX:
            raise CorruptRecord(f"Failed to decompress gzip: more than {_GZIP_MEMBERS_MAX} members")
        member, rest = _inflate_member(rest, limit - size, enough - size)
        members.append(member)
        size += len(member)
    return b"".join(members)


def _inflate_member(data: bytes, limit: int, enough: int) -> tuple[bytes, bytes]:
    """The content of the first gzip member of `data`, and the bytes after it; none after it if the content reaches `enough` bytes."""
    inflater = zlib.decompressobj(_GZIP_WITH_HEADER)
    try:
        content = inflater.decompress(data, min(limit + 1, enough))
    except zlib.error as error:
        raise CorruptRecord(f"Failed to decompress gzip: {error}") from error
    if len(content) > limit:
        raise DecompressedTooLarge(f"Failed to decompress gzip: more than {limit} bytes")
    if len(content) == enough:
        return content, b""
    if not inflater.eof:
        raise CorruptRecord("Failed to decompress gzip: unexpected end of input")
    return content, inflater.unused_data


def _compress_zstd(data: bytes, level: int) -> bytes:
    # Kafka also flushes before the end: that adds an empty last block after the data.
    compressor = zstd.Compressor(level)
    compressor.compress(data)
    blocks = bytes(compressor.flush())
    return blocks + bytes(compressor.finish())


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    if not data:
        return b""  # as in Java's stream, which may end between two frames
    bound = _zstd_bound(data, limit)
    if bound > limit:
        return _decompress_zstd_within(data, limit, FIRST_LOOK)
    if bound > FIRST_LOOK:  # the library would need twice the memory while its buffer grows
        return _decompress_zstd_within(data, bound, bound)
    try:
        return bytes(zstd.decompress(data))
    except (DecompressionError, OSError) as error:
        raise CorruptRecord(f"Failed to decompress zstd: {error}") from error


def _decompress_zstd_start(data: bytes, enough: int) -> bytes:
    """The library cannot stop early; but when the output buffer is full, it holds the beginning."""
    if not data:
        return b""
    if _zstd_bound(data, DECOMPRESSED_SIZE_MAX) < enough:
        return _decompress_zstd(data, DECOMPRESSED_SIZE_MAX)
    output = bytearray(enough)
    try:
        size = zstd.decompress_into(data, output)
    except (DecompressionError, OSError) as error:
        if _ZSTD_NO_ROOM not in str(error):
            return _decompress_zstd(data, DECOMPRESSED_SIZE_MAX)  # raises the error for the damage
        return bytes(output)
    return bytes(memoryview(output)[:size])


def _decompress_zstd_within(data: bytes, limit: int, room: int) -> bytes:
    """For frames with much content: decompresses into a buffer of `room` bytes, which grows up to `limit`."""
    room = min(room, limit)
    while True:
        output = bytearray(room)
        try:
            size = zstd.decompress_into(data, output)
        except (DecompressionError, OSError) as error:
            if room == limit:
                if _ZSTD_NO_ROOM in str(error):
                    raise DecompressedTooLarge(f"Failed to decompress zstd: more than {limit} bytes") from error
                raise CorruptRecord(f"Failed to decompress zstd: damaged or more than {limit} bytes") from error
            room = min(room * 8, limit)
            continue
        return bytes(memoryview(output)[:size])


def _zstd_bound(data: bytes, limit: int) -> i64:
    """The most bytes into which the frames in `data` can decompress, computed from block headers.

    Raises CorruptRecord if a frame is incomplete, or if its raw and run-length blocks alone exceed `limit`.
    """
    end: i64 = len(data)
    at: i64 = 0
    bound: i64 = 0
    certain: i64 = 0
    while at < end:
        magic: i64 = _little_endian(data, at, 4)
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
            at += 8 + _little_endian(data, at + 4, 4)
            continue
        if magic != _ZSTD_MAGIC:
            raise CorruptRecord("Failed to decompress zstd: unknown frame descriptor")
        descriptor: i64 = _little_endian(data, at + 4, 1)
        at += 4 + _zstd_header_size(descriptor)
        last: i64 = 0
        while last == 0:
            block: i64 = _little_endian(data, at, 3)
            last = block & 1
            kind: i64 = (block >> 1) & 3
            size: i64 = block >> 3
            at += 3
            if kind == 0:  # raw
                at += size
                certain += size
                bound += size
            elif kind == 1:  # one byte, repeated
                at += 1
                certain += size
                bound += size
            elif kind == 2:
                at += size
                bound += _ZSTD_BLOCK_MAX
            else:
                raise CorruptRecord("Failed to decompress zstd: reserved block type")
            if certain > limit:
                raise DecompressedTooLarge(f"Failed to decompress zstd: more than {limit} bytes")
        if descriptor & 4:
            at += 4  # the content checksum
    if at > end:
        raise CorruptRecord("Failed to decompress zstd: unexpected end of input")
    return bound


def _zstd_header_size(descriptor: i64) -> i64:
    """The size of descriptor, window, dictionary id and content size, as far as the descriptor says they exist."""
    single_segment: i64 = (descriptor >> 5) & 1
    content_size_flag: i64 = descriptor >> 6
    content_size: i64 = 1 << content_size_flag
    if content_size_flag == 0:
        content_size = single_segment
    dictionary_flag: i64 = descriptor & 3
    dictionary: i64 = 4 if dictionary_flag == 3 else dictionary_flag
    return 1 + (1 - single_segment) + dictionary + content_size


def _little_endian(data: bytes, at: i64, size: i64) -> i64:
    if at + size > len(data):
        raise CorruptRecord("Failed to decompress zstd: unexpected end of input")
    value: i64 = 0
    shift: i64 = 0
    for position in range(at, at + size):
        value |= i64(data[position]) << shift
        shift += 8
    return value
