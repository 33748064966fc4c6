"""Records written with acks of all while a cluster is not well, and what became of them: in every broker's files, and for a consumer."""

from __future__ import annotations

import subprocess
import threading
import time
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import IO

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas.records.reader import records_of
from tests import kafka

DELIVERY_S = 120
ON_ITS_WAY_S = 0.5
RETRY_MS = 250  # at most so long does a client wait before it looks for the leader again
PROGRAM = Path(__file__).parent / "java" / "Numbered.java"


class Written:
    """What was acknowledged of the numbered records of one partition, in the order in which it was."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.values: list[tuple[int, bytes]] = []  # offset and value
        self.times: list[float] = []  # when they were, by time.monotonic
        self.failures: list[str] = []

    def wait_for_more(self, count: int, timeout_s: float = 60) -> None:
        """Until so many more have been acknowledged than now."""
        target = len(self.values) + count
        deadline = time.monotonic() + timeout_s
        while len(self.values) < target:
            summary = f"{self.topic}-{self.partition}: {len(self.values)} records acknowledged, {target} awaited"
            assert time.monotonic() < deadline, f"{summary}; failures: {self.failures[:3]}"
            time.sleep(0.01)

    def outage(self, since: float) -> float:
        """How long after a leader's end the next one's first acknowledgement came: at the end of the longest time without any that began
        with it. What was on its way from the dead one may still have come in."""
        acknowledged = [since, *self.times[bisect_left(self.times, since) :]]
        gaps = [(later - earlier, later) for earlier, later in pairwise(acknowledged) if earlier <= since + ON_ITS_WAY_S]
        return max(gaps)[1] - since

    def note(self, offset: int, value: bytes) -> None:
        self.times.append(time.monotonic())
        self.values.append((offset, value))


class Acknowledged(Written):
    """Writes numbered records into a partition from a thread, as fast as they are acknowledged, until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0, pause_s: float = 0.002) -> None:
        super().__init__(topic, partition)
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": "true",
                "delivery.timeout.ms": DELIVERY_S * 1000,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": RETRY_MS,
                "retry.backoff.max.ms": RETRY_MS,
                "socket.timeout.ms": 10_000,  # for so long it waits for a leader that sleeps before it asks who leads now
                "log_level": 0,  # brokers that are not there are nothing to tell of
            }
        )
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """And waits until everything that was sent is acknowledged, or has failed."""
        self._stop.set()
        self._thread.join()
        self._producer.flush(DELIVERY_S)

    def end(self) -> None:
        """At once, whatever is acknowledged."""
        self._stop.set()
        self._thread.join()
        self._producer.purge()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._producer.produce(self.topic, f"value-{number}".encode(), partition=self.partition, on_delivery=self._delivered)
            number += 1
            self._producer.poll(self._pause_s)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        offset, value = message.offset(), message.value()
        assert offset is not None and isinstance(value, bytes)
        self.note(offset, value)


class JavaAcknowledged:
    """The same by Kafka's own producer, in a process of its own, into some partitions at once."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1, pause_ms: int = 10) -> None:
        self.written = [Written(topic, number) for number in range(partitions)]
        self._arguments = (bootstrap, topic, str(partitions), str(pause_ms), str(RETRY_MS))
        self._noise: list[str] = []

    def start(self) -> None:
        command = kafka.source_command(kafka.available(kafka.prepare), PROGRAM, *self._arguments)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(DELIVERY_S)
        self._thread.join()
        assert self._process.returncode == 0, self._noise

    def end(self) -> None:
        """At once, whatever is acknowledged."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self._take(lines)

    def _take(self, lines: IO[str]) -> None:
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[0].isdecimal():
                self.written[int(words[0])].note(int(words[1]), words[2].encode())
            elif words and words[0] == "failed":
                self.written[int(words[1])].failures.append(line.strip())
            else:
                self._noise = [*self._noise[-20:], line.strip()]


def in_files(data: Path, topic: str, partition: int = 0) -> list[tuple[int, bytes]]:
    """Offsets and values of a replica, as its segment files have them."""
    return [(record.offset, record.value or b"") for record in records_of(segment_bytes(data, topic, partition))]


def segment_bytes(data: Path, topic: str, partition: int = 0) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((data / f"{topic}-{partition}").glob("*.log")))


def consumed(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[tuple[int, bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "check", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    records: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + 60
    try:
        while len(records) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                records.append((message.offset() or 0, message.value() or b""))
    finally:
        consumer.close()
    return records
