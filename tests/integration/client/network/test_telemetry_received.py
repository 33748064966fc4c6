"""Our broker receives the metrics that real clients push: our own, Java's and librdkafka's."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.broker.telemetry.received_metrics import Series
from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from tests import kafka

TOPIC = "pushed"
DEADLINE_S = 60


@dataclass
class Server:
    """A broker in a thread of this process, so that the test can look into its registry of received metrics."""

    bootstrap: str
    broker: Broker
    loop: asyncio.AbstractEventLoop

    def series(self, client_id: str) -> list[Series]:
        """On the loop of the broker, which changes the registry."""
        received_series: Future[list[Series]] = Future()
        received = self.broker.client_metrics.received
        self.loop.call_soon_threadsafe(
            lambda: received_series.set_result([series for series in received.series() if series.labels["client_id"] == client_id])
        )
        return received_series.result(DEADLINE_S)

    def until_pushed(self, client_id: str, name: str, work: Callable[[], object] = lambda: None) -> list[Series]:
        """The series of a client once it has pushed this one. `work` is what the client does meanwhile."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            found = self.series(client_id)
            if any(series.name == name for series in found):
                return found
            assert time.monotonic() < deadline, f"{client_id} has pushed {sorted({series.name for series in found})}"
            work()
            time.sleep(0.02)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    with _running(tmp_path_factory.mktemp("broker")) as running, Admin({"bootstrap.servers": running.bootstrap}) as admin:
        resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
        values = {"metrics": "*", "interval.ms": "100", "match": "client_id=pushes-.*"}
        admin.incremental_alter_configs({resource: [AlterConfigOp(key, value) for key, value in values.items()]}).all()
        admin.create_topics([NewTopic(TOPIC, 1, 1)]).all()
        yield running


@contextmanager
def _running(directory: Path) -> Generator[Server, None, None]:
    settings = {
        "broker.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    ready: Future[Server] = Future()
    ended = threading.Event()

    async def serve() -> None:
        running = BrokerServer(BrokerConfig.from_properties(settings))
        await running.start()
        port = running.endpoints[0].port
        ready.set_result(Server(f"127.0.0.1:{port}", running.broker, asyncio.get_running_loop()))
        await asyncio.to_thread(ended.wait)
        await running.shutdown(200)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield ready.result(DEADLINE_S)
    finally:
        ended.set()
        thread.join(DEADLINE_S)


def test_our_producer_and_consumer_push(server: Server) -> None:
    own = {"bootstrap.servers": server.bootstrap, "auto.offset.reset": "earliest"}
    with Producer({"bootstrap.servers": server.bootstrap, "client.id": "pushes-ours"}) as producer:
        found = server.until_pushed(
            "pushes-ours", "org.apache.kafka.producer.record.send.total", lambda: producer.send(TOPIC, b"x").result(30)
        )
    (sent,) = [series for series in found if series.name == "org.apache.kafka.producer.record.send.total"]
    assert sent.kind == "counter"
    assert sent.labels["client_instance_id"]
    with Consumer({**own, "client.id": "pushes-ours-consumer", "group.id": "g-ours"}) as consumer:
        consumer.subscribe([TOPIC])
        name = "org.apache.kafka.consumer.fetch.manager.records.consumed.total"
        found = server.until_pushed("pushes-ours-consumer", name, lambda: consumer.poll(100))
    assert {series.labels["group_id"] for series in found} == {"g-ours"}


def test_a_client_that_closes_takes_its_metrics_along(server: Server) -> None:
    with Producer({"bootstrap.servers": server.bootstrap, "client.id": "pushes-and-leaves"}) as producer:
        producer.send(TOPIC, b"x").result(30)
        server.until_pushed("pushes-and-leaves", "org.apache.kafka.producer.record.send.total")
    deadline = time.monotonic() + DEADLINE_S
    while server.series("pushes-and-leaves"):
        assert time.monotonic() < deadline, "its metrics are still there"
        time.sleep(0.02)


def test_librdkafka_pushes(server: Server) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "client.id": "pushes-librdkafka"})

    def work() -> None:
        producer.produce(TOPIC, b"x")
        producer.poll(0)

    found = server.until_pushed("pushes-librdkafka", "org.apache.kafka.producer.connection.creation.total", work)
    assert {series.kind for series in found} == {"counter", "gauge"}
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": server.bootstrap, "client.id": "pushes-librdkafka-consumer", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    name = "org.apache.kafka.consumer.connection.creation.total"
    found = server.until_pushed("pushes-librdkafka-consumer", name, lambda: consumer.poll(0.1))
    assert {series.labels["group_id"] for series in found} == {"g"}
    consumer.close()
    producer.flush(30)


JAVA = {
    "producer": (
        ("org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--num-records", "1000000", "--record-size", "10"),
        ("--throughput", "100", "--bootstrap-server", "{bootstrap}", "--command-property", "client.id={client}"),
        "org.apache.kafka.producer.record.send.total",
    ),
    "consumer": (
        ("org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", TOPIC, "--from-beginning", "--group", "g-java"),
        ("--bootstrap-server", "{bootstrap}", "--command-property", "client.id={client}"),
        "org.apache.kafka.consumer.fetch.manager.records.consumed.total",
    ),
}


@pytest.mark.java
@pytest.mark.parametrize("kind", JAVA)
def test_java_pushes(server: Server, kind: str, tmp_path: Path) -> None:
    jars = kafka.available(kafka.prepare)
    (main, *options), more, name = JAVA[kind]
    client = f"pushes-java-{kind}"
    words = [word.format(bootstrap=server.bootstrap, client=client) for word in (main, *options, *more)]
    command = [*kafka.java(jars, kafka.QUIET), *words]
    with (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        found = server.until_pushed(client, name)
    except AssertionError as error:
        raise AssertionError(f"{error}; {(tmp_path / 'errors').read_text()}") from None
    finally:
        process.kill()
        process.wait(DEADLINE_S)
    (counted,) = [series for series in found if series.name == name and "topic" not in series.labels]
    assert counted.kind == "counter"
