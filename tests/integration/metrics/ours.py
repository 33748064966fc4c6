"""Our brokers, with their metrics, for the workload that was played on Apache Kafka."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.metrics import play
from tests.integration.metrics.beans import beans_of_ours
from tests.integration.metrics.play import Played

_LISTENER: Final = {"metrics.listener": "http://127.0.0.1:0"}


def url_of(broker: BrokerProcess) -> str:
    """That of the metrics of a broker since its last start."""
    matches: list[str] = re.findall(r"Metrics are at (http://\S+)/metrics", broker.said())
    return matches[-1]


def of_cluster(directory: Path) -> Played:
    """Three brokers on ZooKeeper. The first is started first, and so is the controller."""
    with zookeeper.running(directory / "zookeeper") as ensemble:
        three = Cluster(directory, f"{ensemble.address}/ours", {**play.SETTINGS, **_LISTENER})
        try:
            for broker in three.brokers.values():
                broker.start()
                broker.wait_ready()
            return play.of_cluster(three, lambda number: beans_of_ours(url_of(three.brokers[number])))
        finally:
            three.end()
            assert three.tracebacks() == []


def of_one(directory: Path) -> Played:
    """A broker with the metadata store in its own process."""
    broker = BrokerProcess(1, directory, "", {**play.SETTINGS, **_LISTENER})
    broker.start()
    try:
        broker.wait_ready()
        return play.of_one(broker.address, lambda: beans_of_ours(url_of(broker)))
    finally:
        broker.kill()
