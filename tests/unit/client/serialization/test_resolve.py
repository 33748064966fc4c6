"""Whatever a configuration holds, the right serializer comes out of it, configured if the client made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.client import serialization
from barnabas.client.serialization import BaseSerializer, Headers, resolve_deserializer, resolve_serializer
from barnabas.config_def import InvalidConfig

JAVA = "org.apache.kafka.common.serialization."


class Company(BaseSerializer[Any]):
    """A user's own."""

    seen: tuple[dict[str, Any], bool] | None = None

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.seen = (dict(configs), is_key)

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        return b"company"


def shout(value: str) -> bytes:
    return value.upper().encode()


@pytest.mark.parametrize("kind", ["Boolean", "Bytes", "Double", "Float", "Integer", "Long", "Short", "String", "UUID", "Void"])
def test_javas_names_mean_ours(kind: str) -> None:
    assert type(resolve_serializer(f"{JAVA}{kind}Serializer")) is getattr(serialization, f"{kind}Serializer")
    assert type(resolve_deserializer(f"{JAVA}{kind}Deserializer")) is getattr(serialization, f"{kind}Deserializer")


@pytest.mark.parametrize("kind", ["ByteArray", "ByteBuffer"])
def test_javas_kinds_of_bytes_are_bytes(kind: str) -> None:
    assert type(resolve_serializer(f"{JAVA}{kind}Serializer")) is serialization.BytesSerializer
    assert type(resolve_deserializer(f"{JAVA}{kind}Deserializer")) is serialization.BytesDeserializer


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("io.confluent.kafka.serializers.KafkaJsonSerializer", "JsonSerializer"),
        ("io.confluent.kafka.serializers.KafkaAvroSerializer", "AvroSerializer"),
        ("io.confluent.kafka.serializers.json.KafkaJsonSchemaSerializer", "JsonSchemaSerializer"),
        ("io.confluent.kafka.serializers.protobuf.KafkaProtobufSerializer", "ProtobufSerializer"),
    ],
)
def test_confluents_names_mean_ours(name: str, ours: str) -> None:
    settings = {"schema.registry.url": "http://localhost:1"}
    assert type(resolve_serializer(name, settings)).__name__ == ours
    assert type(resolve_deserializer(name.replace("Serializer", "Deserializer"), settings)).__name__ == ours.replace("Ser", "Deser")


def test_nothing_means_bytes() -> None:
    assert type(resolve_serializer(None)) is serialization.BytesSerializer
    assert type(resolve_deserializer(None)) is serialization.BytesDeserializer


def test_a_class_is_made_and_configured() -> None:
    made = resolve_serializer(Company, {"company": "x"}, is_key=True)
    assert isinstance(made, Company)
    assert made.seen == ({"company": "x"}, True)


@pytest.mark.parametrize("path", [f"{__name__}.Company", f"{__name__}:Company"])
def test_a_dotted_name_is_imported_and_configured(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, __name__, __import__("types").SimpleNamespace(Company=Company))
    made = resolve_serializer(path, {})
    assert isinstance(made, Company)
    assert made.seen == ({}, False)


def test_an_instance_is_used_as_it_is() -> None:
    given = Company()
    assert resolve_serializer(given, {"company": "x"}) is given
    assert given.seen is None


def test_a_function_serializes_what_is_not_none() -> None:
    made = resolve_serializer(shout)
    assert made.serialize("t", "abc") == b"ABC"
    assert made.serialize("t", None) is None


def test_a_function_deserializes_what_is_not_none() -> None:
    made = resolve_deserializer(bytes.decode)
    assert made.deserialize("t", b"abc") == "abc"
    assert made.deserialize("t", None) is None


@pytest.mark.parametrize(
    "path",
    ["StringSerializer", "no.such.module.Serializer", "barnabas.client.serialization.NoSerializer", f"{JAVA}NoSerializer", "", "a..b"],
)
def test_a_name_that_leads_nowhere_is_refused_in_kafkas_words(path: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        resolve_serializer(path, is_key=True)
    assert str(refused.value) == f"Invalid value {path} for configuration key.serializer: Class {path} could not be found."


def test_a_deserializer_is_no_serializer() -> None:
    with pytest.raises(InvalidConfig, match="is not a serializer"):
        resolve_serializer(f"{JAVA}StringDeserializer")


def test_something_else_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"value\.deserializer"):
        resolve_deserializer(7)
