# Compiled by mypyc: src/compiled.toml lists this module.
"""The records of `__consumer_offsets`, `__transaction_state` and `__share_group_state` as bytes.

A coordinator's log holds messages with a prefix of two bytes: the type of the record before a key, the version before a value. Coordinators
write and read their records with this module; it does not interpret them. A type or version of a newer Kafka raises UnsupportedVersion,
damage raises MalformedMessage: a coordinator that loads its log skips both, and logs the first as a warning, the second as an error.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from librt.strings import read_i16_be, write_i16_be

from barnabas.protocol.coordinator_record_types import GROUP, SHARE, TRANSACTION
from barnabas.protocol.errors import MalformedMessage, UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer

KEY_VERSION: Final = 0  # the only version of every key; older versions of Kafka called the type of the record the version of its key
PREFIX_SIZE: Final = 2


class RecordTypes:
    """The record types of one kind of coordinator. Their classes are imported when the first record is read or written."""

    def __init__(self, names: dict[int, tuple[str, str]]) -> None:
        self._names = names
        self._kinds: dict[int, tuple[type[Message], type[Message]]] = {}

    def kinds(self, record_type: int) -> tuple[type[Message], type[Message]]:
        """The classes of the key and the value of a type; raises UnsupportedVersion for an unknown type."""
        kinds = self._kinds.get(record_type)
        if kinds is None:
            if record_type not in self._names:
                raise UnsupportedVersion(f"Found an unknown record type {record_type}")
            name, module = self._names[record_type]
            kinds = (_record_class(f"{name}Key", f"{module}_key"), _record_class(f"{name}Value", f"{module}_value"))
            self._kinds[record_type] = kinds
        return kinds

    def read_key(self, data: bytes) -> tuple[int, Message]:
        """The type of a record and its key."""
        record_type = _prefix(data)
        return record_type, _read(self.kinds(record_type)[0], data, KEY_VERSION)

    def read_value(self, record_type: int, data: bytes) -> Message:
        """The value of a record of this type, in the version of its prefix; raises UnsupportedVersion for an unknown version."""
        return _read(self.kinds(record_type)[1], data, _prefix(data))


GROUP_RECORDS: Final = RecordTypes(GROUP)
TRANSACTION_RECORDS: Final = RecordTypes(TRANSACTION)
SHARE_RECORDS: Final = RecordTypes(SHARE)


def write_key(record_type: int, key: Message) -> bytes:
    return _write(record_type, key, KEY_VERSION)


def write_value(version: int, value: Message) -> bytes:
    return _write(version, value, version)


def _write(prefix: int, message: Message, version: int) -> bytes:
    writer = Writer()
    write_i16_be(writer.out, prefix)
    message.write(writer, version)
    return writer.out.getvalue()


def _read(kind: type[Message], data: bytes, version: int) -> Message:
    reader = Reader(data, PREFIX_SIZE)
    message = kind.read(reader, version)
    reader.finish()
    return message


def _prefix(data: bytes) -> int:
    if len(data) < PREFIX_SIZE:
        raise MalformedMessage(f"A coordinator's record of {len(data)} bytes is too short for its type or version")
    return read_i16_be(data, 0)


def _record_class(name: str, module: str) -> type[Message]:
    record_class: type[Message] = getattr(import_module(f"barnabas.protocol.coordinator_records.{module}"), name)
    return record_class
