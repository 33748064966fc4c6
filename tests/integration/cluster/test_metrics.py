"""Metrics and health of three brokers: what each shows of itself, and what changes when one of them is killed."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest

from barnabas.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer
from barnabas.topic_partition import TopicPartition
from tests import cluster, zookeeper
from tests.cluster import BrokerProcess, Cluster, free_port
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import until

RECORDS = 30


@pytest.fixture
def measured(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> Generator[Cluster, None, None]:
    """Three brokers with one metrics.listener: each takes the next port that is free."""
    listener = f"http://127.0.0.1:{free_port()}"
    with cluster.running(tmp_path, next_chroot(ensemble), {"metrics.listener": listener}) as running:
        yield running


def get(broker: BrokerProcess, path: str) -> tuple[int, str]:
    matches = re.findall(r"Metrics are at (http://\S+)/metrics", broker.said())
    assert matches, broker.said()[-2000:]
    try:
        with urllib.request.urlopen(matches[-1] + path, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scrape(broker: BrokerProcess) -> dict[str, float]:
    status, text = get(broker, "/metrics")
    assert status == 200
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


def total(three: Cluster, name: str) -> float:
    """The sum over the brokers that run; a series that none of them has is -1."""
    values = [value for broker in three.brokers.values() if broker.is_running and (value := scrape(broker).get(name)) is not None]
    return sum(values) if values else -1


def test_three_brokers_show_their_parts_of_a_cluster_and_a_failure(measured: Cluster) -> None:
    bootstrap = {"bootstrap.servers": measured.bootstrap}
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic("t", replicas_assignments={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})]).all()
    with Producer(bootstrap) as producer:
        for number in range(RECORDS):
            producer.send("t", value=b"x" * 100, partition=number % 3)
    partitions = [TopicPartition("t", number) for number in range(3)]
    with Consumer({**bootstrap, "group.id": "readers"}) as consumer:
        consumer.commit_sync({partition: OffsetAndMetadata(4) for partition in partitions})

    prefix = "kafka_server_brokertopicmetrics_"
    until(lambda: total(measured, f'{prefix}messagesin_total{{topic="t"}}') == RECORDS, "each record counts at its leader")
    until(lambda: total(measured, "kafka_server_replicamanager_underreplicatedpartitions") == 0, "all are in sync")
    assert total(measured, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert total(measured, "kafka_controller_kafkacontroller_globaltopiccount") >= 1
    assert total(measured, f"{prefix}replicationbytesin_total") > RECORDS * 2 * 100
    assert total(measured, f"{prefix}replicationbytesout_total") > RECORDS * 2 * 100
    assert total(measured, 'kafka_network_requestmetrics_totaltimems_count{request="FetchFollower"}') > 0
    assert [scrape(broker)["kafka_brokers"] for broker in measured.brokers.values()] == [3, 3, 3]
    assert [get(broker, "/health/ready")[0] for broker in measured.brokers.values()] == [200, 200, 200]
    lag = 'kafka_consumergroup_lag{consumergroup="readers",topic="t",partition="%d"}'
    until(lambda: [total(measured, lag % number) for number in range(3)] == [6, 6, 6], "lag of partitions that other brokers lead")
    seconds = 'kafka_consumergroup_lag_seconds{consumergroup="readers",topic="t",partition="%d"}'
    until(lambda: all(0 < total(measured, seconds % number) < 600 for number in range(3)), "the age of the first unread records there")

    measured.brokers[3].kill()
    until(lambda: total(measured, "kafka_server_replicamanager_underreplicatedpartitions") >= 3, "partitions lack a replica")
    assert total(measured, "kafka_server_replicamanager_isrshrinks_total") >= 0
    status, text = get(measured.brokers[1], "/health/cluster")
    assert (status, json.loads(text)["brokers"]) == (503, [1, 2])
    assert get(measured.brokers[1], "/health/ready")[0] == 200
    measured.brokers[3].start()
    measured.brokers[3].wait_ready()
    until(lambda: total(measured, "kafka_server_replicamanager_underreplicatedpartitions") == 0, "all are in sync again")
    assert total(measured, "kafka_server_replicamanager_isrexpands_total") >= 1
    assert get(measured.brokers[1], "/health/cluster")[0] == 200
    assert measured.tracebacks() == []
