"""A reassignment with a throttle while librdkafka's and Java's clients write and read: the copies keep to the rate, no client sees an
error, and every record is there once, in order. `python -m tests.integration.cluster.throttle --rate 2000000 --megabytes 80` runs it and
prints what it measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics.topics import NewTopic
from barnabas.client.producer.producer import Producer
from tests import cluster, kafka, zookeeper
from tests.integration.cluster.describing import until
from tests.integration.cluster.records import Acknowledged, JavaAcknowledged, Written, in_files

LIBRDKAFKA, JAVA, BULK = "librdkafka", "java", "bulk"
PARTITIONS = 2
FROM, TO = ([1, 2], [2, 1]), ([2, 3], [3, 2])  # the replicas of the partitions of each topic, before and after
RECORD_BYTES = 10_000
PAUSE_MS = 10
LOOK_S = 0.25
MOVE_S = 600
WITHIN = 0.1
PROGRAM = Path(__file__).parent / "java" / "Reading.java"


class Reader:
    """Reads two partitions of a topic with librdkafka, from a thread, until it has read what it is given to wait for."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.records: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self._stop = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "group.id": "throttle", "enable.auto.commit": "false", "auto.offset.reset": "error"}
        self._consumer = Consumer(settings | {"log_level": 0})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(500, timeout=0.2):
                if message.error() is not None:
                    self.errors.append(str(message.error()))
                else:
                    self.records[message.partition() or 0].append((message.offset() or 0, message.value() or b""))


class JavaReader:
    """The same with Kafka's own consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.records: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        command = kafka.source_command(kafka.available(kafka.prepare), PROGRAM, bootstrap, topic, str(PARTITIONS))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._thread.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                words = line.split()
                if len(words) == 3 and words[0].isdecimal():
                    self.records[int(words[0])].append((int(words[1]), words[2].encode()))
                elif "Exception" in line:
                    self.errors.append(line.strip())


class Move:
    """The reassignment of all topics, and how many bytes of them its target had at which time."""

    def __init__(self, three: cluster.Cluster, directory: Path, rate: int) -> None:
        self.seconds = self.size = 0.0
        self._three = three
        self._rate = rate
        self._plan = directory / "plan.json"
        partitions = [
            {"topic": topic, "partition": number, "replicas": replicas}
            for topic in (LIBRDKAFKA, JAVA, BULK)
            for number, replicas in enumerate(TO)
        ]
        self._plan.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def run(self) -> None:
        said = self._tool("--execute", "--throttle", str(self._rate))
        assert f"The inter-broker throttle limit was set to {self._rate} B/s" in said, said
        until(lambda: self._copied() > 0, "the first bytes are copied", MOVE_S)
        began = time.monotonic()
        deadline = began + MOVE_S
        while "Clearing broker-level throttles" not in self._tool("--verify"):
            assert time.monotonic() < deadline, "the reassignment does not end"
            self._look(began)
            time.sleep(LOOK_S)

    def _look(self, began: float) -> None:
        """The rate counts until the bulk is copied: then only what producers write is left."""
        bulk = [self._three.brokers[3].data / f"{BULK}-{number}" for number in range(PARTITIONS)]
        source = [self._three.brokers[2].data / path.name for path in bulk]
        if sum(map(size_of, bulk)) < sum(map(size_of, source)):
            self.seconds, self.size = time.monotonic() - began, self._copied()

    def _copied(self) -> int:
        data = self._three.brokers[3].data
        return sum(size_of(data / f"{topic}-{number}") for topic in (LIBRDKAFKA, JAVA, BULK) for number in range(PARTITIONS))

    def _tool(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "barnabas", "reassign-partitions", "--bootstrap-server", self._three.bootstrap]
        ran = subprocess.run(
            [*command, "--reassignment-json-file", str(self._plan), *arguments], capture_output=True, text=True, check=False
        )
        return ran.stdout + ran.stderr


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def make_topics(bootstrap: str, megabytes: int) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic(topic, replicas_assignments=dict(enumerate(FROM))) for topic in (LIBRDKAFKA, JAVA, BULK)]).all()
    with Producer({"bootstrap.servers": bootstrap, "acks": "all"}) as producer:
        for number in range(megabytes * 1_000_000 // RECORD_BYTES):
            producer.send(BULK, b"v" * RECORD_BYTES, partition=number % PARTITIONS)
        producer.flush()


def check(three: cluster.Cluster, written: Sequence[Written], readers: dict[str, Reader | JavaReader]) -> int:
    for each in written:
        name = f"{each.topic}-{each.partition}"
        assert each.failures == [], f"{name}: {each.failures[:5]}"
        assert [value for _, value in each.values] == [f"value-{number}".encode() for number in range(len(each.values))], name
        assert readers[each.topic].records[each.partition] == each.values, f"{name}: read as it was acknowledged"
        for broker in TO[each.partition]:
            data = three.brokers[broker].data
            until(lambda data=data, each=each: in_files(data, each.topic, each.partition) == each.values, f"{name} on {broker}")  # type: ignore[misc]
    assert [error for reader in readers.values() for error in reader.errors] == []
    assert three.tracebacks() == []
    return sum(len(each.values) for each in written)


def proof(three: cluster.Cluster, directory: Path, rate: int, megabytes: int) -> None:
    make_topics(three.bootstrap, megabytes)
    java = JavaAcknowledged(three.bootstrap, JAVA, PARTITIONS, PAUSE_MS)
    librdkafka = [Acknowledged(three.bootstrap, LIBRDKAFKA, number, PAUSE_MS / 1000) for number in range(PARTITIONS)]
    written: list[Written] = [*librdkafka, *java.written]
    readers: dict[str, Reader | JavaReader] = {LIBRDKAFKA: Reader(three.bootstrap, LIBRDKAFKA), JAVA: JavaReader(three.bootstrap, JAVA)}
    for client in (*librdkafka, java, *readers.values()):
        client.start()
    for each in written:
        each.wait_for_more(100)
    move = Move(three, directory, rate)
    move.run()
    for each in written:
        each.wait_for_more(100)
    for producer in librdkafka:
        producer.stop()
    java.stop()
    until(lambda: all(len(readers[each.topic].records[each.partition]) >= len(each.values) for each in written), "all is read")
    for reader in readers.values():
        reader.stop()
    records = check(three, written, readers)
    measured = move.size / move.seconds
    print(f"{records} records of librdkafka and Java: once, in order, on every replica and for every consumer; no error seen by a client")
    print(f"throttle {rate} B/s, measured {measured:.0f} B/s over {move.seconds:.1f} s: {measured / rate - 1:+.1%}", flush=True)
    assert abs(measured / rate - 1) <= WITHIN, "the rate is not kept within 10 %"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("throttle", description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000_000, help="bytes a second")
    parser.add_argument("--megabytes", type=int, default=80, help="to move, beside what the producers write")
    given = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="throttle-"))
    (directory / "zookeeper").mkdir()
    with zookeeper.running(directory / "zookeeper") as ensemble, cluster.running(directory, ensemble.address) as three:
        print(f"logs in {directory}", flush=True)
        proof(three, directory, given.rate, given.megabytes)
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
