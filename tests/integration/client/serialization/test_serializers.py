"""Serializers in our own producer and consumer, through Apache Kafka and through our broker: what goes in as an object comes out as one."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import RecordDeserializationError, SerializationError
from barnabas.client.producer import Producer
from barnabas.client.serialization import BaseDeserializer, BaseSerializer, Headers
from barnabas.client.serialization.avro import AvroDeserializer, AvroSerializer
from barnabas.client.serialization.registry import Schema, SchemaRegistryClient
from barnabas.client.serialization.schema_serde import VALUE_HEADER
from barnabas.topic_partition import TopicPartition
from tests import schema_registry
from tests.broker import TopicMaker
from tests.integration.client.records import poll_until, produce
from tests.schema_registry import Registry

JAVA = "org.apache.kafka.common.serialization."
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}, {"name": "name", "type": "string"}]}
A_PLACE = {"x": 1, "name": "Salamis"}


@dataclass
class Company:
    name: str
    address: str


class CompanySerializer(BaseSerializer[Company]):
    """Two texts, each behind its length: the example of a serializer of one's own."""

    def serialize(self, topic: str, data: Company | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        name, address = data.name.encode(), data.address.encode()
        return struct.pack(f">i{len(name)}si{len(address)}s", len(name), name, len(address), address)


class CompanyDeserializer(BaseDeserializer[Company]):
    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Company | None:
        if data is None:
            return None
        if len(data) < 8:
            raise SerializationError("Size of data received by CompanyDeserializer is shorter than expected.")
        (length,) = struct.unpack_from(">i", data)
        return Company(data[4 : 4 + length].decode(), data[8 + length :].decode())


@pytest.fixture
def registry() -> Generator[Registry, None, None]:
    with schema_registry.running() as running:
        yield running


def send(bootstrap: str, topic: str, *records: tuple[Any, Any], **settings: Any) -> None:
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        for delivery in [producer.send(topic, value, key) for key, value in records]:
            delivery.result(30)


def read(bootstrap: str, topic: str, count: int, **settings: Any) -> list[Any]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return poll_until(consumer, count)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("ByteArray", b"\0\xff"),
        ("String", "Βαρνάβας"),
        ("Short", -7),
        ("Integer", 2**31 - 1),
        ("Long", -(2**63)),
        ("Float", 1.5),
        ("Double", 1e300),
        ("Boolean", True),
        ("UUID", uuid.UUID(int=7)),
    ],
)
def test_what_goes_in_comes_out(bootstrap: str, new_topic: TopicMaker, kind: str, value: Any) -> None:
    topic = new_topic("serialized")
    send(
        bootstrap, topic, (value, value), (None, None), key_serializer=f"{JAVA}{kind}Serializer", value_serializer=f"{JAVA}{kind}Serializer"
    )
    records = read(bootstrap, topic, 2, key_deserializer=f"{JAVA}{kind}Deserializer", value_deserializer=f"{JAVA}{kind}Deserializer")
    assert [(record.key, record.value) for record in records] == [(value, value), (None, None)]
    assert (records[1].serialized_key_size, records[1].serialized_value_size) == (-1, -1)


def test_a_serializer_of_ones_own(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, company = new_topic("companies"), Company("Encore", "Salamis")
    send(bootstrap, topic, (None, company), value_serializer=CompanySerializer)
    (record,) = read(bootstrap, topic, 1, value_deserializer=CompanyDeserializer())
    assert record.value == company


def test_functions_are_serializers(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("functions")
    send(bootstrap, topic, ("k", "v"), (None, "w"), key_serializer=str.encode, value_serializer=lambda text: text.upper().encode())
    records = read(bootstrap, topic, 2, key_deserializer=bytes.decode, value_deserializer=lambda data: data.decode() + "!")
    assert [(record.key, record.value) for record in records] == [("k", "V!"), (None, "W!")]


def test_a_value_of_the_wrong_kind_is_not_sent(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("refused")
    with Producer(bootstrap_servers=bootstrap, value_serializer=f"{JAVA}LongSerializer") as producer, pytest.raises(SerializationError):
        producer.send(topic, "no number").result(30)


def test_a_record_that_cannot_be_read_says_where_it_is_and_can_be_passed_over(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("poisoned")
    partition = TopicPartition(topic, 0)
    produce(bootstrap, topic, [bytes(8), b"poison", bytes(8)])
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer=f"{JAVA}LongDeserializer") as consumer:
        consumer.assign([partition])
        values: list[Any] = []
        with pytest.raises(RecordDeserializationError) as refused:
            while True:
                values += poll_until(consumer, 1)
        assert (len(values), refused.value.topic_partition, refused.value.offset) == (1, partition, 1)
        consumer.seek(partition, refused.value.offset + 1)
        assert [(record.offset, record.value) for record in poll_until(consumer, 1)] == [(2, 0)]


def test_avro_by_the_settings_of_the_clients(bootstrap: str, new_topic: TopicMaker, registry: Registry) -> None:
    topic = new_topic("avro")
    SchemaRegistryClient({"schema.registry.url": registry.url}).register(f"{topic}-value", Schema(json.dumps(PLACE)))
    avro, settings = "io.confluent.kafka.serializers.KafkaAvro", {"schema.registry.url": registry.url, "use.latest.version": True}
    with Producer({"bootstrap.servers": bootstrap, "value.serializer": f"{avro}Serializer", **settings}) as producer:
        producer.send(topic, A_PLACE).result(30)
    with Consumer({"bootstrap.servers": bootstrap, "value.deserializer": f"{avro}Deserializer", **settings}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        assert [record.value for record in poll_until(consumer, 1)] == [A_PLACE]


def test_confluents_consumer_reads_our_avro_from_the_header_too(bootstrap: str, new_topic: TopicMaker, registry: Registry) -> None:
    topic = new_topic("headers")
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    for place in ("prefix", "header"):
        send(bootstrap, topic, (None, A_PLACE), value_serializer=AvroSerializer(PLACE, registry=client, schema_id_serializer=place))
    records = read(bootstrap, topic, 2, value_deserializer=AvroDeserializer(registry=client))
    assert [record.value for record in records] == [A_PLACE, A_PLACE]
    assert [[name for name, _ in record.headers] for record in records] == [[], [VALUE_HEADER]]
    with TheirClient({"url": registry.url}) as their_client:
        theirs = DeserializingConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "value.deserializer": TheirAvroDeserializer(their_client),
            }
        )
        theirs.subscribe([topic])
        try:
            read_by_them: list[Any] = [message.value() for message in (theirs.poll(30), theirs.poll(30)) if message is not None]
        finally:
            theirs.close()
    assert read_by_them == [A_PLACE, A_PLACE]
