"""`--processes`: several broker processes of one machine under one parent, on its own metadata store."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.tools.command_line.exit_codes import ExitCode
from tests.machine import DEADLINE_S, Machine, is_running, until

PARTITIONS = 6
RECORDS = 60  # of one writing, ten for each partition
KILLS = int(os.environ.get("BARNABAS_PROCESS_KILLS", "3"))


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine, None, None]:
    """On any free ports."""
    made = Machine(tmp_path, "up", "--port", "0", "--host", "127.0.0.1", "--no-console", "--data", str(tmp_path / "data"))
    yield made
    made.close()


class Records:
    """What was written and acknowledged, numbered."""

    def __init__(self, topic: str = "t") -> None:
        self.topic = topic
        self.acknowledged: list[int] = []

    def create(self, machine: Machine) -> None:
        admin = AdminClient({"bootstrap.servers": machine.bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)], request_timeout=30)[self.topic].result(60)

    def producer(self, machine: Machine) -> Producer:
        return Producer(
            {"bootstrap.servers": machine.bootstrap, "enable.idempotence": True, "delivery.timeout.ms": DEADLINE_S * 1000, "log_level": 0}
        )

    def write(self, producer: Producer, count: int = RECORDS) -> None:
        """Returns when all are acknowledged, by the leaders of all partitions."""

        def delivered(error: KafkaError | None, message: object) -> None:
            assert error is None, error

        first = len(self.acknowledged)
        for number in range(first, first + count):
            producer.produce(self.topic, str(number).encode(), partition=number % PARTITIONS, on_delivery=delivered)
        assert producer.flush(DEADLINE_S) == 0
        self.acknowledged += range(first, first + count)

    def check(self, machine: Machine) -> None:
        """Each is there once, and in the order of its partition."""
        consumer = Consumer({"bootstrap.servers": machine.bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0})
        read: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])

        def has_all() -> bool:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    read[message.partition() or 0].append(int(message.value() or b""))
            return sum(map(len, read.values())) >= len(self.acknowledged)

        until(has_all, "all records")
        consumer.close()
        assert read == {number: self.acknowledged[number::PARTITIONS] for number in range(PARTITIONS)}


def test_a_child_that_is_killed_under_load_loses_nothing_and_returns(machine: Machine) -> None:
    machine.start("--processes", "3", "--log-level", "info")
    assert machine.nodes == [1, 2, 3]
    records = Records()
    records.create(machine)
    producer = records.producer(machine)
    records.write(producer)
    for kill in range(KILLS):
        node = kill % 3 + 1
        killed = machine.kill_child(node)
        records.write(producer)  # needs the broker that was killed: it leads two of the partitions
        assert machine.children()[node] != killed
    records.check(machine)
    assert machine.stop() == 0
    log = machine.log.read_text()
    assert log.count("it ended by signal 9. It starts again in") == KILLS
    stopped = re.findall(r"\[BrokerServer id=(\d)\] (shutting down|shut down completed) node_id=\1", log)[-6:]
    assert stopped == [(node, what) for node in "321" for what in ("shutting down", "shut down completed")]


def test_children_stop_cleanly_when_their_parent_is_killed(machine: Machine, tmp_path: Path) -> None:
    machine.start("--processes", "2")
    records = Records()
    records.create(machine)
    records.write(records.producer(machine))
    children = machine.kill_parent()
    until(lambda: not any(map(is_running, children)), "the children end")
    assert all((tmp_path / "data" / f"broker-{node}" / ".kafka_cleanshutdown").exists() for node in (1, 2))
    machine.start("--processes", "2")
    records.check(machine)
    assert machine.stop() == 0


def test_data_grows_and_shrinks_with_the_number_of_processes(machine: Machine, tmp_path: Path) -> None:
    records = Records()
    machine.start()
    records.create(machine)
    records.write(records.producer(machine))
    cluster_id = machine.cluster_id
    assert machine.stop() == 0
    for processes in (3, 2, 1):
        machine.start("--processes", str(processes))
        assert (machine.nodes, machine.cluster_id) == (list(range(1, processes + 1)), cluster_id)
        records.write(records.producer(machine))
        records.check(machine)
        if processes == 3:
            machine.kill_all()  # what was not stopped cleanly is first started as it was
        else:
            assert machine.stop() == 0
    assert not (tmp_path / "data" / "broker-1").exists()


def test_directories_that_are_not_converted_are_adopted_and_drained(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/a,{tmp_path}/b\nmetadata.log.dir={tmp_path}/a\n"
        "metrics.listener=http://127.0.0.1:0\n"
        "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
    )
    machine = Machine(tmp_path, "server", str(properties), "--log-level", "warning")
    records = Records()
    try:
        machine.start()
        records.create(machine)
        records.write(records.producer(machine))
        assert machine.stop() == 0
        machine.start("--processes", "2")
        assert machine.nodes == [1, 2]
        assert health(machine) == {"status": "good", "problems": [], "brokers": {"1": "", "2": ""}}
        records.check(machine)
        later = Records("later")
        later.create(machine)  # on both brokers
        later.write(later.producer(machine))
        assert machine.stop() == 0
        machine.start("--processes", "1")
        assert machine.nodes == [1]
        for topic in (records, later):
            topic.write(topic.producer(machine))
            topic.check(machine)
        assert machine.stop() == 0
        assert not (tmp_path / "a" / "broker-2").exists()
    finally:
        machine.close()


def test_a_start_that_cannot_work_is_one_line_and_the_exit_code_of_its_reason(machine: Machine, tmp_path: Path) -> None:
    machine.start("--processes", "2")
    port = machine.bootstrap.rpartition(":")[2]
    taken = up(tmp_path / "other", str(int(port) - 1))
    assert taken.returncode == ExitCode.ADDRESS_UNAVAILABLE
    assert any(line.startswith("barnabas: node 2: ") for line in taken.stderr.splitlines())
    assert up(tmp_path / "data", "0").returncode == ExitCode.DIRECTORY_IN_USE
    assert machine.stop() == 0


def health(machine: Machine) -> object:
    """Of all brokers of the last start together, at the first address of the banner."""
    address = re.findall(r"metrics at (http://[^/]*)/metrics", machine.log.read_text())[-1]
    with urllib.request.urlopen(f"{address}/health/ready", timeout=DEADLINE_S) as response:
        return json.load(response)


def up(data: Path, port: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "up", "--port", port, "--host", "127.0.0.1", "--no-console", "--processes", "2"]
    return subprocess.run([*command, "--data", str(data)], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
