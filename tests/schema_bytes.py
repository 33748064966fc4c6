"""Messages of Kafka's schemas with values by chance, as bytes: what a reader of any of them has to understand."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

Schema = Mapping[str, Any]
SCHEMAS = Path(__file__).parents[1] / "src" / "barnabas" / "protocol" / "schemas"
_NUMBERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
_TEXTS = ("", "a", "orders", 'quote " and \\', "ß🙂", "tab\tand\x01")


def load(file: str) -> dict[str, Schema]:
    document: dict[str, Schema] = json.loads((SCHEMAS / f"{file}.json").read_text())
    return document


def versions_of(schema: Schema) -> range:
    first, _, last = schema["validVersions"].partition("-")
    return range(int(first), int(last or first) + 1)


def random_bytes(schema: Schema, version: int, random: Random) -> bytes:
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    return _Writer(version, _has(version, schema["flexibleVersions"]), structs, random).struct(schema["fields"])


def uvarint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _has(version: int, text: str | None) -> bool:
    if text is None or text == "none":
        return False
    first, dash, last = text.rstrip("+").partition("-")
    return int(first) <= version <= (int(last) if dash else 99 if text.endswith("+") else int(first))


class _Writer:
    def __init__(self, version: int, flexible: bool, structs: Mapping[str, Sequence[Schema]], random: Random) -> None:
        self._version = version
        self._flexible = flexible
        self._structs = structs
        self._random = random

    def struct(self, fields: Sequence[Schema]) -> bytes:
        present = [field for field in fields if _has(self._version, field.get("versions", field.get("taggedVersions")))]
        tagged = sorted((field for field in present if _has(self._version, field.get("taggedVersions"))), key=lambda field: field["tag"])
        out = b"".join(self._field(each) for each in present if each not in tagged)
        if not self._flexible:
            return out
        chosen = [each for each in tagged if self._random.random() < 0.7]
        out += uvarint(len(chosen))
        for each in chosen:
            content = self._field(each)
            out += uvarint(each["tag"]) + uvarint(len(content)) + content
        return out

    def _field(self, field: Schema) -> bytes:
        kind: str = field["type"]
        null = _has(self._version, field.get("nullableVersions")) and self._random.random() < 0.3
        if kind.startswith("[]"):
            count = self._random.randrange(3)
            return self._size(None if null else count, 4) + b"".join(self._one(kind[2:], field) for _ in range(0 if null else count))
        if kind in ("string", "bytes") and null:
            return self._size(None, 2 if kind == "string" else 4)
        if kind[0].isupper() and _has(self._version, field.get("nullableVersions")):
            absent = b"\x00" if _has(self._version, field.get("taggedVersions")) else b"\xff"
            return absent if null else b"\x01" + self._one(kind, field)
        return self._one(kind, field)

    def _one(self, kind: str, field: Schema) -> bytes:
        random = self._random
        if kind == "bool":
            return bytes([random.randrange(2)])
        if kind == "uuid":
            return random.choice([bytes(16), random.randbytes(16)])
        if kind == "float64":
            return struct.pack(">d", random.choice([0.0, 1.5, -2e10, 1e-5, 123456789.25]))
        if kind in _NUMBERS:
            return struct.pack(_NUMBERS[kind], random.choice([0, 1, 2, 100]) if kind.startswith("u") else random.choice([-1, 0, 1, 100]))
        if kind in ("string", "bytes"):
            content = random.choice(_TEXTS).encode() if kind == "string" else random.randbytes(random.randrange(5))
            return self._size(len(content), 2 if kind == "string" else 4) + content
        return self.struct(field["fields"] if "fields" in field else self._structs[kind])

    def _size(self, size: int | None, width: int) -> bytes:
        if self._flexible:
            return uvarint(0 if size is None else size + 1)
        return struct.pack(">h" if width == 2 else ">i", -1 if size is None else size)
