"""What kafka-dump-log shows of records of Kafka's internal topics: keys and values as JSON, one decoder for each topic.

For a record that cannot be decoded the error is printed in its place, and the dump continues.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.errors import InvalidRecord, KafkaError
from barnabas.protocol.reader import Reader
from barnabas.records.record import Record
from barnabas.tools.records.schema_json import COORDINATOR_RECORDS, MESSAGES, METADATA_RECORDS, Schema, json_text, read_json, schemas

Shown = tuple[str | None, str | None]  # key and value
Decoder = Callable[[Record], Shown]

_CONSUMER: Final = "consumer"  # the protocol whose subscriptions and assignments are known
_FRAME_VERSION: Final = 1


def _coordinator_decoder(pattern: str) -> Decoder:
    """The decoder for a topic whose keys begin with the record type and whose values begin with a version."""
    chosen = [schema for name, schema in schemas(COORDINATOR_RECORDS).items() if re.fullmatch(f"(?:{pattern})(Key|Value)", name)]
    known = {(schema["type"], schema["apiKey"]): schema for schema in chosen}

    def decode(record: Record) -> Shown:
        key, value = record.key, record.value
        if key is None:
            raise InvalidRecord(
                f"Failed to decode message at offset {record.offset} using the specified decoder (message had a missing key)"
            )
        try:
            (kind,) = struct.unpack_from(">h", key)
            if ("coordinator-key", kind) not in known:
                return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            shown = json_text({"type": str(kind), "data": read_json(known["coordinator-key", kind], key[2:], 0)})
            return shown, "<DELETE>" if value is None else _value_text(known["coordinator-value", kind], value)
        except (KafkaError, struct.error) as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    return decode


def _value_text(schema: Schema, value: bytes) -> str:
    (version,) = struct.unpack_from(">h", value)
    data = read_json(schema, value[2:], version)
    if schema["name"] == "GroupMetadataValue" and data.get("protocolType") == _CONSUMER:
        for member in data["members"]:
            _open(member, "subscription", schemas(MESSAGES)["ConsumerProtocolSubscription"])
            _open(member, "assignment", schemas(MESSAGES)["ConsumerProtocolAssignment"])
    return json_text({"version": str(version), "data": data})


def _open(member: dict[str, Any], field: str, schema: Schema) -> None:
    """Decodes embedded subscriptions and assignments; bytes that cannot be decoded stay as they are."""
    data = base64.b64decode(member[field])
    try:
        member[field] = read_json(schema, data[2:], int.from_bytes(data[:2], "big", signed=True), whole=False)
    except KafkaError:
        return


def _metadata_decoder() -> Decoder:
    known = {schema["apiKey"]: schema for schema in schemas(METADATA_RECORDS).values()}

    def decode(record: Record) -> Shown:
        try:
            data = record.value or b""
            reader = Reader(data, 0, len(data))
            frame, kind, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
            if frame != _FRAME_VERSION:
                raise InvalidRecord(
                    f"Could not deserialize metadata record due to unknown frame version {frame}(only frame version 1 is supported)"
                )
            if kind not in known:
                raise InvalidRecord(f"Unknown metadata id {kind}")
            shown = {"type": _constant(known[kind]["name"]), "version": version}
            return None, json_text(shown | {"data": read_json(known[kind], data[reader.at :], version)})
        except KafkaError as error:
            return None, f"Error at {record.offset}, skipping. {error}"

    return decode


def _constant(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


_MAKERS: Final[Mapping[str, Callable[[], Decoder]]] = {
    "offsets-decoder": lambda: _coordinator_decoder("(?!TransactionLog|ShareSnapshot|ShareUpdate).*"),
    "transaction-log-decoder": lambda: _coordinator_decoder("TransactionLog"),
    "cluster-metadata-decoder": _metadata_decoder,
    "share-group-state-decoder": lambda: _coordinator_decoder("ShareSnapshot|ShareUpdate"),
}
NAMES: Final = tuple(_MAKERS)


def make(name: str) -> Decoder:
    """The decoder by the name of its option."""
    return _MAKERS[name]()
