"""Record batches as a hostile producer would send them: whole ones of every format and codec, and then damaged where it hurts.

What a batch says of itself is mostly made consistent again after the damage (length and checksum), since a wrong checksum is all that a
broker would see otherwise.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import google_crc32c

from barnabas.records.batch import HEADER_SIZE_V2
from barnabas.records.builder import BatchBuilder, build
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from barnabas.records.control import end_txn_marker

NOW_MS = 1_767_225_600_000
CRC_AT, ATTRIBUTES_AT, COUNT_AT, LENGTH_AT, MAGIC_AT = 17, 21, 57, 8, 16
HEADER_NUMBERS = (
    (0, 8),
    (8, 4),
    (12, 4),
    (16, 1),
    (21, 2),
    (23, 4),
    (27, 8),
    (35, 8),
    (43, 8),
    (51, 2),
    (53, 4),
    (57, 4),
)  # v2: place, size
BOMB_BYTES = 32 * 1024 * 1024  # out of some kilobytes
SNAPPY_BYTES_MAX = 16 * 1024 * 1024
VARINTS = (b"\xff" * 10, b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\x00", b"\x01", b"\x7f")


def hostile(random: Random, version: int) -> bytes:
    """The records of one partition in a Produce of this version."""
    drawn = random.random()
    if drawn < 0.001:
        return random.choice((bomb, honest_bomb))(random.choice((GZIP, ZSTD, LZ4, SNAPPY)))
    if drawn < 0.02:
        return random.randbytes(random.choice((0, 1, 12, 16, 17, 60, 61, 62, 300)))
    if drawn < 0.04:
        return end_txn_marker(random.random() < 0.5, random.choice((0, 1, 2**62)), random.choice((0, 1)), 0, NOW_MS)
    magic = random.choice((2, 2, 2, 2, 2, 1, 0)) if version >= 3 else random.choice((0, 0, 1, 1, 2))
    whole = _whole(random, magic)
    if drawn < 0.30:
        return whole
    if drawn < 0.36:
        return whole + _whole(random, random.choice((magic, 0, 1, 2)))
    damaged = _damaged(random, whole) if magic == 2 else _flipped(random, whole)
    return damaged


def plain(count: int, now_ms: int, size: int = 100) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(now_ms, b"key-%d" % number, b"v" * size)
    return builder.build()


@cache
def bomb(codec: int, size: int = BOMB_BYTES) -> bytes:
    """A batch of zeros that is small only as long as nobody opens it. Snappy packs 20 to 1 at best: it gets what fits in a message."""
    packed = compress(codec, bytes(min(size, SNAPPY_BYTES_MAX) if codec == SNAPPY else size))
    return _sealed(bytearray(plain(1, NOW_MS)[:HEADER_SIZE_V2]), packed, codec)


@cache
def honest_bomb(codec: int, size: int = BOMB_BYTES) -> bytes:
    """A batch of one large record of zeros, as good as any: it is opened and taken."""
    return build([(NOW_MS, b"", bytes(min(size, SNAPPY_BYTES_MAX) if codec == SNAPPY else size), ())], codec=codec)


def _whole(random: Random, magic: int) -> bytes:
    codecs = (NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD) if magic == 2 else (NONE, NONE, GZIP, SNAPPY, LZ4)
    builder = BatchBuilder(magic, random.choice(codecs), random.choice((0,) * 30 + (5, 2**31)), **_producer(random, magic))
    for _ in range(random.choice((1, 1, 1, 2, 3, 20))):
        key = random.choice((None, b"", b"k", b"key-%d" % random.randrange(5)))
        value = random.choice((None, b"", b"v", random.randbytes(100), bytes(5000)))
        headers = (("h", b"1"), ("", None)) if magic == 2 and random.random() < 0.2 else ()
        builder.append(random.choice((NOW_MS, NOW_MS, 0, NOW_MS - 10**9, NOW_MS + 10**9)), key, value, headers)
    return builder.build()


def _producer(random: Random, magic: int) -> dict[str, Any]:
    if magic < 2 or random.random() < 0.6:
        return {}
    return {
        "producer_id": random.choice((0, 1, 2, 1000, 2**62)),
        "producer_epoch": random.choice((0, 0, 1, 32767)),
        "base_sequence": random.choice((0, 0, 1, 2, 5, 2**31 - 1)),
        "transactional": random.random() < 0.2,
    }


def _damaged(random: Random, whole: bytes) -> bytes:
    """A v2 batch with one thing wrong with it."""
    batch = bytearray(whole)
    kind = random.randrange(8)
    if kind == 0:  # the checksum
        batch[CRC_AT + random.randrange(4)] ^= 1 << random.randrange(8)
        return bytes(batch)
    if kind == 1:  # cut
        return bytes(batch[: random.randrange(len(batch))])
    if kind == 2:  # cut, and said to be whole
        return _sealed(batch[:HEADER_SIZE_V2], bytes(batch[HEADER_SIZE_V2 : random.randrange(HEADER_SIZE_V2, len(batch) + 1)]))
    if kind == 3:  # a number in the header
        at, size = random.choice(HEADER_NUMBERS)
        batch[at : at + size] = random.choice((b"\xff", b"\x7f", b"\x80", b"\x00", b"\x01")) + random.choice((b"\xff", b"\x00")) * (
            size - 1
        )
        return _resealed(batch) if at not in (LENGTH_AT, MAGIC_AT) else bytes(batch)
    if kind == 4:  # how many records there are
        batch[COUNT_AT : COUNT_AT + 4] = random.choice((0, 2, 2**31 - 1, 1000)).to_bytes(4, "big")
        return _resealed(batch)
    if kind == 5:  # a length inside
        at = random.randrange(HEADER_SIZE_V2, len(batch) + 1)
        return _sealed(batch[:HEADER_SIZE_V2], bytes(batch[HEADER_SIZE_V2:at]) + random.choice(VARINTS) + bytes(batch[at:]))
    if kind == 6:  # another codec than the one it was packed with, control, transactional, append time
        batch[ATTRIBUTES_AT + 1] = random.randrange(256)
        return _resealed(batch)
    return _resealed(bytearray(_flipped(random, bytes(batch))))


def _flipped(random: Random, data: bytes) -> bytes:
    flipped = bytearray(data)
    for _ in range(random.choice((1, 1, 3))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _sealed(header: bytearray, body: bytes, codec: int | None = None) -> bytes:
    batch = header + body
    batch[LENGTH_AT : LENGTH_AT + 4] = (len(batch) - 12).to_bytes(4, "big")
    if codec is not None:
        batch[ATTRIBUTES_AT + 1] = codec
    return _resealed(batch)


def _resealed(batch: bytearray) -> bytes:
    batch[CRC_AT : CRC_AT + 4] = google_crc32c.value(bytes(batch[ATTRIBUTES_AT:])).to_bytes(4, "big")
    return bytes(batch)
