"""Three brokers of this project and three of Apache Kafka 3.9.1, each a process of its own, with the same settings on the same ZooKeeper.

That version is the last whose brokers meet in ZooKeeper, so both clusters have a controller of the same kind and lose a broker by the same
session timeout. Three of Apache Kafka 4.2, each broker and controller in one process, are there for what only that version has.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition
from benchmarks.wire import Client
from tests import cluster, kafka

SESSION_TIMEOUT_MS = 4_000
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "min.insync.replicas": "2",
    # What both have by default, where the cluster of the tests has something else.
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "1000",
    "controlled.shutdown.retry.backoff.ms": "5000",
}
HEAP = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)
WAIT_S = 180
POLL_S = 0.05
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class ApacheProcess(cluster.BrokerProcess):
    def command(self, properties: Path) -> list[str]:
        return ["java", *HEAP, *LOGGING, "-cp", f"{kafka.zookeeper_mode()}/*", "kafka.Kafka", str(properties)]


class RaftProcess(cluster.BrokerProcess):
    """A broker and controller of Apache Kafka 4.2 in one process; `settings` name the controllers."""

    def command(self, properties: Path) -> list[str]:
        java = ["java", *HEAP, *LOGGING, "-cp", f"{kafka.prepare()}/*"]
        if not self.data.exists():
            formatting = ["format", "-c", str(properties), "-t", CLUSTER_ID]
            subprocess.run([*java, "kafka.tools.StorageTool", *formatting], check=True, capture_output=True, timeout=120)
        return [*java, "kafka.Kafka", str(properties)]


class Trio:
    """Three brokers that run."""

    def __init__(self, name: str, zookeeper: str, brokers: Mapping[int, cluster.BrokerProcess]) -> None:
        self.name = name
        self.zookeeper = zookeeper
        self.brokers = brokers

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def memory_mb(self) -> float:
        """What all of them keep in memory now, of which nothing is the page cache of their logs."""
        return sum(_memory_mb(broker.pid) for broker in self.brokers.values())

    def cpu_seconds(self) -> float:
        """What all of them have taken of the processors since they were started."""
        return sum(_cpu_seconds(broker.pid) for broker in self.brokers.values())

    def metadata(self, broker_id: int, topics: Sequence[str] | None) -> MetadataResponse:
        with Client("127.0.0.1", self.brokers[broker_id].port) as client:
            return client.metadata(topics)

    def controller_id(self) -> int:
        return next(self.metadata(broker, []).controller_id for broker in self.brokers)

    def create(self, topics: Sequence[str], partitions: int, configs: dict[str, str] | None = None) -> None:
        """Topics of three replicas; returns when every broker knows them as wholly in sync."""
        with Client("127.0.0.1", self.brokers[self.controller_id()].port, WAIT_S) as client:
            client.create_topics(topics, partitions, configs, len(self.brokers))
        self.wait_in_sync(topics)

    def delete(self, topics: Sequence[str]) -> None:
        with Client("127.0.0.1", self.brokers[self.controller_id()].port, WAIT_S) as client:
            client.delete_topics(topics)

    def wait_complete(self) -> None:
        """Until every broker answers, and knows all of them and a controller."""
        for broker_id in self.brokers:
            self._wait(broker_id, lambda metadata: len(metadata.brokers) == len(self.brokers) and metadata.controller_id >= 0, [])

    def wait_gone(self, dead: int) -> None:
        """Until all others know that one of them is dead: Apache Kafka's do not start while their earlier life is registered."""
        for broker_id in self.brokers.keys() - {dead}:
            self._wait(broker_id, lambda metadata: dead not in {broker.node_id for broker in metadata.brokers}, [])

    def wait_in_sync(self, topics: Sequence[str]) -> None:
        for broker_id in self.brokers:
            self.wait_until(broker_id, topics, lambda partition: len(partition.isr_nodes) == len(self.brokers) and partition.leader_id >= 0)

    def wait_until(self, broker_id: int, topics: Sequence[str], is_so: Callable[[MetadataResponsePartition], bool]) -> None:
        """Until a broker says of all partitions of these topics what is waited for."""

        def says_so(metadata: MetadataResponse) -> bool:
            return all(topic.partitions and all(is_so(partition) for partition in topic.partitions) for topic in metadata.topics)

        self._wait(broker_id, says_so, topics)

    def _wait(self, broker_id: int, is_so: Callable[[MetadataResponse], bool], topics: Sequence[str]) -> None:
        """Until what a broker says is as it should be; it may be on its way up."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                if is_so(self.metadata(broker_id, topics)):
                    return
            except OSError:
                pass
            broker = self.brokers[broker_id]
            if not broker.is_running or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: broker {broker_id} did not get there within {WAIT_S} s: {broker.said()[-2000:]}")
            time.sleep(POLL_S)


@contextmanager
def barnabas(directory: Path, zookeeper: str) -> Iterator[Trio]:
    yield from _running("Barnabas", cluster.BrokerProcess, directory / "barnabas", f"{zookeeper}/barnabas")


@contextmanager
def apache_kafka(directory: Path, zookeeper: str) -> Iterator[Trio]:
    """Each with a heap of 1 GB."""
    yield from _running("Apache Kafka", ApacheProcess, directory / "kafka", f"{zookeeper}/kafka")


@contextmanager
def apache_kafka_raft(directory: Path) -> Iterator[Trio]:
    """Version 4.2, each with a heap of 1 GB; without ZooKeeper."""
    directory = directory / "kafka-raft"
    directory.mkdir(parents=True)
    controllers = {number: cluster.free_port() for number in (1, 2, 3)}
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in controllers.items())
    brokers: dict[int, cluster.BrokerProcess] = {}
    for number, controller in controllers.items():
        port = cluster.free_port()
        settings = {
            **SETTINGS,
            "process.roles": "broker,controller",
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        }
        brokers[number] = RaftProcess(number, directory, "", settings)
        brokers[number].port = port
    yield from _started("Apache Kafka 4.2", "", brokers)


def _running(name: str, kind: type[cluster.BrokerProcess], directory: Path, zookeeper: str) -> Iterator[Trio]:
    directory.mkdir(parents=True)
    yield from _started(name, zookeeper, {number: kind(number, directory, zookeeper, SETTINGS) for number in (1, 2, 3)})


def _started(name: str, zookeeper: str, brokers: Mapping[int, cluster.BrokerProcess]) -> Iterator[Trio]:
    try:
        for broker in brokers.values():
            broker.start()
        trio = Trio(name, zookeeper, brokers)
        trio.wait_complete()
        yield trio
    finally:
        for broker in brokers.values():
            if broker.is_running:
                broker.kill()


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return sum(int(kilobytes) for kilobytes in re.findall(r"Rss(?:Anon|File):\s+(\d+) kB", status)) / 1024


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
