"""Kafka's message schemas as objects: the generator writes code from them, and tests make messages from them.

A schema may come from two releases, because Kafka 4 dropped the oldest versions of many APIs and four APIs altogether. `load_messages`
joins them: a version that 4.2 has is described by 4.2 alone, a dropped one by 3.9.1. The running broker imports this module only to
write requests as JSON into its log.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[1] / "schemas"
RELEASE = "kafka-4.2.0"
OLD_RELEASE = "kafka-3.9.1"
COORDINATOR_RECORDS = "coordinator-records-4.2.0"
NUMBERS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8}
VERSION_MAX = 32767


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends included; empty when `lowest` is above `highest`."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), VERSION_MAX)
        lowest, _, highest = text.partition("-")
        return cls(int(lowest), int(highest or lowest))

    @property
    def is_empty(self) -> bool:
        return self.lowest > self.highest

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return NO_VERSIONS if both.is_empty else both

    def __or__(self, other: Versions) -> Versions:
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        if max(self.lowest, other.lowest) > min(self.highest, other.highest) + 1:
            raise ValueError(f"{self} and {other} leave a gap")
        return Versions(min(self.lowest, other.lowest), max(self.highest, other.highest))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))


NO_VERSIONS = Versions(0, -1)


@dataclass
class Field:
    """A field: `type` is a primitive or the name of a structure, without the brackets of an array."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    flexible: bool | None  # None: as the message; False for the client id of a request header
    default: str | None
    ignorable: bool

    @property
    def is_struct(self) -> bool:
        return self.type[0].isupper()

    @property
    def attribute(self) -> str:
        return snake_case(self.name)

    @property
    def kafka_name(self) -> str:
        return self.name[0].lower() + self.name[1:]


@dataclass
class Struct:
    name: str
    versions: Versions
    fields: list[Field]


@dataclass
class MessageSchema:
    """A message with its structures. A structure comes before those that use it; the last is the message itself."""

    name: str
    kind: str
    api_key: int
    versions: Versions
    flexible: Versions
    unstable: bool  # the latest version may still change
    structs: dict[str, Struct] = field(default_factory=dict)

    @property
    def root(self) -> Struct:
        return self.structs[self.name]

    @property
    def module(self) -> str:
        return snake_case(self.name)


def load_messages() -> list[MessageSchema]:
    """All messages of the protocol, by name."""
    new, old = read_release(RELEASE), read_release(OLD_RELEASE)
    return [join(new.get(name), old.get(name)) for name in sorted(new.keys() | old.keys())]


def load_coordinator_records() -> list[MessageSchema]:
    """The keys and values of `__consumer_offsets`, `__transaction_state` and `__share_group_state`, by name."""
    return [parse(schema) for _, schema in sorted(read_release(COORDINATOR_RECORDS).items())]


def join(new: dict[str, Any] | None, old: dict[str, Any] | None) -> MessageSchema:
    """One message from its schema in the new release and, for versions that the new release dropped, its schema in the old one."""
    if new is None or new["validVersions"] == "none":
        assert old is not None, "a message that no release has"
        return parse(old)
    if old is None:
        return parse(new)
    message, dropped = parse(new), parse(old)
    lost = Versions(dropped.versions.lowest, min(dropped.versions.highest, message.versions.lowest - 1))
    if lost.is_empty:
        return message
    if message.flexible & lost != dropped.flexible & lost:
        raise ValueError(f"{message.name} became flexible at different versions")
    for name, struct in dropped.structs.items():
        new_struct = message.structs.get(name)
        if new_struct is None:
            raise ValueError(f"{message.name}: the structure {name} was renamed")
        new_struct.fields = _join_fields(new_struct.fields, struct.fields, message.versions, lost)
    message.versions |= lost
    _settle_versions(message)
    return message


