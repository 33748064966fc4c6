"""Telemetry against Apache Kafka: a plugin of its broker says what our client pushed, and its errors are those of our broker."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, Consumer, Metric, MetricName, Producer
from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from barnabas.client.clock import SystemClock
from barnabas.client.config.common_config import common
from barnabas.client.config.config import ClientConfig, key
from barnabas.client.metrics.metrics import CumulativeSum, Metrics
from barnabas.client.metrics.otlp import Point, metrics_data
from barnabas.client.metrics.telemetry import ClientTelemetry
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.config_def import Importance, Type, table
from barnabas.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.records.codecs import compression
from barnabas.testing import ask, broker
from barnabas.uuid import Uuid
from tests import broker as processes
from tests import kafka, kafka_server
from tests.integration.transactions.wire import Connection

PLUGIN = Path(__file__).parents[1] / "java" / "TelemetryReceiver.java"
KEYS = table([*common(), key("client.rack", Type.STRING, "", None, Importance.LOW, "Where the client is.")])
CLIENT_METRICS = 16
DEADLINE_S = 30


@dataclass
class Receiver:
    """A Kafka, and the file in which its plugin writes what was pushed."""

    bootstrap: str
    file: Path

    def pushes(self, client_id: str) -> list[tuple[list[list[str]], list[str]]]:
        """What a client has pushed: the metrics and the line of each push."""
        pushes: list[tuple[list[list[str]], list[str]]] = []
        metrics: list[list[str]] = []
        for line in self.file.read_text().splitlines() if self.file.exists() else []:
            fields = line.split("\t")
            if fields[0] == "metric":
                metrics.append(fields[1:])
                continue
            if fields[4] == client_id:
                pushes.append((metrics, fields[1:]))
            metrics = []
        return pushes


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Generator[Receiver, None, None]:
    jars = kafka.available(kafka.prepare)
    directory, classes = tmp_path_factory.mktemp("kafka"), tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(PLUGIN)], check=True, capture_output=True, timeout=120)
    file = directory / "pushed"
    port, controller_port = kafka_server._free_ports()
    settings = {"metric.reporters": "TelemetryReceiver", "telemetry.file": str(file)}
    command = kafka_server.command(directory, 1, port, controller_port, settings)
    command = [f"{jars}/*:{classes}" if argument == f"{jars}/*" else argument for argument in command]
    with processes.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        yield Receiver(f"127.0.0.1:{port}", file)


def subscribe(receiver: Receiver, name: str, metrics: str, client_id: str) -> None:
    """As kafka-client-metrics.sh does, with an interval of 100 ms."""
    host, _, port = receiver.bootstrap.rpartition(":")
    values = {"metrics": metrics, "interval.ms": "100", "match": f"client_id={client_id}"}
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    (answer,) = ask(host, int(port), IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == 0, answer.error_message


@asynccontextmanager
async def client(bootstrap: str, client_id: str, **settings: object) -> AsyncGenerator[tuple[ClientTelemetry, Metrics], None]:
    config = ClientConfig(KEYS, {"bootstrap.servers": bootstrap, "client.id": client_id, **settings})
    clock = SystemClock()
    metrics = Metrics(clock, tags={"client-id": client_id})
    metrics.add("work", metrics.metric_name("work-total", "test-metrics", topic="t"), CumulativeSum())
    metrics.gauge(metrics.metric_name("load", "test-metrics"), lambda: 7)
    network = NetworkClient(config, Metadata(config, clock=clock), clock=clock, metrics=metrics, metric_group="test")
    telemetry = ClientTelemetry.of(config, network, metrics, clock=clock)
    assert telemetry is not None
    telemetry.update_labels(group_member_id="m-1")
    await network.start()
    telemetry.start()
    try:
        yield telemetry, metrics
    finally:
        await telemetry.close(5000)
        await network.close()


def conversation(bootstrap: str) -> list[str]:
    """What a broker answers to each request of a client that does everything right, and then everything wrong. The interval is five
    minutes, so that no answer depends on how fast the requests follow each other."""
    said: list[str] = []
    subscribe_slowly(bootstrap, "wire", "a.,b.")
    with closing(Connection(bootstrap)) as connection:

        def get(client: Uuid) -> Any:
            response = connection.ask(GetTelemetrySubscriptionsRequest(client), 0)
            has_id = response.client_instance_id != Uuid.ZERO
            same_id = client in (Uuid.ZERO, response.client_instance_id)
            types, limits = response.accepted_compression_types, (response.push_interval_ms, response.telemetry_max_bytes)
            asked_for = sorted(response.requested_metrics)
            said.append(f"get {response.error_code} {has_id} {same_id} {types} {limits} {response.delta_temporality} {asked_for}")
            return response

        def push(client: Uuid, subscription: int, data: bytes = b"", codec: int = 0, terminating: bool = False) -> None:
            response = connection.ask(PushTelemetryRequest(client, subscription, terminating, codec, data), 0)
            said.append(f"push {response.error_code}")

        given = get(Uuid.ZERO)
        client = given.client_instance_id
        get(client)  # too early
        push(client, given.subscription_id)
        push(client, given.subscription_id)  # too early
        push(client, given.subscription_id + 1)  # too early, before anything else is wrong
        get(client)
        for reserved in (Uuid.ZERO, Uuid.METADATA_TOPIC_ID):
            push(reserved, given.subscription_id)
        push(client, given.subscription_id, terminating=True)
        push(client, given.subscription_id, terminating=True)  # after the last
        get(client)

        for number, (data, codec) in enumerate(PUSHED):  # each of a client of its own, which comes from another broker
            client = Uuid(bytes([*range(1, 16), number]))
            push(client, 1, data, codec)  # it has not asked for its subscription here
            get(client)  # at once, because its subscription was not known
            given = get(Uuid(bytes([*range(2, 17)]) + bytes([number])))
            push(given.client_instance_id, given.subscription_id, data, codec)
            get(given.client_instance_id)
        given = get(Uuid.ZERO)
        subscribe_slowly(bootstrap, "wire", "c.")
        push(given.client_instance_id, given.subscription_id)
        given = get(given.client_instance_id)
        push(given.client_instance_id, given.subscription_id)
    return said


METRICS = metrics_data([Point("a.b", 1, 1, {})], {})
PUSHED = (
    (METRICS, compression.NONE),
    *((compression.compress(codec, METRICS), codec) for codec in range(1, 5)),
    (METRICS, 5),
    (METRICS, -1),
    (METRICS, compression.ZSTD),  # it is not compressed
    (b"no metrics", compression.NONE),
    (bytes((1 << 20) + 1), compression.NONE),
    (compression.compress(compression.GZIP, b"no metrics"), compression.GZIP),
)


def subscribe_slowly(bootstrap: str, name: str, metrics: str) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name)
        values = {"metrics": metrics, "interval.ms": "300000", "match": "client_id=wire,client_source_address=127[.]0[.]0[.]1"}
        admin.incremental_alter_configs({resource: [AlterConfigOp(key, value) for key, value in values.items()]}).all()
    deadline = time.monotonic() + DEADLINE_S
    with closing(Connection(bootstrap)) as connection:  # the broker applies it a moment after the controller has
        while sorted(connection.ask(GetTelemetrySubscriptionsRequest(Uuid.ZERO), 0).requested_metrics) != metrics.split(","):
            assert time.monotonic() < deadline, "the subscription was not applied"


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 60))


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


@pytest.mark.java
def test_kafka_receives_what_it_asked_for(receiver: Receiver) -> None:
    subscribe(receiver, "all", "*", "pushes-all")

    async def main() -> None:
        async with client(receiver.bootstrap, "pushes-all", **{"client.rack": "r1"}) as (telemetry, metrics):
            metrics.sensor("work").record(5)
            instance = await telemetry.client_instance_id(10_000)
            await until(lambda: len(receiver.pushes("pushes-all")) >= 2)
            metrics.sensor("work").record(2)
        assert {line[0] for _, line in receiver.pushes("pushes-all")} == {str(instance)}

    run(main)
    pushes = receiver.pushes("pushes-all")
    assert [line[1] for _, line in pushes] == ["false"] * (len(pushes) - 1) + ["true"]
    assert {line[2] for _, line in pushes} == {"OTLP"}
    labels = "client_rack=r1,group_member_id=m-1"
    for metrics, _ in pushes:
        assert ["org.apache.kafka.test.load", "GAUGE", "7", "", labels] in metrics
        names = {fields[0] for fields in metrics}
        assert {"org.apache.kafka.test.connection.count", "org.apache.kafka.test.node.request.total"} <= names
    worked = [fields for metrics, _ in pushes for fields in metrics if fields[0] == "org.apache.kafka.test.work.total"]
    assert {fields[1] for fields in worked} == {"AGGREGATION_TEMPORALITY_DELTA"}
    assert {fields[3] for fields in worked} == {"topic=t"}
    assert sum(float(fields[2]) for fields in worked) == 7


@pytest.mark.java
def test_kafka_receives_only_what_it_asked_for(receiver: Receiver) -> None:
    subscribe(receiver, "some", "org.apache.kafka.test.work", "pushes-some")

    async def main() -> None:
        async with client(receiver.bootstrap, "pushes-some"):
            await until(lambda: bool(receiver.pushes("pushes-some")))

    run(main)
    assert {fields[0] for metrics, _ in receiver.pushes("pushes-some") for fields in metrics} == {"org.apache.kafka.test.work.total"}


@pytest.mark.java
def test_a_client_that_nobody_asks_has_an_id_and_pushes_nothing(receiver: Receiver) -> None:
    async def main() -> None:
        async with client(receiver.bootstrap, "pushes-nothing") as (telemetry, _):
            await telemetry.client_instance_id(10_000)

    run(main)
    assert receiver.pushes("pushes-nothing") == []


@pytest.mark.java
def test_a_subscription_that_changes_is_followed(receiver: Receiver) -> None:
    subscribe(receiver, "changes", "org.apache.kafka.test.work", "pushes-changes")

    def names() -> set[str]:
        return {fields[0] for metrics, _ in receiver.pushes("pushes-changes") for fields in metrics}

    async def main() -> None:
        async with client(receiver.bootstrap, "pushes-changes"):
            await until(lambda: names() == {"org.apache.kafka.test.work.total"})
            await asyncio.to_thread(subscribe, receiver, "changes", "org.apache.kafka.test.load", "pushes-changes")
            await until(lambda: "org.apache.kafka.test.load" in names())

    run(main)


@pytest.mark.java
@pytest.mark.parametrize("face", [Producer, Consumer, Admin])
def test_metrics_of_the_application_are_pushed_by_every_client(
    receiver: Receiver, face: type[Producer | Consumer[Any, Any] | Admin]
) -> None:
    name = f"pushes-own-{face.__name__}"
    subscribe(receiver, name, "org.apache.kafka.queue.", name)
    length = Metric.of(MetricName("length", "queue-metrics"), lambda: 4)

    def values() -> list[float]:
        return [
            float(fields[2]) for metrics, _ in receiver.pushes(name) for fields in metrics if fields[0] == "org.apache.kafka.queue.length"
        ]

    with face({"bootstrap.servers": receiver.bootstrap, "client.id": name, "enable.metrics.push": True}) as client:
        client.register_metric_for_subscription(length)
        if isinstance(client, Admin | Consumer):
            client.list_topics()  # speaks to a broker: now it is asked for metrics
        asyncio.run(until(lambda: bool(values())))
        client.unregister_metric_from_subscription(length)
    assert set(values()) == {4.0}
    assert receiver.pushes(name)[-1][0] == []  # the last push, at the end


def test_metrics_may_be_registered_where_nothing_is_pushed() -> None:
    with Producer({"bootstrap.servers": "127.0.0.1:1", "enable.metrics.push": False}) as producer:
        producer.register_metric_for_subscription(Metric.of(MetricName("a", "b"), lambda: 1))
        producer.unregister_metric_from_subscription(Metric.of(MetricName("a", "b"), lambda: 1))


@pytest.mark.java
def test_both_brokers_answer_the_same_requests_with_the_same_errors(receiver: Receiver) -> None:
    with broker() as running:
        ours = conversation(running.bootstrap_servers)
    assert ours == conversation(receiver.bootstrap)


def test_telemetry_can_be_switched_off() -> None:
    config = ClientConfig(KEYS, {"bootstrap.servers": "127.0.0.1:1", "enable.metrics.push": False})
    metrics = Metrics(SystemClock())
    network = NetworkClient(config, Metadata(config, clock=SystemClock()), clock=SystemClock(), metrics=metrics)
    assert ClientTelemetry.of(config, network, metrics, clock=SystemClock()) is None
