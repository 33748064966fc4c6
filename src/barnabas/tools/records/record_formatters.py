"""How kafka-console-consumer prints records: Kafka's formatters under Kafka's names, and any other by its Python path.

A formatter has `configure(properties)`, `write(record, output)` and `close()`, and writes bytes: what it prints need not be text.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import IO, Any, Final, Protocol

from barnabas.java_numbers import double_text
from barnabas.tools.command_line.failures import BadArgument, ToolError
from barnabas.tools.records.old_formatters import (
    ChecksumFormatter,
    OldGroupMetadataFormatter,
    OldOffsetsFormatter,
    OldTransactionLogFormatter,
)
from barnabas.tools.records.schema_json import COORDINATOR_RECORDS, json_text, read_json, schemas

_LOG: Final = logging.getLogger(__name__)
_PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT_FORMATTER: Final = f"{_PACKAGE}DefaultMessageFormatter"


class Formatter(Protocol):
    def configure(self, properties: Mapping[str, str]) -> None: ...

    def write(self, record: Any, output: IO[bytes]) -> None: ...

    def close(self) -> None: ...


class DefaultFormatter:
    """Prints the value of a record on a line, with the other fields that the properties select."""

    def __init__(self) -> None:
        self._shown = {"timestamp": False, "partition": False, "offset": False, "delivery": False, "epoch": False, "headers": False}
        self._shown |= {"key": False, "value": True}
        self._separators = {"key.separator": b"\t", "line.separator": b"\n", "headers.separator": b",", "null.literal": b"null"}
        self._deserializers: dict[str, Any] = {}

    def configure(self, properties: Mapping[str, str]) -> None:
        for name in self._shown:
            if f"print.{name}" in properties:
                self._shown[name] = properties[f"print.{name}"].strip().lower() == "true"
        for name in self._separators:
            if name in properties:
                self._separators[name] = properties[name].encode()
        for name in ("key.deserializer", "value.deserializer", "headers.deserializer"):
            if name in properties:
                self._add_deserializer(name, properties)

    def _add_deserializer(self, name: str, properties: Mapping[str, str]) -> None:
        from barnabas.client.serialization.resolve import resolve_deserializer

        own = {key.removeprefix(f"{name}."): value for key, value in properties.items() if key.startswith(f"{name}.")}
        try:
            self._deserializers[name] = resolve_deserializer(properties[name], own, name.startswith("key"))
        except Exception as error:
            _LOG.error("Unable to instantiate a deserializer from %s: %s", properties[name], error)

    def write(self, record: Any, output: IO[bytes]) -> None:
        cells = [self._cell(name, record) for name, shown in self._shown.items() if shown]
        if cells:
            output.write(self._separators["key.separator"].join(cells) + self._separators["line.separator"])

    def close(self) -> None:
        return None

    def _cell(self, name: str, record: Any) -> bytes:
        if name == "timestamp":
            return b"NO_TIMESTAMP" if record.timestamp_type < 0 else f"{record.timestamp_type}:{record.timestamp}".encode()
        if name in ("partition", "offset"):
            return f"{name.capitalize()}:{getattr(record, name)}".encode()
        if name in ("delivery", "epoch"):
            number = record.delivery_count if name == "delivery" else None  # Kafka's tool drops the leader epoch before the formatter runs
            return f"{name.capitalize()}:{'NOT_PRESENT' if number is None else number}".encode()
        if name == "headers":
            headers = [f"{key}:".encode() + self._bytes("headers", value, record) for key, value in record.headers]
            return self._separators["headers.separator"].join(headers) if headers else b"NO_HEADERS"
        return self._bytes(name, getattr(record, name), record)

    def _bytes(self, part: str, content: bytes | None, record: Any) -> bytes:
        data = self._separators["null.literal"] if content is None else content
        deserializer = self._deserializers.get(f"{part}.deserializer")
        if deserializer is None:
            return data
        return _java_text(deserializer.deserialize(record.topic, data, list(record.headers))).encode("utf-8", "surrogateescape")


def _java_text(value: Any) -> str:
    """The value as Java's toString prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_java_text, value))}]"
    return str(value)


