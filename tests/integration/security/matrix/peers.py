"""The brokers that the matrix is played against. Each has a SASL listener with PLAIN users, and a PLAINTEXT one for anonymous clients."""

from __future__ import annotations

import socket
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import broker, kafka_server, zookeeper
from tests.cluster import BrokerProcess
from tests.integration.cluster.apache_kafka import ApacheKafka
from tests.integration.security.matrix.case import SUPER_USER
from tests.integration.security.matrix.connection import password_of

BROKER_ID = 1
_SECURED = "SASL_PLAINTEXT"
_SETTINGS = {
    "super.users": f"User:{SUPER_USER}",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "security.inter.broker.protocol": _SECURED,
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "6000",
    "group.consumer.max.session.timeout.ms": "600000",  # a member that sends one heartbeat stays until the last request
    "group.consumer.session.timeout.ms": "600000",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "default.replication.factor": "1",
    "delegation.token.secret.key": "the key that signs the tokens",
    "auto.create.topics.enable": "true",
}


@dataclass(frozen=True)
class Peer:
    """The addresses of a broker."""

    secured: str
    plain: str

    def address(self, user: str | None) -> str:
        return self.plain if user is None else self.secured


@contextmanager
def kraft_kafka(directory: Path, users: Iterable[str]) -> Generator[Peer, None, None]:
    """Apache Kafka 4.2.0 with StandardAuthorizer."""
    secured, plain, controller = _free_ports(3)
    settings = {
        **_SETTINGS,
        "listeners": f"{_listeners(secured, plain)},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": _listeners(secured, plain),
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{_SECURED}:{_SECURED},CONTROLLER:{_SECURED}",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "listener.name.controller.plain.sasl.jaas.config": _jaas([]),
        **_jaas_of_the_listener(users),
    }
    del settings["security.inter.broker.protocol"]
    settings["inter.broker.listener.name"] = _SECURED
    command = kafka_server.command(directory, BROKER_ID, plain, controller, settings)
    with broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        yield Peer(f"127.0.0.1:{secured}", f"127.0.0.1:{plain}")


@contextmanager
def zookeeper_kafka(directory: Path, users: Iterable[str]) -> Generator[Peer, None, None]:
    """Apache Kafka 3.9.1 with AclAuthorizer, in ZooKeeper mode."""
    with _on_zookeeper(ApacheKafka, directory, users) as peer:
        yield peer


@contextmanager
def own_broker_on_zookeeper(directory: Path, users: Iterable[str]) -> Generator[Peer, None, None]:
    """This broker as one of a cluster, which serves the requests between controller and brokers."""
    with _on_zookeeper(BrokerProcess, directory, users) as peer:
        yield peer


@contextmanager
def own_broker(directory: Path, users: Iterable[str]) -> Generator[Peer, None, None]:
    """This broker with the embedded metadata store."""
    secured, plain = _free_ports(2)
    settings = {**_zookeeper_mode(secured, plain, users), "broker.id": str(BROKER_ID), "log.dirs": str(directory / "data")}
    with _stopped_at_the_end(_Embedded(BROKER_ID, directory, "", settings)):
        yield Peer(f"127.0.0.1:{secured}", f"127.0.0.1:{plain}")


class _Embedded(BrokerProcess):
    def command(self, properties: Path) -> list[str]:
        lines = [line for line in properties.read_text().splitlines() if not line.startswith("zookeeper.connect=")]
        properties.write_text("\n".join(lines))
        return super().command(properties)


@contextmanager
def _on_zookeeper(process: type[BrokerProcess], directory: Path, users: Iterable[str]) -> Generator[Peer, None, None]:
    secured, plain = _free_ports(2)
    (directory / "zookeeper").mkdir()
    with ExitStack() as running:
        tree = running.enter_context(zookeeper.running(directory / "zookeeper"))
        settings = _zookeeper_mode(secured, plain, users)
        running.enter_context(_stopped_at_the_end(process(BROKER_ID, directory, tree.address, settings)))
        yield Peer(f"127.0.0.1:{secured}", f"127.0.0.1:{plain}")


@contextmanager
def _stopped_at_the_end(started: BrokerProcess) -> Generator[None, None, None]:
    started.start()
    try:
        started.wait_ready()
        yield
        assert "Traceback" not in started.said(), started.said().partition("Traceback")[2][:2000]
    finally:
        if started.is_running:
            started.kill()


def _zookeeper_mode(secured: int, plain: int, users: Iterable[str]) -> Mapping[str, str]:
    return {
        **_SETTINGS,
        "listeners": _listeners(secured, plain),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        **_jaas_of_the_listener(users),
    }


def _listeners(secured: int, plain: int) -> str:
    return f"{_SECURED}://127.0.0.1:{secured},PLAINTEXT://127.0.0.1:{plain}"


def _jaas_of_the_listener(users: Iterable[str]) -> dict[str, str]:
    return {f"listener.name.{_SECURED.lower()}.plain.sasl.jaas.config": _jaas(users)}


def _jaas(users: Iterable[str]) -> str:
    known = " ".join(f'user_{user}="{password_of(user)}"' for user in sorted({SUPER_USER, *users}))
    login = f'username="{SUPER_USER}" password="{password_of(SUPER_USER)}"'
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {login} {known};"


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        return [held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]
