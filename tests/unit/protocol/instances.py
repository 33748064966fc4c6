"""Random messages made from the schemas: what the tests of the codec write, read, cut and damage.

A message is filled at one version with values from the whole of each type, its ends included; fields the version does not have stay at
their defaults, so that what is read back must equal what was written.
"""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

from barnabas.protocol.generator.emit import is_left_out
from barnabas.protocol.generator.schema import Field, MessageSchema, Struct, load_coordinator_records, load_messages
from barnabas.protocol.message import Message as Instance
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid

MESSAGES = {message.name: message for message in load_messages()}
COORDINATOR_RECORDS = {message.name: message for message in load_coordinator_records()}
ALL = MESSAGES | COORDINATOR_RECORDS
VERSIONS = [(name, version) for name, message in ALL.items() for version in message.versions]

ELEMENTS_MAX = 3
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = ["", "a", "topic-1", "ünïcødé ✓ 𝄞", "x" * 130]


def class_of(message: MessageSchema, struct: Struct | None = None) -> type[Instance]:
    package = "coordinator_records" if message.name in COORDINATOR_RECORDS else "messages"
    module = import_module(f"barnabas.protocol.{package}.{message.module}")
    kind_found: type[Instance] = getattr(module, (struct or message.root).name)
    return kind_found


def random_message(name: str, version: int, random: Random, narrow: bool = False) -> Any:
    """A message of this name; `narrow` keeps to values a picky peer accepts: known error codes, times that a calendar has."""
    message = ALL[name]
    return _Filler(message, version, random, narrow).struct(message.root)


class _Filler:
    def __init__(self, message: MessageSchema, version: int, random: Random, narrow: bool) -> None:
        self.message = message
        self.version = version
        self.random = random
        self.narrow = narrow

    def struct(self, struct: Struct) -> Any:
        values = {one.attribute: self.field(one) for one in struct.fields if self.version in one.versions}
        return class_of(self.message, struct)(**values)

    def field(self, one: Field) -> Any:
        if self.version in one.nullable and self.random.random() < 0.3:
            return None
        if is_left_out(one):
            value = self.value(one)
            return None if value.is_default() or self.random.random() < 0.3 else value
        if one.is_array:
            return [self.value(one) for _ in range(self.random.randint(0, ELEMENTS_MAX))]
        return self.value(one)

    def value(self, one: Field) -> Any:
        random = self.random
        if one.is_struct:
            return self.struct(self.message.structs[one.type])
        if one.type == "string":
            return random.choice(TEXTS)
        if one.type == "bytes":
            return random.randbytes(random.choice([0, 1, 200]))
        if one.type == "records":
            return Records(random.randbytes(random.choice([0, 1, 300, 5000])))
        if one.type == "uuid":
            return random.choice([Uuid.ZERO, Uuid.METADATA_TOPIC_ID, Uuid(random.randbytes(16))])
        if one.type == "bool":
            return random.random() < 0.5
        if one.type == "float64":
            return random.choice([0.0, -1.5, 1e300, random.random()])
        return self.number(one)

    def number(self, one: Field) -> int:
        random = self.random
        if self.narrow:
            return random.choice([0, 1, 2, 100, 119])
        if one.type == "uint16":
            return random.choice([0, 1, 0x7FFF, 0x8000, 0xFFFF])
        bits = BITS[one.type]
        lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return random.choice([lowest, -1, 0, 1, highest, random.randint(lowest, highest)])
