"""Settings as Python has them: numbers, None, timedeltas; names as constants; types of keys and values."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas import client
from barnabas.client import Admin, AdminClientConfig, AsyncConsumer, AsyncProducer, Consumer, ConsumerConfig, Producer, ProducerConfig
from barnabas.client.admin.config import KEYS as ADMIN_KEYS
from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.config import KEYS as CONSUMER_KEYS
from barnabas.client.errors import ConfigException
from barnabas.client.producer.config import KEYS as PRODUCER_KEYS
from barnabas.client.producer.config import producer_config
from barnabas.client.producer.record import RecordMetadata
from tests import kafka


def producer(**settings: object) -> ClientConfig:
    return producer_config(None, {"bootstrap_servers": "localhost:9092"} | settings)


@pytest.mark.parametrize(("given", "name", "value"), [
    ({"acks": 1}, "acks", "1"),
    ({"acks": -1}, "acks", "-1"),
    ({"acks": 0}, "acks", "0"),
    ({"acks": None}, "acks", "-1"),
    ({"compression_type": None}, "compression.type", "none"),
    ({"linger_ms": None}, "linger.ms", 5),
    ({"linger_ms": timedelta(seconds=2)}, "linger.ms", 2000),
    ({"linger_ms": 20.0}, "linger.ms", 20),
    ({"buffer_memory": 64e6}, "buffer.memory", 64_000_000),
    ({"bootstrap_servers": ["a:1", "b:2"]}, "bootstrap.servers", ("a:1", "b:2")),
    ({"enable_idempotence": False}, "enable.idempotence", False),
])  # fmt: skip
def test_a_setting_takes_what_python_has_for_it(given: dict[str, object], name: str, value: object) -> None:
    assert producer(**given)[name] == value


def test_none_is_as_if_the_setting_were_not_there() -> None:
    assert not producer(acks=None).is_given("acks")
    with pytest.raises(ConfigException, match=r'^Missing required configuration "bootstrap\.servers" which has no default value\.$'):
        producer(bootstrap_servers=None)


@pytest.mark.parametrize(("given", "words"), [
    ({"acks": 2}, r"Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
    ({"acks": True}, r"Invalid value true for configuration acks: Expected value to be a string, but it was a bool"),
    ({"linger_ms": 0.5}, r"Invalid value 0\.5 for configuration linger\.ms: Expected value to be a 64-bit integer \(long\)"),
    ({"bootstrap_servers": "localhost"}, r"bootstrap\.servers: localhost: the port is missing, write localhost:9092"),
    ({"bootstrap_servers": ["a:1", "[::1]"]}, r"bootstrap\.servers: \[::1\]: the port is missing, write \[::1\]:9092"),
])  # fmt: skip
def test_a_wrong_value_is_refused_with_what_is_right(given: dict[str, object], words: str) -> None:
    with pytest.raises(client.ConfigException, match=words):
        producer(**given)


NAMES = [(ProducerConfig, PRODUCER_KEYS), (ConsumerConfig, CONSUMER_KEYS), (AdminClientConfig, ADMIN_KEYS)]


def constants(kind: type) -> dict[str, str]:
    return {name: value for name, value in vars(kind).items() if name.isupper()}


@pytest.mark.parametrize(("kind", "keys"), NAMES)
def test_constants_name_settings(kind: type, keys: dict[str, object]) -> None:
    assert set(constants(kind).values()) <= set(keys)
    assert kind.BOOTSTRAP_SERVERS_CONFIG == "bootstrap.servers"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "keys"), NAMES)
def test_constants_are_those_of_java(kind: type, keys: dict[str, object]) -> None:
    if shutil.which("javap") is None:
        pytest.skip("needs javap, of a JDK (Debian: apt-get install default-jdk-headless)")
    package = {"ProducerConfig": "producer", "ConsumerConfig": "consumer", "AdminClientConfig": "admin"}[kind.__name__]
    command = [
        "javap",
        "-public",
        "-constants",
        "-cp",
        f"{kafka.available(kafka.prepare)}/*",
        f"org.apache.kafka.clients.{package}.{kind.__name__}",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    java = dict(re.findall(r'String (\w+) = "(.*)";', printed))
    assert {name: value for name, value in java.items() if value in keys and not name.endswith("_DOC")}.items() <= constants(kind).items()


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def test_messages_name_methods_as_python_does() -> None:
    methods = {name for kind in (Producer, Consumer, Admin) for name in dir(kind) if "_" in name.strip("_") and not name.startswith("_")}
    java = {camel(name) for name in methods - {"client_id"}} | {"KafkaProducer", "KafkaConsumer", "KafkaAdminClient"}
    java_words = set()
    for path in Path(client.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        ]
        java_words |= {(path.name, word) for text in texts for word in re.findall(r"\w+", text) if word in java}
    assert java_words == set()


@pytest.mark.parametrize("kind", [Producer, AsyncProducer, Consumer, AsyncConsumer])
def test_a_client_has_types_for_keys_and_values(kind: type) -> None:
    assert kind[str, bytes].__origin__ is kind  # type: ignore[index]


TYPED = """
import json
from typing import assert_type
from barnabas.client import AsyncConsumer, AsyncProducer, Consumer, ConsumerRecord, Producer
from barnabas.client.serialization import StringDeserializer, StringSerializer

def sends(settings: dict[str, object]) -> None:
    producer = Producer(settings, key_serializer=str.encode, value_serializer=StringSerializer)
    assert_type(producer, Producer[str, str | None])  # as StringSerializer takes None, too
    producer.send("t", "value", key="key")
    producer.send("t", b"value")  # wrong
    Producer[str, bytes](settings).send("t", "value")  # wrong
    Producer(settings).send("t", {"any": "thing"}, key=1)

async def reads(settings: dict[str, object]) -> None:
    consumer = Consumer(settings, key_deserializer=bytes.decode, value_deserializer=StringDeserializer())
    assert_type(consumer, Consumer[str, str])
    later = AsyncConsumer(settings, value_deserializer=bytes.decode)
    async for record in later:
        assert_type(record.value, str | None)
    async with AsyncProducer(settings, key_serializer=str.encode) as producer:
        await producer.send("t", b"value", key=1)  # wrong
"""


def test_serializers_say_the_types_of_keys_and_values_to_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", str(program)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout.splitlines()
    wrong = [number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")]
    assert [int(line.split(":")[1]) for line in said if ": error:" in line] == wrong, said


@pytest.mark.parametrize(("metadata", "shown"), [
    (RecordMetadata("t", 0, 17, 1), "t-0@17"),
    (RecordMetadata("t", 0, -1, 1), "t-0"),
    (RecordMetadata("t", -1, -1, -1), "t"),
])  # fmt: skip
def test_what_is_not_known_of_a_record_is_not_shown(metadata: RecordMetadata, shown: str) -> None:
    assert str(metadata) == shown
