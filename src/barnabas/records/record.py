# Compiled by mypyc: src/compiled.toml lists this module.
"""One record of a batch.

A `Record` holds the positions of its key, value and headers in the (decompressed) bytes of its batch. It copies them only when its
properties are read.
"""

from __future__ import annotations

from mypy_extensions import i64

from barnabas.records.codecs.varint import read_varint

Header = tuple[str, bytes | None]


class Record:
    """A record of any format. A size of -1 means null, as on the wire."""

    def __init__(
        self,
        data: bytes,
        offset: i64,
        timestamp: i64,
        timestamp_type: i64,
        sequence: i64,
        key_at: i64,
        key_size: i64,
        value_at: i64,
        value_size: i64,
        headers_at: i64,
        header_count: i64,
    ) -> None:
        self.data = data
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.sequence = sequence
        self.key_at = key_at
        self.key_size = key_size
        self.value_at = value_at
        self.value_size = value_size
        self.headers_at = headers_at
        self.header_count = header_count

    @property
    def has_key(self) -> bool:
        return self.key_size >= 0

    @property
    def has_value(self) -> bool:
        return self.value_size >= 0

    @property
    def key(self) -> bytes | None:
        if self.key_size < 0:
            return None
        return self.data[self.key_at : self.key_at + self.key_size]

    @property
    def value(self) -> bytes | None:
        if self.value_size < 0:
            return None
        return self.data[self.value_at : self.value_at + self.value_size]

    @property
    def headers(self) -> list[Header]:
        headers: list[Header] = []
        at: i64 = self.headers_at
        for _ in range(self.header_count):
            size, at = read_varint(self.data, at)
            name = self.data[at : at + size].decode("utf-8", "replace")
            at += size
            size, at = read_varint(self.data, at)
            if size < 0:
                headers.append((name, None))
            else:
                headers.append((name, self.data[at : at + size]))
                at += size
        return headers
