"""Serializers with a schema registry: what they write Confluent's read and the other way round, and how they meet a registry."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema as TheirSchema,
)
from confluent_kafka.schema_registry import (
    SchemaRegistryClient as TheirClient,
)
from confluent_kafka.schema_registry import (
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.client.errors import SerializationError
from barnabas.client.serialization import resolve_serializer
from barnabas.client.serialization.avro import AvroDeserializer, AvroSerializer
from barnabas.client.serialization.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
from barnabas.client.serialization.protobuf import ProtobufDeserializer, ProtobufSerializer
from barnabas.client.serialization.registry import JSON, Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from barnabas.client.serialization.schema_serde import record_name_strategy, topic_record_name_strategy
from barnabas.config_def import InvalidConfig
from tests import certificates, schema_registry
from tests.integration.client.protobuf_messages import Line, Order, Place, Refund
from tests.schema_registry import Registry

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "to", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
AN_ORDER = {"id": 7, "to": "Paphos", "at": datetime(2026, 1, 2, tzinfo=UTC), "price": Decimal("12.50")}
PERSON = {"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
THEIR_SETTINGS = {"subject.name.strategy": topic_subject_name_strategy}


@pytest.fixture
def registry() -> Generator[Registry, None, None]:
    with schema_registry.running() as running:
        yield running


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"schema.registry.url": registry.url})


@pytest.fixture
def their_client(registry: Registry) -> Generator[TheirClient, None, None]:
    with TheirClient({"url": registry.url}) as made:
        yield made


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_avro_is_written_as_confluents_client_writes_it(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    ours = AvroSerializer(ORDER, registry=client).serialize("orders", AN_ORDER)
    theirs = TheirAvroSerializer(their_client, json.dumps(ORDER), conf=THEIR_SETTINGS)(AN_ORDER, value_of("orders"))
    assert ours is not None and ours[:5] == b"\0\0\0\0\1"
    assert ours == theirs


def test_avro_is_read_in_both_directions(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    ours = AvroSerializer(ORDER, registry=client).serialize("orders", AN_ORDER)
    assert TheirAvroDeserializer(their_client)(ours, value_of("orders")) == AN_ORDER
    theirs = TheirAvroSerializer(their_client, json.dumps(ORDER), conf=THEIR_SETTINGS)(AN_ORDER, value_of("orders"))
    assert AvroDeserializer(registry=client).deserialize("orders", theirs) == AN_ORDER


@pytest.mark.parametrize("value", ["text", b"\0\1\2", 7, -1.5, True])
def test_primitives_need_no_schema(client: SchemaRegistryClient, their_client: TheirClient, value: Any) -> None:
    written = AvroSerializer(registry=client).serialize("plain", value)
    assert AvroDeserializer(registry=client).deserialize("plain", written) == value
    assert TheirAvroDeserializer(their_client)(written, value_of("plain")) == value


def test_bare_bytes_are_written_without_a_length_as_by_confluent(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    schema = '{"type": "bytes"}'
    ours = AvroSerializer(schema, registry=client).serialize("plain", b"abc")
    assert ours == TheirAvroSerializer(their_client, schema, conf=THEIR_SETTINGS)(b"abc", value_of("plain"))


def test_an_avro_schema_may_refer_to_others_that_share_one(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    money = Schema('{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}')
    client.register("money", money)
    to_money = (SchemaReference("shop.Money", "money", 1),)
    for name in ("Price", "Tax"):
        text = {"type": "record", "name": name, "namespace": "shop", "fields": [{"name": "sum", "type": "shop.Money"}]}
        client.register(name, Schema(json.dumps(text), references=to_money))
    bill = {
        "type": "record",
        "name": "Bill",
        "namespace": "shop",
        "fields": [{"name": "price", "type": "shop.Price"}, {"name": "tax", "type": "shop.Tax"}],
    }
    schema = Schema(json.dumps(bill), references=(SchemaReference("shop.Price", "Price", 1), SchemaReference("shop.Tax", "Tax", 1)))
    value = {"price": {"sum": {"cents": 100}}, "tax": {"sum": {"cents": 19}}}
    written = AvroSerializer(schema, registry=client).serialize("bills", value)
    assert AvroDeserializer(registry=client).deserialize("bills", written) == value
    assert TheirAvroDeserializer(their_client)(written, value_of("bills")) == value


def test_a_reader_schema_fills_in_what_the_writer_did_not_know(client: SchemaRegistryClient) -> None:
    old = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}
    new = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "?"}]}
    written = AvroSerializer(old, registry=client).serialize("t", {"a": 1})
    assert AvroDeserializer(new, registry=client).deserialize("t", written) == {"a": 1, "b": "?"}
    client.register("t-value", Schema(json.dumps(new)))
    assert AvroDeserializer(registry=client, use_latest_version=True).deserialize("t", written) == {"a": 1, "b": "?"}


def test_objects_become_dicts_and_back(client: SchemaRegistryClient) -> None:
    @dataclass
    class Point:
        x: int

    schema = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    written = AvroSerializer(schema, registry=client, to_dict=vars).serialize("points", Point(3))
    assert AvroDeserializer(registry=client, from_dict=lambda fields: Point(**fields)).deserialize("points", written) == Point(3)


@pytest.mark.parametrize("value", [{"id": "seven"}, {}, "text", 7])
def test_what_does_not_fit_the_avro_schema_is_refused(client: SchemaRegistryClient, value: Any) -> None:
    with pytest.raises(SerializationError, match="Avro"):
        AvroSerializer(ORDER, registry=client).serialize("orders", value)


@pytest.mark.parametrize(
    "schema", ["{", '{"type":"record"}', '"nothing"', '{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}']
)
def test_what_is_no_avro_schema_is_refused(client: SchemaRegistryClient, schema: str) -> None:
    with pytest.raises(SerializationError):
        AvroSerializer(schema, registry=client).serialize("t", {})


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0", b"\2\0\0\0\1", b"\1\0\0", b"\0\0\0\0\1", b"\0\0\0\0\1\xff\xff\xff", b"\0\0\0\0\x63ab"]
)
def test_bytes_that_are_none_of_ours_are_refused(client: SchemaRegistryClient, data: bytes) -> None:
    AvroSerializer(ORDER, registry=client).serialize("orders", AN_ORDER)
    with pytest.raises(SerializationError):
        AvroDeserializer(registry=client).deserialize("orders", data)


def test_json_is_read_in_both_directions(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    person = {"name": "Joseph"}
    ours = JsonSchemaSerializer(PERSON, registry=client).serialize("people", person)
    assert ours == b'\0\0\0\0\1{"name":"Joseph"}'
    assert JSONDeserializer(json.dumps(PERSON), schema_registry_client=their_client)(ours, value_of("people")) == person
    theirs = JSONSerializer(json.dumps(PERSON), their_client, conf=THEIR_SETTINGS)(person, value_of("people"))
    assert JsonSchemaDeserializer(registry=client).deserialize("people", theirs) == person


def test_json_that_does_not_fit_is_refused_both_ways_unless_told_otherwise(client: SchemaRegistryClient) -> None:
    serializer = JsonSchemaSerializer(PERSON, registry=client)
    with pytest.raises(SerializationError, match="at name: 7 is not of type 'string'"):
        serializer.serialize("people", {"name": 7})
    written = JsonSchemaSerializer(PERSON, registry=client, json_fail_invalid_schema=False).serialize("people", {"name": 7})
    with pytest.raises(SerializationError, match="at name"):
        JsonSchemaDeserializer(registry=client).deserialize("people", written)
    assert JsonSchemaDeserializer(registry=client, json_fail_invalid_schema="false").deserialize("people", written) == {"name": 7}


def test_a_json_schema_may_refer_to_another(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    client.register("person", Schema(json.dumps(PERSON), JSON))
    team = Schema(
        '{"type":"array","items":{"$ref":"http://shop/person.json"}}', JSON, (SchemaReference("http://shop/person.json", "person", 1),)
    )
    written = JsonSchemaSerializer(team, registry=client).serialize("teams", [{"name": "Joseph"}])
    assert JsonSchemaDeserializer(registry=client).deserialize("teams", written) == [{"name": "Joseph"}]
    with pytest.raises(SerializationError, match="0/name"):
        JsonSchemaSerializer(team, registry=client).serialize("teams", [{"name": 7}])


def test_a_json_schema_is_never_looked_for_in_the_web(client: SchemaRegistryClient) -> None:
    with pytest.raises(SerializationError, match="cannot be found"):
        JsonSchemaSerializer({"$ref": "http://127.0.0.1:1/person.json"}, registry=client).serialize("t", {})


@pytest.mark.parametrize("schema", ["{", "7", '{"type":"nothing"}'])
def test_what_is_no_json_schema_is_refused(client: SchemaRegistryClient, schema: str) -> None:
    with pytest.raises(SerializationError):
        JsonSchemaSerializer(schema, registry=client).serialize("t", {})


MESSAGES = [
    Order(id=7, to=Place(city="Paphos"), line=Line(article="fig", pieces=3)),
    Line(article="fig"),
    Refund(id=1),
    Place(city="Salamis"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.DESCRIPTOR.full_name)
def test_protobuf_is_written_as_confluents_client_writes_it(registry: Registry, message: Any) -> None:
    """In registries of their own, for the order in which imports get their numbers counts too."""
    ours = ProtobufSerializer(registry=SchemaRegistryClient({"schema.registry.url": registry.url})).serialize("shop", message)
    with schema_registry.running() as other, TheirClient({"url": other.url}) as their_client:
        theirs = TheirProtobufSerializer(type(message), their_client, conf={**THEIR_SETTINGS, "use.deprecated.format": False})
        assert ours == theirs(message, value_of("shop"))
        assert registry.subjects == other.subjects


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.DESCRIPTOR.full_name)
def test_protobuf_is_read_in_both_directions(client: SchemaRegistryClient, their_client: TheirClient, message: Any) -> None:
    ours = ProtobufSerializer(registry=client).serialize("shop", message)
    their_deserializer = TheirProtobufDeserializer(type(message), {"use.deprecated.format": False}, their_client)
    assert their_deserializer(ours, value_of("shop")) == message
    theirs = TheirProtobufSerializer(type(message), their_client, conf={**THEIR_SETTINGS, "use.deprecated.format": False})(
        message, value_of("shop")
    )
    assert ProtobufDeserializer(type(message), registry=client).deserialize("shop", theirs) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.DESCRIPTOR.full_name)
def test_a_protobuf_message_is_read_without_its_class(client: SchemaRegistryClient, message: Any) -> None:
    read = ProtobufDeserializer(registry=client).deserialize("shop", ProtobufSerializer(registry=client).serialize("shop", message))
    assert read is not None
    assert read.DESCRIPTOR.full_name == message.DESCRIPTOR.full_name
    assert read.SerializeToString() == message.SerializeToString()


def test_a_protobuf_message_is_found_in_the_registrys_latest_schema(client: SchemaRegistryClient) -> None:
    first = ProtobufSerializer(registry=client).serialize("shop", Refund(id=1))
    assert ProtobufSerializer(registry=client, use_latest_version=True).serialize("shop", Refund(id=1)) == first


def test_protobuf_refuses_what_is_no_such_message(client: SchemaRegistryClient) -> None:
    with pytest.raises(SerializationError, match="a Protobuf message"):
        ProtobufSerializer(registry=client).serialize("shop", {"id": 7})
    with pytest.raises(SerializationError, match="a Refund"):
        ProtobufSerializer(Refund, registry=client).serialize("shop", Order(id=7))


@pytest.mark.parametrize("rest", [b"", b"\x04\x00", b"\xff\xff\xff\xff\xff\xff", b"\x02\x63", b"\x01", b"\x00\xff"])
def test_protobuf_bytes_that_lead_nowhere_are_refused(client: SchemaRegistryClient, rest: bytes) -> None:
    ProtobufSerializer(registry=client).serialize("shop", Place(city="Paphos"))
    with pytest.raises(SerializationError):
        ProtobufDeserializer(registry=client).deserialize("shop", b"\0\0\0\0\1" + rest)


def test_the_schema_may_be_named_in_a_header(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    headers: Any = [("other", b"x")]
    ours = AvroSerializer(ORDER, registry=client, schema_id_serializer="header").serialize("orders", AN_ORDER, headers)
    their_headers: Any = []
    settings = {**THEIR_SETTINGS, "schema.id.serializer": header_schema_id_serializer}
    theirs = TheirAvroSerializer(their_client, json.dumps(ORDER), conf=settings)(AN_ORDER, value_of("orders", their_headers))
    assert (ours, headers[1:]) == (theirs, their_headers)
    assert AvroDeserializer(registry=client).deserialize("orders", theirs, their_headers) == AN_ORDER
    assert TheirAvroDeserializer(their_client)(ours, value_of("orders", headers)) == AN_ORDER


def test_a_protobuf_header_holds_the_path_to_the_message_too(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    headers: Any = []
    message = Line(article="fig")
    ours = ProtobufSerializer(registry=client, schema_id_serializer="header").serialize("shop", message, headers)
    assert ours == message.SerializeToString()
    assert TheirProtobufDeserializer(Line, {"use.deprecated.format": False}, their_client)(ours, value_of("shop", headers)) == message
    read = ProtobufDeserializer(registry=client).deserialize("shop", ours, headers)
    assert read is not None and read.SerializeToString() == ours


def test_without_headers_or_guids_a_header_is_refused(client: SchemaRegistryClient) -> None:
    with pytest.raises(SerializationError, match="no headers"):
        AvroSerializer(ORDER, registry=client, schema_id_serializer="header").serialize("orders", AN_ORDER)
    with schema_registry.running(tells_all=False) as old:
        older = SchemaRegistryClient({"schema.registry.url": old.url})
        with pytest.raises(SerializationError, match="no GUIDs"):
            AvroSerializer(ORDER, registry=older, schema_id_serializer="header").serialize("orders", AN_ORDER, [])


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (None, "orders-value"),
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", "orders-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "shop.Order"),
        (record_name_strategy, "shop.Order"),
        (topic_record_name_strategy, "orders-shop.Order"),
        (lambda topic, is_key, name: f"mine:{topic}/{is_key}/{name}", "mine:orders/False/shop.Order"),
    ],
)
def test_the_subject_is_named_by_its_strategy(registry: Registry, client: SchemaRegistryClient, strategy: Any, subject: str) -> None:
    AvroSerializer(ORDER, registry=client, value_subject_name_strategy=strategy).serialize("orders", AN_ORDER)
    assert client.subjects() == [subject]


def test_a_strategy_that_needs_a_name_says_that_there_is_none(client: SchemaRegistryClient) -> None:
    with pytest.raises(SerializationError, match=r"value\.subject\.name\.strategy"):
        AvroSerializer('["null","string"]', registry=client, subject_name_strategy=record_name_strategy).serialize("t", "x")


def test_record_names_are_those_of_confluent(client: SchemaRegistryClient, their_client: TheirClient) -> None:
    TheirAvroSerializer(their_client, json.dumps(ORDER), conf={"subject.name.strategy": record_subject_name_strategy})(
        AN_ORDER, value_of("orders")
    )
    before = client.subjects()
    AvroSerializer(ORDER, registry=client, subject_name_strategy=record_name_strategy).serialize("orders", AN_ORDER)
    assert client.subjects() == before == ["shop.Order"]


def test_keys_have_subjects_of_their_own(registry: Registry, client: SchemaRegistryClient) -> None:
    resolve_serializer(AvroSerializer(registry=client), is_key=True).serialize("orders", "k")
    resolve_serializer(AvroSerializer(registry=client), is_key=False).serialize("orders", "v")
    assert client.subjects() == ["orders-key", "orders-value"]


def test_one_instance_cannot_serve_keys_and_values(client: SchemaRegistryClient) -> None:
    shared = AvroSerializer(registry=client)
    resolve_serializer(shared, is_key=True)
    with pytest.raises(InvalidConfig, match="make one for each"):
        resolve_serializer(shared, is_key=False)


def test_a_serializer_is_made_from_a_clients_settings(registry: Registry) -> None:
    settings = {"schema.registry.url": f"http://127.0.0.1:1,{registry.url}", "value.subject.name.strategy": record_name_strategy}
    resolve_serializer("io.confluent.kafka.serializers.KafkaAvroSerializer", settings).serialize("t", "text")
    assert list(registry.subjects) == ["string"]


def test_nothing_is_registered_where_that_is_switched_off(registry: Registry, client: SchemaRegistryClient) -> None:
    careful = AvroSerializer(ORDER, registry=client, auto_register_schemas=False)
    with pytest.raises(SchemaRegistryError) as refused:
        careful.serialize("orders", AN_ORDER)
    assert (refused.value.http_status, refused.value.error_code) == (404, 40401)
    AvroSerializer(ORDER, registry=client).serialize("orders", AN_ORDER)
    assert careful.serialize("orders", AN_ORDER) is not None


def test_the_latest_schema_or_one_by_number_can_be_asked_for(client: SchemaRegistryClient) -> None:
    schema = client.register("t-value", Schema('{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}'))
    for settings in ({"use.latest.version": True}, {"use.schema.id": schema.id}):
        serializer = AvroSerializer(registry=client, **settings)
        assert serializer.serialize("t", {"a": 1}) == bytes((0, 0, 0, 0, schema.id, 2))


def test_registering_and_taking_the_latest_exclude_each_other(client: SchemaRegistryClient) -> None:
    with pytest.raises(InvalidConfig, match=r"auto\.register\.schemas"):
        AvroSerializer(ORDER, registry=client, use_latest_version=True, auto_register_schemas=True)


def test_the_latest_schema_is_asked_for_again_after_a_time(registry: Registry) -> None:
    now = 0.0
    client = SchemaRegistryClient({"schema.registry.url": registry.url, "latest.cache.ttl.sec": 10}, now=lambda: now)
    client.register("t", Schema('"string"'))
    assert client.latest("t").version == 1
    TheirClient({"url": registry.url}).set_compatibility("t", "NONE")
    TheirClient({"url": registry.url}).register_schema("t", TheirSchema('"long"', "AVRO"))
    assert client.latest("t").version == 1
    now = 10.0
    assert client.latest("t").version == 2


def test_a_schema_is_asked_for_once(registry: Registry, client: SchemaRegistryClient) -> None:
    serializer, deserializer = AvroSerializer(ORDER, registry=client), AvroDeserializer(registry=client)
    for _ in range(3):
        deserializer.deserialize("orders", serializer.serialize("orders", AN_ORDER))
    assert registry.requests == ["POST /subjects/orders-value/versions", "GET /schemas/ids/1"]


def test_who_knows_a_schema_does_not_wait_for_one_who_asks_for_another(client: SchemaRegistryClient) -> None:
    known = client.register("known", Schema('"string"'))
    answering, answered = threading.Event(), threading.Event()
    send_request = client._rest.request

    def slowly(*arguments: Any, **more: Any) -> Any:
        answering.set()
        assert answered.wait(30)
        return send_request(*arguments, **more)

    client._rest.request = slowly  # type: ignore[method-assign]
    other = threading.Thread(target=client.register, args=("other", Schema('"long"')))
    other.start()
    assert answering.wait(30)
    assert client.register("known", Schema('"string"')) == known
    answered.set()
    other.join()


def test_threads_that_ask_for_the_same_ask_once(registry: Registry, client: SchemaRegistryClient) -> None:
    threads = [threading.Thread(target=client.register, args=("t", Schema('"string"'))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.requests) == 1


def test_an_incompatible_schema_is_refused_by_the_registry(client: SchemaRegistryClient) -> None:
    client.register("t-value", Schema('{"type":"record","name":"A","fields":[]}'))
    needs_more = Schema('{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}')
    assert not client.is_compatible("t-value", needs_more)
    with pytest.raises(SchemaRegistryError, match="incompatible") as refused:
        AvroSerializer(needs_more, registry=client).serialize("t", {"a": 1})
    assert refused.value.http_status == 409
    client.set_compatibility("none", "t-value")
    assert client.compatibility("t-value") == "NONE" and client.compatibility() == "BACKWARD"
    assert client.register("t-value", needs_more).version == 2


def test_normalized_schemas_are_the_same_whatever_their_order(client: SchemaRegistryClient) -> None:
    one, other = Schema('{"type":"record","name":"A","fields":[]}'), Schema('{"name":"A","type":"record","fields":[]}')
    assert client.register("t", one, normalize=True).id == client.register("t", other, normalize=True).id


def test_a_schema_with_rules_is_refused_both_ways_unless_they_are_to_be_ignored(registry: Registry) -> None:
    """A rule may say to encrypt a field."""
    written = AvroSerializer(registry=SchemaRegistryClient({"schema.registry.url": registry.url})).serialize("t", "secret")
    registry.entries[0].rules = {"domainRules": [{"name": "encrypt", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD"}]}
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    with pytest.raises(SerializationError, match=r"rules\.ignore"):
        AvroSerializer(registry=client).serialize("t", "secret")
    with pytest.raises(SerializationError, match=r"rules\.ignore"):
        AvroDeserializer(registry=client).deserialize("t", written)
    assert AvroSerializer(registry=client, rules_ignore=True).serialize("t", "secret") == written
    assert AvroDeserializer(registry=client, rules_ignore=True).deserialize("t", written) == "secret"


def test_subjects_are_listed_and_deleted(client: SchemaRegistryClient) -> None:
    client.register("a/b c", Schema('"string"'))
    assert (client.subjects(), client.versions("a/b c")) == (["a/b c"], [1])
    assert client.delete_version("a/b c", 1) == 1
    with pytest.raises(SchemaRegistryError, match="not found"):
        client.versions("a/b c")
    client.register("gone", Schema('"string"'))
    assert client.delete_subject("gone", permanent=True) == [1]
    assert client.subjects() == []


@pytest.mark.parametrize(
    "settings",
    [
        {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "joseph:se:cret"},
        {"basic.auth.credentials.source": "USER_INFO", "schema.registry.basic.auth.user.info": "joseph:se:cret"},
        {"schema.registry.url": "http://joseph:se%3Acret@{}"},
        {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "joseph", "sasl.password": "se:cret"},
        {
            "basic.auth.credentials.source": "SASL_INHERIT",
            "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="joseph" password="se:cret";',
        },
    ],
)
def test_a_name_and_password_are_given(settings: dict[str, str]) -> None:
    with schema_registry.running(credentials="joseph:se:cret") as guarded:
        url = settings.get("schema.registry.url", "http://{}").format(guarded.url.removeprefix("http://"))
        assert SchemaRegistryClient({**settings, "schema.registry.url": url}).subjects() == []
        with pytest.raises(SchemaRegistryError, match="Unauthorized"):
            SchemaRegistryClient({"schema.registry.url": guarded.url}).subjects()


def test_a_token_is_asked_for_with_each_request(registry: Registry) -> None:
    paths: list[str] = []

    def token() -> str:
        paths.append("token")
        return "t"

    settings = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": token}
    client = SchemaRegistryClient({**settings, "schema.registry.url": registry.url})
    client.subjects()
    client.subjects()
    assert paths == ["token", "token"]


def test_a_registry_is_spoken_to_through_tls_with_a_certificate_on_both_sides(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(made.authority))
    tls.load_cert_chain(made.server_store)
    tls.verify_mode = ssl.CERT_REQUIRED
    with schema_registry.running(tls=tls) as registry:
        settings = {
            "schema.registry.url": registry.url,
            "schema.registry.ssl.truststore.location": str(made.authority),
            "schema.registry.ssl.keystore.location": str(made.encrypted_client_store),
            "schema.registry.ssl.key.password": certificates.PASSWORD,
            "max.retries": 0,
        }
        assert SchemaRegistryClient(settings).subjects() == []
        with pytest.raises(SchemaRegistryError, match="cannot be reached"):
            SchemaRegistryClient({**settings, "schema.registry.ssl.truststore.location": str(made.stranger)}).subjects()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_stumbles_is_asked_again(registry: Registry, status: int) -> None:
    client = SchemaRegistryClient({"schema.registry.url": registry.url, "retries.wait.ms": 1})
    registry.failures += [status, status]
    assert client.subjects() == []


def test_a_registry_that_stays_down_is_told_with_its_address(registry: Registry) -> None:
    client = SchemaRegistryClient({"schema.registry.url": "http://127.0.0.1:1", "retries.wait.ms": 1})
    with pytest.raises(SchemaRegistryError, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        client.subjects()
    registry.failures += [500] * 4
    with pytest.raises(SchemaRegistryError, match="backend data store"):
        SchemaRegistryClient({"schema.registry.url": registry.url, "retries.wait.ms": 1}).subjects()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"schema.registry.url": ""},
        {"schema.registry.url": "localhost:8081"},
        {"schema.registry.url": "http://h:port"},
        {"schema.registry.url": "http://h", "basic.auth.credentials.source": "USER_INFO"},
        {"schema.registry.url": "http://h", "basic.auth.credentials.source": "GUESS"},
        {"schema.registry.url": "http://h", "basic.auth.credentials.source": "SASL_INHERIT"},
        {"schema.registry.url": "http://h", "bearer.auth.credentials.source": "STATIC_TOKEN"},
        {"schema.registry.url": "http://h", "schema.registry.ssl.truststore.location": "/no/such/file.pem"},
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        SchemaRegistryClient(settings)


def test_a_serializer_without_a_registry_says_what_to_set() -> None:
    with pytest.raises(SerializationError, match=r"schema\.registry\.url"):
        AvroSerializer(ORDER).serialize("t", AN_ORDER)
