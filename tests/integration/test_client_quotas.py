"""Client quotas on a running broker: librdkafka is told how long to wait, the connection of a client above its quota is not read for that
long, and other clients notice nothing. Over two windows of a second, so that the waits are short."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client import Admin
from barnabas.client.admin import ClientQuotaAlteration, ClientQuotaEntity
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.registry import BY_NAME
from barnabas.protocol.slices import Records
from barnabas.records.builder import BatchBuilder
from barnabas.testing import EmbeddedBroker, broker

WINDOWS = {"quota.window.num": "2", "controller.quota.window.num": "1"}
TIMEOUT_S = 60
RATE = 50_000
TOLERANCE_S = 0.05  # timers and clocks in milliseconds


@pytest.fixture(scope="module")
def kafka() -> Generator[EmbeddedBroker, None, None]:
    with broker(topics=["t"], process=True, config=WINDOWS) as running:
        limit(running, "slow", producer_byte_rate=RATE, consumer_byte_rate=RATE)
        limit(running, "admin", controller_mutation_rate=1)
        limit(running, "busy", request_percentage=0.01)
        yield running


def limit(kafka: EmbeddedBroker, client_id: str, **quotas: float) -> None:
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        admin.alter_client_quotas([ClientQuotaAlteration(ClientQuotaEntity({"client-id": client_id}), quotas)])


class Wire:
    """One connection of a client, with its own requests: it does not wait as clients should."""

    def __init__(self, kafka: EmbeddedBroker, client_id: str) -> None:
        self._socket = socket.create_connection((kafka.host, kafka.port), TIMEOUT_S)
        self._client_id = client_id

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int) -> tuple[Any, float]:
        """The response, and the seconds until it came."""
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        began_s = time.monotonic()
        self._socket.sendall(b"".join(request_frame(request, api, version, 1, self._client_id)))
        frame = self._receive(int.from_bytes(self._receive(4), "big"))
        taken_s = time.monotonic() - began_s
        _, reader = parse_response_header(frame, api.response_header_version(version))
        return api.response.read(reader, version), taken_s

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            assert piece, "the broker has closed the connection"
            received += piece
        return received


def produce_request(size: int) -> ProduceRequest:
    builder = BatchBuilder(2, 0, 0)
    builder.append(0, None, bytes(size))
    data = PartitionProduceData(0, Records(builder.build()))
    return ProduceRequest(None, 1, 10_000, [TopicProduceData("t", partition_data=[data])])


def test_a_producer_above_its_quota_waits_and_others_do_not(kafka: EmbeddedBroker) -> None:
    with Wire(kafka, "slow") as slow, Wire(kafka, "other") as other:
        response, taken_s = slow.ask(produce_request(2 * RATE), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        throttle_s = response.throttle_time_ms / 1000
        assert 1 <= throttle_s < 1.2, "twice the rate within a second"
        assert taken_s < throttle_s, "the response does not wait"
        _, other_s = other.ask(produce_request(2 * RATE), 9)
        _, slow_s = slow.ask(ApiVersionsRequest(), 2)
        assert slow_s + other_s > throttle_s - TOLERANCE_S and other_s < throttle_s / 2


def test_a_fetch_above_its_quota_is_empty_and_the_next_one_waits(kafka: EmbeddedBroker) -> None:
    with Wire(kafka, "other") as other, Wire(kafka, "slow") as slow:
        other.ask(produce_request(RATE * 4 // 5), 9)
        fetch = FetchRequest(max_wait_ms=0, topics=[FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1)])])  # one batch
        for _ in range(20):
            response, _ = slow.ask(fetch, 11)
            if response.throttle_time_ms:
                break
        throttle_s = response.throttle_time_ms / 1000
        assert throttle_s > 5 * TOLERANCE_S and response.responses == [], "two batches within a second are 1.6 times the rate"
        _, slow_s = slow.ask(ApiVersionsRequest(), 2)
        assert slow_s > throttle_s - TOLERANCE_S


def test_topics_above_the_rate_are_refused(kafka: EmbeddedBroker) -> None:
    with Wire(kafka, "admin") as admin:
        response, _ = admin.ask(CreateTopicsRequest([CreatableTopic(f"new-{number}", 2, 1) for number in range(3)], 10_000), 6)
        assert sorted(topic.error_code for topic in response.topics) == [0, 89, 89]
        assert 0 < response.throttle_time_ms <= 1000


def test_a_client_that_uses_too_much_time_waits_a_window_at_most(kafka: EmbeddedBroker) -> None:
    with Wire(kafka, "busy") as busy:
        for _ in range(200):
            response, _ = busy.ask(ApiVersionsRequest(), 2)
            if response.throttle_time_ms:
                break
        assert 0 < response.throttle_time_ms <= 1000


def test_librdkafka_is_told_and_loses_nothing(kafka: EmbeddedBroker) -> None:
    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "client.id": "slow",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    began_s = time.monotonic()
    for number in range(10):
        producer.produce("rdkafka", bytes(RATE // 4), key=str(number))
    assert producer.flush(TIMEOUT_S) == 0
    assert max(throttled, default=0) > 0
    assert time.monotonic() - began_s < TIMEOUT_S
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "reader", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["rdkafka"])
    keys: list[bytes | None] = []
    while len(keys) < 10:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None
        keys.append(message.key())
    consumer.close()
    assert keys == [str(number).encode() for number in range(10)]
