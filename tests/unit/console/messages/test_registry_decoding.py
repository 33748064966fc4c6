"""Keys and values whose schema is in a registry, hostile schemas among them."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from barnabas.client.serialization.avro import AvroSerializer
from barnabas.client.serialization.json_schema import JsonSchemaSerializer
from barnabas.client.serialization.protobuf import ProtobufSerializer
from barnabas.console.messages.decoding import DecodedField
from barnabas.console.messages.registry import CachedSchemaRegistry, NotDecoded, check_avro
from tests.schema_registry import running
from tests.unit.console.messages.records import message

RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "card", "type": "string"}, {"name": "raw", "type": "bytes"}],
}
LINKED = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


@pytest.fixture
def url() -> Generator[str, None, None]:
    with running() as registry:
        yield registry.url


def shown(url: str, raw: bytes, **settings: Any) -> DecodedField:
    return message(raw, registry=CachedSchemaRegistry({"schema.registry.url": url}).decoder(), **settings).value


def serialized(serializer: Any, value: Any) -> bytes:
    raw = serializer.serialize(type(serializer).__name__, value)  # a subject of its own
    assert isinstance(raw, bytes)
    return raw


def test_avro_is_shown_as_json_with_its_masks(url: str) -> None:
    raw = serialized(AvroSerializer(RECORD, schema_registry_url=url, is_key=False), {"id": 5, "card": "4111", "raw": b"\xff"})
    value = shown(url, raw)
    assert (value.form, json.loads(value.text)) == ("avro", {"id": 5, "card": "4111", "raw": "0xff"})
    assert "4111" not in repr(shown(url, raw, masks=({"mask": "$.card"},)))
    assert message(raw).value.form == "hex"


def test_json_schema_and_protobuf_are_shown(url: str) -> None:
    from google.protobuf.struct_pb2 import Struct

    raw = serialized(JsonSchemaSerializer({"type": "object"}, schema_registry_url=url, is_key=False), {"a": 1.5})
    assert (shown(url, raw).form, shown(url, raw).data) == ("json schema", {"a": 1.5})
    struct = Struct()
    struct.update({"name": "Ann"})
    raw = serialized(ProtobufSerializer(schema_registry_url=url, is_key=False), struct)
    assert (shown(url, raw).form, shown(url, raw).data) == ("protobuf", {"name": "Ann"})


def test_an_unknown_schema_and_a_registry_that_is_down_are_notes(url: str) -> None:
    assert "no schema 99" in shown(url, b"\0\0\0\0\x63abc").note or shown(url, b"\0\0\0\0\x63abc", values="registry").note
    value = shown("http://127.0.0.1:1", b"\0\0\0\0\x05abc", values="registry")
    assert (value.form, "cannot be reached" in value.note) == ("hex", True)


def test_a_registry_that_failed_is_not_asked_for_each_message(url: str) -> None:
    registry = CachedSchemaRegistry({"schema.registry.url": "http://127.0.0.1:1"})
    with pytest.raises(NotDecoded):
        registry.ask_kind(1)
    with pytest.raises(NotDecoded, match="cannot be reached"):
        registry.known_kind(2)


def test_a_schema_that_contains_itself_is_decoded_only_as_far_as_the_stack_allows(url: str) -> None:
    raw = serialized(AvroSerializer(LINKED, schema_registry_url=url, is_key=False), {"next": {"next": None}})
    assert shown(url, raw).data == {"next": {"next": None}}
    value = shown(url, raw[:5] + b"\2" * 1_000_000 + b"\0", values="registry")  # fastavro would crash the process
    assert (value.form, "nests more than 1,000 levels deep" in value.note) == ("hex", True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": "null"},
        {
            "type": "record",
            "name": "A",
            "fields": [{"name": "x", "type": {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}}],
        },
        ["null", {"type": "map", "values": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}}],
    ],
)
def test_arrays_of_nothing_are_refused(schema: Any) -> None:
    with pytest.raises(NotDecoded, match="no bytes"):
        check_avro([schema])
