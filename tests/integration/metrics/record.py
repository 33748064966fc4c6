"""Plays the workload on Apache Kafka 3.9.1 and 4.2.0 and takes their MBeans down in tests/data: `make kafka-metrics`."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests import broker, kafka, kafka_server, zookeeper
from tests.cluster import Cluster, free_port
from tests.integration.cluster.apache_kafka import ApacheKafka
from tests.integration.metrics import play
from tests.integration.metrics.beans import AGENT_CONFIG, beans_of_kafka
from tests.integration.metrics.play import Played

ZOOKEEPER, KRAFT = kafka.ZOOKEEPER_MODE_VERSION, kafka.VERSION
DATA = Path(__file__).parents[2] / "data"
_LOADED = re.compile(r"Kafka Server started")


class WithAgent(ApacheKafka):
    def __init__(self, number: int, directory: Path, zookeeper_address: str, settings: Mapping[str, str]) -> None:
        super().__init__(number, directory, zookeeper_address, settings)
        self.agent_port = free_port()
        self._agent = agent(directory, self.agent_port)

    def command(self, properties: Path) -> list[str]:
        java, *rest = super().command(properties)
        return [java, self._agent, *rest]


def agent(directory: Path, port: int) -> str:
    """The option of Java for the agent at this port."""
    config = directory / "agent.yml"
    config.write_text(AGENT_CONFIG)
    return f"-javaagent:{kafka.jmx_agent()}=127.0.0.1:{port}:{config}"


def zookeeper_mode(directory: Path) -> Played:
    """Three brokers. The first is started first, and so is the controller."""
    with zookeeper.running(directory / "zookeeper") as ensemble:
        cluster = Cluster(directory, f"{ensemble.address}/kafka", play.SETTINGS)
        brokers = {number: WithAgent(number, directory, f"{ensemble.address}/kafka", play.SETTINGS) for number in (1, 2, 3)}
        cluster.brokers = {**brokers}
        try:
            for one in brokers.values():
                one.start()
                one.wait_ready()
            return play.of_cluster(cluster, lambda number: beans_of_kafka(f"http://127.0.0.1:{brokers[number].agent_port}"))
        finally:
            cluster.end()


def kraft(directory: Path) -> Played:
    port, controller_port, agent_port = free_port(), free_port(), free_port()
    java, *rest = kafka_server.command(directory, 1, port, controller_port, play.SETTINGS)
    with broker.started([java, agent(directory, agent_port), *rest], _LOADED, kafka_server.START_TIMEOUT_S):
        return play.of_one(f"127.0.0.1:{port}", lambda: beans_of_kafka(f"http://127.0.0.1:{agent_port}"))


RECORDED: Mapping[str, Callable[[Path], Played]] = {ZOOKEEPER: zookeeper_mode, KRAFT: kraft}


def file_of(version: str) -> Path:
    return DATA / f"kafka-mbeans-{version}.json"


if __name__ == "__main__":
    os.environ.setdefault("CI", "true")  # Java that is missing is an error
    for version in sys.argv[1:] or RECORDED:
        with tempfile.TemporaryDirectory() as directory:
            recorded = play.as_json(RECORDED[version](Path(directory)))
        play.write(file_of(version), recorded)
        print(f"{file_of(version).name}: {len(recorded['beans'])} MBeans")
