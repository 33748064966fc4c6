"""Byte for byte as kio, an independent codec made from the same schemas, for every message and version that it has.

kio reads what we wrote, must find the same values in it, and must write the same bytes again. It is asked only about well-formed bytes: on
hostile ones it may end the process.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from enum import Enum
from random import Random
from typing import Any

import pytest

from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid
from tests.unit.protocol.instances import MESSAGES, class_of, random_message

kio_index = pytest.importorskip("kio.schema.index", reason="kio is the oracle: pip install -r requirements/ci.txt")

SEEDS = range(6)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_class(name: str, version: int) -> Any:
    """kio's class of a message, or None where it has none."""
    from pkgutil import resolve_name

    from kio.static.constants import EntityType

    message = MESSAGES[name]
    kinds = {"request": EntityType.request, "response": EntityType.response, "header": EntityType.header, "data": EntityType.data}
    schema = message.module.removesuffix(f"_{message.kind}") if message.kind in ("request", "response") else message.module
    path = kio_index.schema_name_map.get(schema, {}).get(version, {}).get(kinds[message.kind])
    return None if path is None else resolve_name(path)


COMPARED = [(name, version) for name, message in MESSAGES.items() for version in message.versions if kio_class(name, version) is not None]


def test_kio_has_most_of_the_messages() -> None:
    assert len({name for name, _ in COMPARED}) > 180
    assert len(COMPARED) > 600


@pytest.mark.parametrize("name", sorted({name for name, _ in COMPARED}))
def test_a_message_has_the_bytes_and_the_values_that_kio_gives_it(name: str) -> None:
    from kio.serial import entity_reader, entity_writer

    for version in [version for compared, version in COMPARED if compared == name]:
        kind = kio_class(name, version)
        for seed in SEEDS:
            ours = random_message(name, version, Random(seed), narrow=True)
            raw = serialize(ours, version)
            theirs, size = entity_reader(kind)(raw, 0)
            assert size == len(raw)
            assert plain(theirs) == plain_of_version(name, ours, version), f"v{version}"
            again = io.BytesIO()
            entity_writer(kind)(again, theirs)
            assert again.getvalue() == raw, f"v{version}"
            assert parse(class_of(MESSAGES[name]), raw, version) == ours


def plain_of_version(name: str, ours: Message, version: int) -> Any:
    """The values of a message that travel in a version, in order."""
    message = MESSAGES[name]

    def values(value: Any) -> Any:
        if isinstance(value, Message):
            fields = message.structs[type(value).__name__].fields
            return [values_of(value, one) for one in fields if version in one.versions]
        if isinstance(value, list):
            return [values(element) for element in value]
        return plain(value)

    def values_of(owner: Message, one: Any) -> Any:
        value = getattr(owner, one.attribute)
        if value is None and not one.tagged.is_empty and one.is_struct:
            module = class_of(message, message.structs[one.type])
            return values(module())  # kio makes the default where nothing came
        return values(value)

    return values(ours)


def plain(value: Any) -> Any:
    """A value of either codec as lists, numbers, strings and bytes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Uuid)):
        return [plain(getattr(value, one.name)) for one in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return [plain(element) for element in value]
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, Uuid):
        return None if value == Uuid.ZERO else value.value
    if isinstance(value, Records):
        return value.to_bytes()
    if isinstance(value, Enum):
        return value.value
    return value