class LoggingFormatter(DefaultFormatter):
    """Prints as DefaultFormatter does, and logs the record."""

    def write(self, record: Any, output: IO[bytes]) -> None:
        super().write(record, output)
        time = "" if record.timestamp_type < 0 else f"{record.timestamp_type}:{record.timestamp}, "
        key = "key:null " if record.key is None else f"key:{record.key.decode('utf-8', 'replace')}, "
        value = "value:null" if record.value is None else f"value:{record.value.decode('utf-8', 'replace')}"
        _LOG.info("%s%s%s", time, key, value)


class NoOpFormatter:
    """Prints nothing, for measurements."""

    def configure(self, properties: Mapping[str, str]) -> None:
        return None

    def write(self, record: Any, output: IO[bytes]) -> None:
        return None

    def close(self) -> None:
        return None


class CoordinatorFormatter(NoOpFormatter):
    """Prints the records of an internal topic as JSON, restricted to some record types."""

    def __init__(self, types: Mapping[int, str]) -> None:
        self._types = types

    def write(self, record: Any, output: IO[bytes]) -> None:
        if record.key is None:
            return
        try:
            kind = struct.unpack_from(">h", record.key)[0]
            if kind not in self._types:
                return
            document: dict[str, Any] = {"key": {"type": kind, "data": self._read(kind, "Key", record.key, 0)}, "value": None}
            if record.value is not None:
                version = struct.unpack_from(">h", record.value)[0]
                document["value"] = {"version": version, "data": self._read(kind, "Value", record.value, version)}
        except Exception as error:
            raise ToolError(f"Could not read record at offset {record.offset} due to: {error}") from error
        output.write(json_text(document).encode())

    def _read(self, kind: int, part: str, data: bytes, version: int) -> dict[str, Any]:
        return read_json(schemas(COORDINATOR_RECORDS)[f"{self._types[kind]}{part}"], data[2:], version)


_OFFSETS: Final = {0: "LegacyOffsetCommit", 1: "OffsetCommit"}
_SHARE_GROUPS: Final = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
}
_SHARE_STATES: Final = {0: "ShareSnapshot", 1: "ShareUpdate"}
_NAMED: Final[dict[str, Callable[[], Formatter]]] = {
    "DefaultMessageFormatter": DefaultFormatter,
    "LoggingMessageFormatter": LoggingFormatter,
    "NoOpMessageFormatter": NoOpFormatter,
    "OffsetsMessageFormatter": lambda: CoordinatorFormatter(_OFFSETS),
    "GroupMetadataMessageFormatter": lambda: CoordinatorFormatter({2: "GroupMetadata"}),
    "TransactionLogMessageFormatter": lambda: CoordinatorFormatter({0: "TransactionLog"}),
    "ShareGroupMessageFormatter": lambda: CoordinatorFormatter(_SHARE_GROUPS),
    "group.share.ShareGroupStateMessageFormatter": lambda: CoordinatorFormatter(_SHARE_STATES),
}

# The names up to Kafka 3.9; that of the checksums up to 2.8.
_OLD: Final[dict[str, Callable[[], Formatter]]] = {
    "kafka.tools.ChecksumMessageFormatter": ChecksumFormatter,
    "kafka.tools.DefaultMessageFormatter": DefaultFormatter,
    "kafka.tools.LoggingMessageFormatter": LoggingFormatter,
    "kafka.tools.NoOpMessageFormatter": NoOpFormatter,
    "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter": OldOffsetsFormatter,
    "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter": OldGroupMetadataFormatter,
    "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter": OldTransactionLogFormatter,
}


def load_formatter(name: str) -> Formatter:
    """By Kafka's name, or `module.Class` in Python."""
    known = _NAMED.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else _OLD.get(name)
    if known is not None:
        return known()
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        made: Formatter = getattr(import_module(module), attribute)()
    except (ImportError, ValueError, AttributeError):
        raise BadArgument(name) from None
    return made
