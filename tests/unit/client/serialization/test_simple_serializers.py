"""Kafka's own serializers: each value comes back, bytes are Java's, and what does not fit is refused."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client import serialization
from barnabas.client.errors import SerializationError
from barnabas.client.serialization import (
    BytesSerializer,
    JsonDeserializer,
    JsonSerializer,
    StringDeserializer,
    StringSerializer,
    UUIDSerializer,
)

KINDS = {
    "Bytes": st.binary(),
    "String": st.text(st.characters(exclude_categories=["Cs"])),
    "Short": st.integers(-(2**15), 2**15 - 1),
    "Integer": st.integers(-(2**31), 2**31 - 1),
    "Long": st.integers(-(2**63), 2**63 - 1),
    "Float": st.floats(width=32, allow_nan=False),
    "Double": st.floats(allow_nan=False),
    "Boolean": st.booleans(),
    "UUID": st.uuids(),
}
NAMES = [*KINDS, "Json", "List"]


def pair(name: str) -> tuple[Any, Any]:
    if name == "List":
        return serialization.ListSerializer(StringSerializer()), serialization.ListDeserializer(StringDeserializer())
    return getattr(serialization, f"{name}Serializer")(), getattr(serialization, f"{name}Deserializer")()


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_is_read_again(name: str) -> None:
    serializer, deserializer = pair(name)

    @given(KINDS[name])
    def holds(value: Any) -> None:
        assert deserializer.deserialize("t", serializer.serialize("t", value)) == value

    holds()


@pytest.mark.parametrize("name", NAMES)
def test_none_stays_none_both_ways(name: str) -> None:
    serializer, deserializer = pair(name)
    assert serializer.serialize("t", None) is None
    assert deserializer.deserialize("t", None) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_serializer_may_be_closed_more_than_once(name: str) -> None:
    for serializer in pair(name):
        serializer.close()
        serializer.close()


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("Short", -2, "fffe"),
        ("Integer", 1, "00000001"),
        ("Long", -1, "ffffffffffffffff"),
        ("Float", 1.5, "3fc00000"),
        ("Double", 1.5, "3ff8000000000000"),
        ("Boolean", True, "01"),
        ("String", "é", "c3a9"),
    ],
)
def test_bytes_are_those_of_java(name: str, value: object, written: str) -> None:
    assert pair(name)[0].serialize("t", value).hex() == written


def test_a_uuid_is_its_text() -> None:
    assert UUIDSerializer().serialize("t", uuid.UUID(int=10)) == b"00000000-0000-0000-0000-00000000000a"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Bytes", "text"),
        ("String", b"bytes"),
        ("Short", 2**15),
        ("Integer", 2**31),
        ("Long", 2**63),
        ("Long", 1.5),
        ("Float", 1e300),
        ("Double", "1"),
        ("Boolean", 1),
        ("UUID", "00000000-0000-0000-0000-00000000000a"),
        ("Json", object()),
        ("Json", float("nan")),
        ("List", "text"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name: str, value: object) -> None:
    with pytest.raises(SerializationError):
        pair(name)[0].serialize("t", value)


@pytest.mark.parametrize(("name", "size"), [("Short", 2), ("Integer", 4), ("Long", 8), ("Float", 4), ("Double", 8), ("Boolean", 1)])
@pytest.mark.parametrize("wrong", [-1, 1])
def test_data_of_the_wrong_size_is_refused_in_kafkas_words(name: str, size: int, wrong: int) -> None:
    with pytest.raises(SerializationError, match=f"^Size of data received by {name}Deserializer is not {size}$"):
        pair(name)[1].deserialize("t", bytes(size + wrong))


def test_a_byte_that_is_no_boolean_is_told_as_java_tells_it() -> None:
    with pytest.raises(SerializationError, match=r"^Unexpected byte received by BooleanDeserializer: -1$"):
        pair("Boolean")[1].deserialize("t", b"\xff")


def test_bytes_are_passed_on_and_buffers_copied() -> None:
    data = b"some bytes"
    assert BytesSerializer().serialize("t", data) is data
    assert BytesSerializer().serialize("t", memoryview(data)[5:]) == b"bytes"  # type: ignore[arg-type]


@pytest.mark.parametrize(("is_key", "encoding"), [(True, "utf-16-be"), (False, "iso-8859-1")])
def test_keys_and_values_may_have_encodings_of_their_own(is_key: bool, encoding: str) -> None:
    serializer, deserializer = StringSerializer(), StringDeserializer()
    serializer.configure({"key.serializer.encoding": "utf-16-be", "serializer.encoding": "iso-8859-1"}, is_key)
    deserializer.configure({"key.deserializer.encoding": "utf-16-be", "deserializer.encoding": "iso-8859-1"}, is_key)
    assert serializer.serialize("t", "é") == "é".encode(encoding)
    assert deserializer.deserialize("t", "é".encode(encoding)) == "é"


def test_an_encoding_that_nobody_knows_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"^Unsupported encoding klingon$"):
        StringSerializer().configure({"serializer.encoding": "klingon"}, False)


def test_text_the_encoding_cannot_hold_is_replaced_as_in_java_unless_told_otherwise() -> None:
    assert StringSerializer("ascii").serialize("t", "é") == b"?"
    assert StringDeserializer().deserialize("t", b"\xff") == "\ufffd"
    with pytest.raises(SerializationError):
        StringSerializer("ascii", errors="strict").serialize("t", "é")
    with pytest.raises(SerializationError):
        StringDeserializer(errors="strict").deserialize("t", b"\xff")


def test_a_uuid_that_is_none_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"^Error parsing data into UUID$"):
        pair("UUID")[1].deserialize("t", b"not a uuid")


def test_void_is_nothing() -> None:
    serializer, deserializer = pair("Void")
    assert serializer.serialize("t", "anything") is None
    assert deserializer.deserialize("t", None) is None
    with pytest.raises(SerializationError):
        deserializer.deserialize("t", b"")


def test_json_is_compact_and_reads_back() -> None:
    value = {"name": "é", "list": [1, 2.5, None, True]}
    written = JsonSerializer().serialize("t", value)
    assert written == '{"name":"é","list":[1,2.5,null,true]}'.encode()
    assert JsonDeserializer().deserialize("t", written) == value


def test_json_takes_objects_with_a_default() -> None:
    assert JsonSerializer(default=str).serialize("t", {"id": uuid.UUID(int=0)}) == b'{"id":"00000000-0000-0000-0000-000000000000"}'


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(SerializationError):
        JsonDeserializer().deserialize("t", data)
