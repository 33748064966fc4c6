"""Records of Kafka's internal topics as JSON, read by Kafka's own schemas and written as Kafka's JSON converters write them.

The broker has generated classes for the records it uses. Here a schema is enough, so that the log of any version of Kafka can be shown. A
field is shown if the version has it, a tagged field only if it differs from its default.
"""

from __future__ import annotations

import base64
import json
import math
import pkgutil
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from barnabas.errors import InvalidRecord
from barnabas.java_numbers import double_text
from barnabas.protocol.reader import Reader

Schema = Mapping[str, Any]
COORDINATOR_RECORDS: Final = "coordinator-records-4.2.0"
METADATA_RECORDS: Final = "metadata-records-4.2.0"
MESSAGES: Final = "kafka-4.2.0"
_INTEGERS: Final = {"int8", "int16", "uint16", "int32", "uint32", "int64"}
_ZERO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_VERSION_MAX: Final = 2**15 - 1


@cache
def schemas(file: str) -> Mapping[str, Schema]:
    """The schemas of one file, by name."""
    loaded: dict[str, Schema] = json.loads(pkgutil.get_data("barnabas.protocol", f"schemas/{file}.json") or b"{}")
    return loaded


def read_json(schema: Schema, data: bytes, version: int, *, whole: bool = True) -> dict[str, Any]:
    """The decoded bytes with Kafka's field names; with `whole`, trailing bytes are an error."""
    lowest, highest = versions(schema["validVersions"])
    if not lowest <= version <= highest:
        raise InvalidRecord(f"{schema['name']} has the versions {lowest} to {highest}, not {version}")
    reader = Reader(data, 0, len(data))
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    document = _Structures(reader, version, _within(version, schema["flexibleVersions"]), structs).read(schema["fields"])
    if whole:
        reader.finish()
    return document


def json_text(value: Any) -> str:
    """As Jackson writes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, float):
        return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
    return re.sub(r"\\u00..", lambda match: "\\u" + match[0][2:].upper(), json.dumps(value, ensure_ascii=False))


def versions(text: str | None) -> tuple[int, int]:
    """`2+`, `1-3`, `4`, `none`: the first and the last."""
    if text is None or text == "none":
        return 0, -1
    first, dash, last = text.rstrip("+").partition("-")
    return int(first), int(last) if dash else _VERSION_MAX if text.endswith("+") else int(first)


def _within(version: int, text: str | None) -> bool:
    first, last = versions(text)
    return first <= version <= last


class _Structures:
    def __init__(self, reader: Reader, version: int, flexible: bool, structs: Mapping[str, Sequence[Schema]]) -> None:
        self._reader = reader
        self._version = version
        self._flexible = flexible
        self._structs = structs

    def read(self, fields: Sequence[Schema]) -> dict[str, Any]:
        present = [field for field in fields if _within(self._version, field.get("versions", field.get("taggedVersions")))]
        tagged = {field["tag"]: field for field in present if _within(self._version, field.get("taggedVersions"))}
        values = {field["name"]: self._value(field) for field in present if field not in tagged.values()}
        if self._flexible:
            values |= self._tagged(tagged)
        return {field["name"][0].lower() + field["name"][1:]: values[field["name"]] for field in present if field["name"] in values}

    def _tagged(self, known: Mapping[int, Schema]) -> dict[str, Any]:
        """The tagged fields that differ from their defaults."""
        values = {}
        for _ in range(self._reader.tagged_fields()):
            tag = self._reader.uvarint()
            end = self._reader.tagged_field_end()
            if tag not in known:
                self._reader.skip_tagged_field(end)
                continue
            value = self._value(known[tag], in_tag=True)
            self._reader.leave_tagged_field(end)
            if value != self._default(known[tag]):
                values[known[tag]["name"]] = value
        return values

    def _value(self, field: Schema, *, in_tag: bool = False) -> Any:
        kind: str = field["type"]
        nullable = _within(self._version, field.get("nullableVersions"))
        if kind.startswith("[]"):
            count = self._reader.nullable_array(self._flexible, 1) if nullable else self._reader.array(self._flexible, 1)
            return None if count < 0 else [self._one(kind[2:], field, False) for _ in range(count)]
        if nullable and kind[0].isupper():
            is_present = self._reader.uvarint() > 0 if in_tag else self._reader.is_present()
            if not is_present:
                return None
        return self._one(kind, field, nullable)

    def _one(self, kind: str, field: Schema, nullable: bool) -> Any:
        reader, flexible = self._reader, self._flexible
        if kind == "string":
            return reader.nullable_string(flexible) if nullable else reader.string(flexible)
        if kind == "bytes":
            content = reader.nullable_byte_string(flexible) if nullable else reader.byte_string(flexible)
            return None if content is None else base64.b64encode(content).decode()
        if kind == "bool":
            return reader.boolean()
        if kind == "uuid":
            return str(reader.uuid())
        if kind == "float64":
            return reader.float64()
        if kind == "uint32":
            return reader.int32() & 0xFFFFFFFF
        if kind in _INTEGERS:
            return getattr(reader, kind)()
        return self.read(self._fields(kind, field))

    def _fields(self, kind: str, field: Schema) -> Sequence[Schema]:
        return field["fields"] if "fields" in field else self._structs[kind]

    def _default(self, field: Schema) -> Any:
        kind, default = field["type"], field.get("default")
        if default == "null":
            return None
        if kind.startswith("[]"):
            return []
        if kind in _INTEGERS:
            return int(str(default or 0), 0)
        if kind == "bool":
            return str(default).lower() == "true"
        if kind == "float64":
            return float(default or 0)
        if kind == "uuid":
            return _ZERO_UUID
        if kind in ("string", "bytes"):
            return default or ""
        present = [member for member in self._fields(kind, field) if _within(self._version, member.get("versions"))]
        untagged = [member for member in present if not _within(self._version, member.get("taggedVersions"))]
        return {member["name"][0].lower() + member["name"][1:]: self._default(member) for member in untagged}