def parse(schema: dict[str, Any]) -> MessageSchema:
    """A message from the JSON of one release."""
    message = MessageSchema(
        name=schema["name"],
        kind=schema["type"],
        api_key=int(schema.get("apiKey", -1)),
        versions=Versions.parse(schema["validVersions"]),
        flexible=Versions.parse(schema.get("flexibleVersions")),
        unstable=bool(schema.get("latestVersionUnstable", False)),
    )
    for common in schema.get("commonStructs", []):
        _add_struct(message, common["name"], common["fields"])
    _add_struct(message, message.name, schema["fields"])
    _settle_versions(message)
    return message


def snake_case(name: str) -> str:
    name = name.replace("KRaft", "Kraft").replace("2Pc", "_2pc")
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def read_release(release: str) -> dict[str, Any]:
    """The schemas of a release, by the names of the messages."""
    schemas: dict[str, Any] = json.loads((SCHEMAS / f"{release}.json").read_text())
    return schemas


def _add_struct(message: MessageSchema, name: str, fields: list[dict[str, Any]]) -> None:
    parsed = [_parse_field(raw) for raw in fields]
    for raw, one in zip(fields, parsed, strict=True):
        if "fields" in raw:
            _add_struct(message, one.type, raw["fields"])
    if name in message.structs:
        raise ValueError(f"{message.name} has two structures named {name}")
    message.structs[name] = Struct(name, NO_VERSIONS, parsed)


def _parse_field(raw: dict[str, Any]) -> Field:
    kind: str = raw["type"]
    tagged = Versions.parse(raw.get("taggedVersions"))
    default = raw.get("default")
    return Field(
        name=raw["name"],
        type=kind.removeprefix("[]"),
        is_array=kind.startswith("[]"),
        versions=Versions.parse(raw["versions"]) if "versions" in raw else tagged,
        nullable=Versions.parse(raw.get("nullableVersions")),
        tagged=tagged,
        tag=int(raw.get("tag", -1)),
        flexible=False if raw.get("flexibleVersions") == "none" else None,
        default=None if default is None else str(default).lower() if isinstance(default, bool) else str(default),
        ignorable=str(raw.get("ignorable", False)).lower() == "true",
    )


def _join_fields(new: list[Field], old: list[Field], kept: Versions, lost: Versions) -> list[Field]:
    """The fields of both releases in wire order. The versions of each new field are widened by the dropped versions that had it."""
    by_name = {one.name: one for one in new}
    for one in new:
        one.versions &= kept
        one.nullable &= kept
        one.tagged &= kept
    joined = list(new)
    place = 0
    for one in old:
        new_field = by_name.get(one.name)
        if new_field is None:
            one.versions &= lost
            if one.versions.is_empty:
                continue
            new_field = one
            joined.insert(place, one)
        elif (new_field.type, new_field.is_array) != (one.type, one.is_array):
            raise ValueError(f"The field {one.name} changed its type")
        new_field.versions |= one.versions & lost
        new_field.nullable |= one.nullable & lost
        new_field.tagged |= one.tagged & lost
        place = joined.index(new_field) + 1
    return joined


def _settle_versions(message: MessageSchema) -> None:
    """Limits every range to the versions in which the field is sent, and derives the versions of structures from their uses."""
    for struct in message.structs.values():
        struct.versions = NO_VERSIONS
    message.root.versions = message.versions
    for struct in reversed(_in_order_of_use(message)):
        for one in struct.fields:
            one.versions &= struct.versions
            one.nullable &= one.versions
            one.tagged &= one.versions
            if one.is_struct:
                used = message.structs[one.type]
                used.versions |= one.versions
    message.structs = {struct.name: struct for struct in _in_order_of_use(message)}


def _in_order_of_use(message: MessageSchema) -> list[Struct]:
    """The structures, each after all that it uses."""
    ordered: dict[str, Struct] = {}

    def visit(struct: Struct) -> None:
        for one in struct.fields:
            if one.is_struct:
                visit(message.structs[one.type])
        ordered.setdefault(struct.name, struct)

    visit(message.root)
    return list(ordered.values())
