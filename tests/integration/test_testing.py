"""barnabas.testing: a real broker for other people's tests, quick to come and quick to go, with the fixtures of its pytest plugin."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

import barnabas.client
from barnabas import testing
from barnabas.config_def import InvalidConfig
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.security.errors import SaslAuthentication
from barnabas.testing import BrokerFailed, EmbeddedBroker, ask, broker
from tests import certificates

SOURCES = Path(testing.__file__).parents[1]
NAMED = {"listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT", "inter.broker.listener.name": "IN"}
BOTH = pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])


def produce(kafka: EmbeddedBroker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(kafka: EmbeddedBroker, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        read: list[str] = []
        while len(read) < count:
            message = consumer.poll(30)
            assert message is not None, f"{len(read)} of {count} records came"
            error = message.error()
            assert error is None or error.code() == KafkaError._PARTITION_EOF, error
            value = message.value()
            assert value is not None
            read.append(value.decode())
        return read
    finally:
        consumer.close()


def topics_of(kafka: EmbeddedBroker) -> dict[str, int]:
    return {topic.name: len(topic.partitions) for topic in ask(kafka.host, kafka.port, MetadataRequest(topics=None)).topics}


@BOTH
def test_records_go_in_and_out(process: bool) -> None:
    with broker(topics=["orders"], process=process) as kafka:
        produce(kafka, "orders", "a", "b")
        assert consume(kafka, "orders", 2) == ["a", "b"]


def test_metadata_is_answered_when_it_has_started() -> None:
    with broker() as kafka:
        assert ask(kafka.host, kafka.port, MetadataRequest(topics=None)).brokers


@BOTH
def test_topics_are_there_when_it_has_started(process: bool) -> None:
    with broker(topics={"one": 1, "three": 3}, process=process) as kafka:
        assert topics_of(kafka) == {"one": 1, "three": 3}


def test_a_topic_may_be_made_later_and_with_settings() -> None:
    with broker() as kafka:
        assert kafka.create_topic("late", partitions=2, cleanup_policy="compact", retention_ms=5) == "late"
        assert topics_of(kafka) == {"late": 2}
        resource = ConfigResource(ConfigResource.Type.TOPIC, "late")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        settings = admin.describe_configs([resource])[resource].result(30)
        assert (settings["cleanup.policy"].value, settings["retention.ms"].value) == ("compact", "5")


@pytest.mark.parametrize("name", ["", "a b", "x" * 250])
def test_a_topic_that_cannot_be_is_refused(name: str) -> None:
    with broker() as kafka, pytest.raises(BrokerFailed, match="cannot be made"):
        kafka.create_topic(name)


@BOTH
def test_settings_reach_the_broker(process: bool) -> None:
    with broker(config={"num.partitions": 4}, auto_create_topics_enable=True, process=process) as kafka:
        produce(kafka, "made-by-itself", "a")
        assert topics_of(kafka) == {"made-by-itself": 4}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num.partitons", "num.partitions"),
        ("log_retention.msec", "log.retention.ms"),
        ("listener.name.tls.ssl.keystore.locatoin", "listener.name.tls.ssl.keystore.location"),
    ],
)
def test_a_setting_that_is_misspelled_is_refused_at_once(name: str, meant: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        broker(config={name: 4})
    assert str(refused.value) == f"Unknown setting of a broker: {name}: did you mean {meant}?"


@pytest.mark.parametrize("name", ["my.policy.limit", "listener.name.tls.my.limit", "leader.replication.throttled.rate"])
def test_a_setting_like_no_other_is_warned_about(name: str) -> None:
    with pytest.warns(UserWarning, match=f"^Unknown setting of a broker: {re.escape(name)}\\. It has no effect") as warned:
        broker(config={name: 4})
    assert [warning.filename for warning in warned] == [__file__]


def test_a_setting_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(InvalidConfig):
        broker(num_partitions="many")


@BOTH
def test_a_port_that_is_taken_is_told(process: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(BrokerFailed, match="did not start"):
        broker(port=taken.getsockname()[1], process=process).start()


@BOTH
def test_listeners_may_be_others_and_several(process: bool) -> None:
    with broker(topics=["orders"], listeners="IN://127.0.0.1:0,OUT://127.0.0.1:0", config=NAMED, process=process) as kafka:
        assert kafka.listeners.keys() == {"IN", "OUT"}
        assert kafka.bootstrap_servers == kafka.listeners["IN"] != kafka.listeners["OUT"]
        before = kafka.listeners
        kafka.restart()
        assert kafka.listeners == before
        assert topics_of(kafka) == {"orders": 1}


def test_a_listener_may_speak_tls(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(made.server_store),
    }
    with broker(config=settings) as kafka:
        tls: dict[str, str | int | float | bool] = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(made.authority),
        }
        admin = AdminClient(tls)
        assert admin.list_topics(timeout=30).topics == {}
        with pytest.raises(RuntimeError, match="PLAINTEXT"):
            kafka.create_topic("orders")


@BOTH
def test_a_secure_broker_lets_in_who_has_its_password(process: bool) -> None:
    with broker(topics=["orders"], secure=True, process=process) as kafka:
        producer = Producer({**kafka.librdkafka_config})
        producer.produce("orders", "a")
        assert producer.flush(30) == 0
        kafka.restart()
        with barnabas.client.Admin(kafka.client_config) as admin:
            assert set(admin.list_topics()) == {"orders"}
        wrong = kafka.client_config | {"sasl.jaas.config": kafka.client_config["sasl.jaas.config"].replace(kafka.password, "wrong")}
        with pytest.raises(SaslAuthentication, match="invalid credentials"), barnabas.client.Admin(wrong) as admin:
            admin.list_topics()
        with (
            pytest.raises(barnabas.client.KafkaError),
            barnabas.client.Admin(bootstrap_servers=kafka.bootstrap_servers, request_timeout_ms=1000, default_api_timeout_ms=1000) as admin,
        ):
            admin.list_topics()


@BOTH
def test_a_restart_keeps_port_and_records(process: bool) -> None:
    with broker(topics=["orders"], process=process) as kafka:
        produce(kafka, "orders", "before")
        address = kafka.bootstrap_servers
        kafka.restart()
        assert kafka.bootstrap_servers == address
        produce(kafka, "orders", "after")
        assert consume(kafka, "orders", 2) == ["before", "after"]


def test_clients_come_back_after_a_restart() -> None:
    with broker(topics=["orders"]) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "reconnect.backoff.ms": 10})
        producer.produce("orders", "before")
        assert producer.flush(30) == 0
        kafka.pause()
        assert not kafka.is_running
        producer.produce("orders", "meanwhile")
        kafka.start()
        assert producer.flush(30) == 0
        assert consume(kafka, "orders", 2) == ["before", "meanwhile"]


def test_a_process_can_be_killed_and_recovers() -> None:
    with broker(topics=["orders"], process=True) as kafka:
        produce(kafka, "orders", "a")
        kafka.kill()
        assert not kafka.is_running
        kafka.start()
        assert consume(kafka, "orders", 1) == ["a"]


@pytest.mark.linux
def test_settings_of_a_process_are_not_in_the_process_list() -> None:
    with broker(process=True, config={"ssl.key.password": "geheim nis=#"}):
        command = ["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())]
        children = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "barnabas up" in children
    assert "ssl.key.password" not in children


class SlowToStop:
    """A process that ends `seconds` after the second SIGTERM."""

    stdout = None

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.signals: list[int] = []

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def wait(self, timeout: float) -> None:
        if self.signals.count(signal.SIGTERM) < 2 or (signal.SIGKILL not in self.signals and timeout < self.seconds):
            raise subprocess.TimeoutExpired("barnabas", timeout)


@pytest.mark.parametrize(("seconds", "signals"), [(20, [signal.SIGTERM] * 2), (10_000, [signal.SIGTERM, signal.SIGTERM, signal.SIGKILL])])
def test_a_process_that_takes_its_time_to_close_its_logs_is_not_killed(seconds: float, signals: list[int]) -> None:
    slow = SlowToStop(seconds)
    process = object.__new__(testing._Process)
    process._process = slow  # type: ignore[assignment]
    process._reader = threading.Thread()
    process._reader.start()
    process.stop()
    assert slow.signals == signals


def test_a_thread_cannot_be_killed() -> None:
    with broker() as kafka, pytest.raises(RuntimeError, match="process=True"):
        kafka.kill()


@BOTH
def test_its_data_is_gone_when_it_stops(process: bool) -> None:
    with broker(process=process) as kafka:
        data = kafka.data
        assert (data / "meta.properties").is_file()
    assert not data.exists()


def test_data_in_a_directory_of_ones_own_stays(tmp_path: Path) -> None:
    with broker(topics=["orders"], data=tmp_path) as kafka:
        produce(kafka, "orders", "a")
    with broker(data=tmp_path) as kafka:
        assert consume(kafka, "orders", 1) == ["a"]


def test_it_stops_under_a_client_that_stays() -> None:
    with broker(topics=["orders"]) as kafka:
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "log_level": 0})
        consumer.subscribe(["orders"])
        assert consumer.poll(0.5) is None
        kafka.stop()
        consumer.close()


def test_several_run_side_by_side() -> None:
    with broker(topics=["orders"]) as one, broker(topics=["orders"]) as other:
        produce(one, "orders", "one")
        produce(other, "orders", "other")
        assert (consume(one, "orders", 1), consume(other, "orders", 1)) == (["one"], ["other"])


def test_it_can_be_entered_on_an_event_loop() -> None:
    async def go() -> dict[str, int]:
        async with broker(topics=["orders"]) as kafka:
            return topics_of(kafka)

    assert asyncio.run(go()) == {"orders": 1}


def test_it_starts_again_after_it_was_stopped() -> None:
    kafka = broker(topics=["orders"])
    for _ in range(2):
        kafka.start()
        assert topics_of(kafka) == {"orders": 1}
        kafka.stop()
        kafka.stop()


@pytest.mark.parametrize("use", [lambda kafka: kafka.port, lambda kafka: kafka.data, lambda kafka: kafka.create_topic("t")])
def test_before_it_is_started_it_says_so(use: Any) -> None:
    with pytest.raises(RuntimeError, match=r"started|not running"):
        use(broker())


def test_it_is_started_once_at_a_time() -> None:
    with broker() as kafka, pytest.raises(RuntimeError, match="running already"):
        kafka.start()


def test_what_it_logs_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "barnabas"), broker() as kafka:
        pass
    assert any("started in" in line for line in kafka.log)


def test_what_a_process_logs_is_kept() -> None:
    with broker(process=True, config={"process.roles": "broker"}) as kafka:
        pass
    assert any("Barnabas is ready" in line for line in kafka.log)


PROJECT = """
import pytest
from confluent_kafka.admin import AdminClient

def topics(broker):
    return set(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=30).topics)

def test_a_broker_for_the_session(broker):
    assert topics(broker) == set()
    assert broker.create_topic("made") == "made"

def test_is_the_same_for_all_tests(broker):
    assert topics(broker) == {"made"}

@pytest.mark.parametrize("value", ["ä b/c", "d"])
def test_topics_of_their_own(broker, broker_topic, value):
    assert broker_topic in topics(broker)

def test_a_broker_for_one_test(new_broker):
    assert topics(new_broker(topics=["mine"])) == {"mine"}
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def broker_config():
    return {"num.partitions": 3}
"""


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(SOURCES), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "barnabas.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_plugin_gives_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(PROJECT)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = run_pytest(tmp_path)
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_a_projects_own_fixture_stands_before_the_plugins(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef broker():\n    return 7\n\ndef test_mine(broker):\n    assert broker == 7\n"
    )
    assert "1 passed" in run_pytest(tmp_path).stdout


def test_the_plugin_imports_no_broker_where_none_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(
        "import sys\n\ndef test_nothing():\n    assert 'barnabas.broker.server.server' not in sys.modules\n"
    )
    assert "1 passed" in run_pytest(tmp_path).stdout
