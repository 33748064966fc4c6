"""Kafka 4.2's defaults, and what it refuses; the answers were given by Apache Kafka 4.2.0 itself."""

from __future__ import annotations

import re

import pytest

from barnabas.client.config.config import ClientConfig
from barnabas.client.producer.config import producer_config
from barnabas.config_def import InvalidConfig


def configured(**settings: object) -> ClientConfig:
    return producer_config({"bootstrap.servers": "localhost:9092", **{name.replace("_", "."): value for name, value in settings.items()}})


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("acks", "-1"),
        ("enable.idempotence", True),
        ("linger.ms", 5),
        ("batch.size", 16384),
        ("buffer.memory", 33554432),
        ("max.block.ms", 60000),
        ("max.request.size", 1048576),
        ("retries", 2147483647),
        ("retry.backoff.ms", 100),
        ("delivery.timeout.ms", 120000),
        ("request.timeout.ms", 30000),
        ("compression.type", "none"),
        ("connections.max.idle.ms", 540000),
        ("receive.buffer.bytes", 32768),
        ("send.buffer.bytes", 131072),
        ("max.in.flight.requests.per.connection", 5),
        ("metadata.max.age.ms", 300000),
        ("metadata.max.idle.ms", 300000),
        ("transaction.timeout.ms", 60000),
        ("partitioner.adaptive.partitioning.enable", True),
        ("partitioner.availability.timeout.ms", 0),
        ("interceptor.classes", ()),
    ],
)
def test_defaults(name: str, default: object) -> None:
    assert configured()[name] == default


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"enable.idempotence": "true", "acks": "1"},
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.",
        ),
        ({"enable.idempotence": "true", "retries": "0"}, "Must set retries to non-zero when using the idempotent producer."),
        (
            {"max.in.flight.requests.per.connection": "6"},
            "To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most 5. Current value is 6.",
        ),
        ({"transactional.id": "x", "enable.idempotence": "false"}, "Cannot set a transactional.id without also enabling idempotence."),
        ({"transactional.id": "x", "acks": "1"}, "Cannot set a transactional.id without also enabling idempotence."),
        ({"acks": "2"}, "Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
        ({"delivery.timeout.ms": "10"}, "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms"),
        ({"transactional.id": ""}, "Invalid value  for configuration transactional.id: String must be non-empty"),
        (
            {"compression.type": "foo"},
            "Invalid value foo for configuration compression.type: String must be one of: none, gzip, snappy, lz4, zstd",
        ),
        ({"batch.size": "-1"}, "Invalid value -1 for configuration batch.size: Value must be at least 0"),
        (
            {"compression.gzip.level": "0"},
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        ({"compression.lz4.level": "18"}, "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17"),
        (
            {"transactional.id": "x", "transaction.two.phase.commit.enable": "true", "transaction.timeout.ms": "5"},
            "Cannot set transaction.timeout.ms when transaction.two.phase.commit.enable is set to true. Transactions will not expire with "
            "two-phase commit enabled.",
        ),
        ({"bootstrap.servers": "foo"}, "Invalid url in bootstrap.servers: foo: the port is missing, write foo:9092"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(settings: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(words)}$"):
        producer_config({"bootstrap.servers": "localhost:9092", **settings})


@pytest.mark.parametrize("settings", [{"acks": "1"}, {"acks": "0"}, {"retries": 0}])
def test_idempotence_gives_way_where_it_was_not_asked_for(settings: dict[str, object]) -> None:
    assert not configured(**settings)["enable.idempotence"]


def test_a_transactional_id_makes_it_idempotent() -> None:
    assert configured(transactional_id="x")["enable.idempotence"]


def test_bootstrap_servers_is_required() -> None:
    with pytest.raises(InvalidConfig, match=r"bootstrap\.servers"):
        producer_config({})


def test_clients_without_a_name_are_numbered() -> None:
    first, second = (configured()["client.id"] for _ in range(2))
    assert re.fullmatch(r"producer-\d+", first)
    assert int(second.split("-")[1]) == int(first.split("-")[1]) + 1


def test_a_transactional_producer_is_named_after_its_id() -> None:
    assert configured(transactional_id="x")["client.id"] == "producer-x"


def test_a_longer_linger_makes_the_default_delivery_timeout_longer() -> None:
    assert configured(linger_ms=100000, request_timeout_ms=50000)["delivery.timeout.ms"] == 150000


def test_keyword_arguments_have_underscores_for_dots() -> None:
    assert producer_config({"bootstrap.servers": "a:1"}, {"linger_ms": 7})["linger.ms"] == 7
