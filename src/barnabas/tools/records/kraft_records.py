"""The control records of KRaft's metadata log and snapshots as JSON, for dump-log.

The broker does not use them. Each record is a Kafka message of a flexible version: fixed-width fields, compact strings and arrays, and
tagged fields after every structure, which are skipped.
"""

from __future__ import annotations

import base64
import json
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.control import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER

Json = int | str | list["Json"] | dict[str, "Json"]
Fields = tuple[tuple[str, "str | Fields"], ...]

# Every record opens with its own version, an int16, by which the rest is read. A nested tuple is an array of structures,
# a nested tuple under a name that ends in "!" one structure.
_ENDPOINT: Final[Fields] = (("name", "string"), ("host", "string"), ("port", "uint16"))
_VERSIONS: Final[Fields] = (("minSupportedVersion", "int16"), ("maxSupportedVersion", "int16"))
_VOTER: Final[Fields] = (
    ("voterId", "int32"),
    ("voterDirectoryId", "uuid"),
    ("endpoints", _ENDPOINT),
    ("kRaftVersionFeature!", _VERSIONS),
)
_ELECTOR: Final[Fields] = (("voterId", "int32"),)
_ELECTOR_V1: Final[Fields] = (("voterId", "int32"), ("voterDirectoryId", "uuid"))

_LAYOUTS: Final[dict[int, tuple[str, list[Fields]]]] = {
    LEADER_CHANGE: (
        "LeaderChange:",
        [
            (("leaderId", "int32"), ("voters", _ELECTOR), ("grantingVoters", _ELECTOR)),
            (("leaderId", "int32"), ("voters", _ELECTOR_V1), ("grantingVoters", _ELECTOR_V1)),
        ],
    ),
    SNAPSHOT_HEADER: ("SnapshotHeader", [(("lastContainedLogTimestamp", "int64"),)]),
    SNAPSHOT_FOOTER: ("SnapshotFooter", [()]),
    KRAFT_VERSION: ("KRaftVersion", [(("kRaftVersion", "int16"),)]),
    KRAFT_VOTERS: ("KRaftVoters", [(("voters", _VOTER),)]),
}

_INTEGERS: Final = {"int16": (2, True), "uint16": (2, False), "int32": (4, True), "int64": (8, True)}


def describe(control_type: int, value: bytes | None) -> str | None:
    """`SnapshotHeader {"version":0,…}`; None for a control type that is not KRaft's."""
    if control_type not in _LAYOUTS:
        return None
    title, versions = _LAYOUTS[control_type]
    reader = _Reader(value or b"")
    version = reader.integer(2, True)
    if not 0 <= version < len(versions):
        raise InvalidRecord(f"{title.rstrip(':')} record has version {version}, and only versions up to {len(versions) - 1} are known")
    fields: dict[str, Json] = {"version": version, **reader.structure(versions[version])}
    return f"{title} {json.dumps(fields, separators=(',', ':'), ensure_ascii=False)}"


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def structure(self, fields: Fields) -> dict[str, Json]:
        values: dict[str, Json] = {}
        for name, kind in fields:
            if isinstance(kind, str):
                values[name] = self._scalar(kind)
            elif name.endswith("!"):
                values[name[:-1]] = self.structure(kind)
            else:
                values[name] = [self.structure(kind) for _ in range(self._length())]
        for _ in range(self._unsigned_varint()):
            self._unsigned_varint()
            self._take(self._unsigned_varint())
        return values

    def integer(self, size: int, signed: bool) -> int:
        return int.from_bytes(self._take(size), "big", signed=signed)

    def _scalar(self, kind: str) -> Json:
        if kind == "string":
            return self._take(self._length()).decode("utf-8", "replace")
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._take(16)).decode().rstrip("=")
        return self.integer(*_INTEGERS[kind])

    def _length(self) -> int:
        """The length of a compact string or array; raises an error for null, which none of these fields may be."""
        length = self._unsigned_varint() - 1
        if not 0 <= length <= len(self._data) - self._at:
            raise InvalidRecord(f"A length of {length} with {len(self._data) - self._at} bytes left in the control record")
        return length

    def _unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise InvalidRecord("A varint of more than five bytes in a control record")

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise InvalidRecord(f"The control record ends {size - (len(self._data) - self._at)} bytes too early")
        self._at += size
        return self._data[self._at - size : self._at]
