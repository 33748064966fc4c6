"""The records that every client sends and must read back exactly, and the text in which they travel to clients in other processes.

A record is a line of five fields: offset, timestamp, key, value, headers. Bytes are `=` and their base64, null is `-`; headers are
`name:value` pairs, comma between. The offset of a record to be sent is the one it must get in an empty partition.
"""

from __future__ import annotations

import base64
import random
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MEGABYTE = 1 << 20
START_MS = 1_700_000_000_000
STEP_MS = 1000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def __repr__(self) -> str:
        """Short enough for a failed comparison of lists with records of a megabyte in them."""
        key, value = (
            data if data is None or len(data) < 40 else f"{len(data)} bytes {zlib.crc32(data):08x}" for data in (self.key, self.value)
        )
        return f"<{self.offset} @{self.timestamp_ms} {key!r}: {value!r} {self.headers}>"


def samples(nothing: bool = True) -> list[Record]:
    """Null and empty keys and values, headers of every kind, values from one byte to a megabyte, text and noise.

    With `nothing` also what some clients refuse to send: neither key nor value, and headers without a value.
    """
    plain: list[tuple[bytes | None, bytes | None, Headers]] = [
        (None, b"no key", ()),
        (b"no value", None, ()),
        (b"", b"", ()),
        (b"\x00\xff binary \n\t", b"\x00\xff\r\n", ()),
        (b"headers", b"v", (("a", b"1"), ("b", b"2"), ("a", b"3"))),
        (b"odd headers", b"v", (("empty", b""), ("", b"no name"), ("größe ✓", "groß".encode()), ("binary", bytes(range(256))))),
    ]
    if nothing:
        plain += [(None, None, ()), (None, None, (("only", b"headers"),)), (b"null header", b"v", (("null", None), ("null", b"")))]
    noise = random.Random(4)
    plain += [(b"size", noise.randbytes(size), ()) for size in (1, 2, 127, 128, 1000, 16_384, 100_000)]
    plain += [(b"text", b"0123456789" * 10_000, ()), (b"megabyte", noise.randbytes(MEGABYTE), ())]
    plain += [(b"k%d" % (number % 7), b"value %d" % number, ()) for number in range(200)]
    return [Record(offset, START_MS + offset * STEP_MS, *rest) for offset, rest in enumerate(plain)]


def text_samples() -> list[Record]:
    """For clients that take keys and headers from a command line: the same kinds, without bytes that are no text."""
    plain: list[tuple[bytes | None, bytes | None, Headers]] = [
        (None, b"no key", ()),
        (b"no value", None, ()),
        (b"headers", b"v", (("a", b"1"), ("b", b"2"), ("a", b"3"))),
        ("schlüssel".encode(), "wert ✓".encode(), (("größe", "groß".encode()),)),
        (b"one byte", b"x", ()),
        (b"noise", random.Random(5).randbytes(10_000), ()),
        (b"megabyte", b"0123456789abcdef" * (MEGABYTE // 16), ()),
    ]
    return [Record(offset, START_MS + offset * STEP_MS, *rest) for offset, rest in enumerate(plain)]


def without_headers(records: Iterable[Record]) -> list[Record]:
    return [replace(record, headers=()) for record in records]


def without_timestamps(records: Iterable[Record]) -> list[Record]:
    return [replace(record, timestamp_ms=-1) for record in records]


def write_records(file: Path, records: Sequence[Record]) -> None:
    file.write_text("".join(f"{_line(record)}\n" for record in records))


def read_records(file: Path) -> list[Record]:
    return [_parse(line) for line in file.read_text().splitlines()]


def _line(record: Record) -> str:
    headers = ",".join(f"{_text(name.encode())}:{_text(value)}" for name, value in record.headers)
    return f"{record.offset} {record.timestamp_ms} {_text(record.key)} {_text(record.value)} {headers}"


def _parse(line: str) -> Record:
    offset, timestamp_ms, key, value, headers = line.split(" ")
    pairs = [pair.split(":") for pair in headers.split(",") if pair]
    parsed = tuple(((_bytes(name) or b"").decode(), _bytes(value)) for name, value in pairs)
    return Record(int(offset), int(timestamp_ms), _bytes(key), _bytes(value), parsed)


def _text(data: bytes | None) -> str:
    return "-" if data is None else "=" + base64.b64encode(data).decode()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text[1:])
