"""Records written with acks of all while a cluster is not well, and what became of them: in every broker's files, and for a consumer."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas.records.reader import records_of

DELIVERY_S = 120


class Acknowledged:
    """Writes numbered records into a partition from a thread, as fast as they are acknowledged, until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0) -> None:
        self.values: list[tuple[int, bytes]] = []  # offset and value
        self.failures: list[str] = []
        self._topic = topic
        self._partition = partition
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": "true",
                "delivery.timeout.ms": DELIVERY_S * 1000,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
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

    def wait_for_more(self, count: int, timeout_s: float = 60) -> None:
        """Until so many more have been acknowledged than now."""
        wanted = len(self.values) + count
        deadline = time.monotonic() + timeout_s
        while len(self.values) < wanted:
            assert time.monotonic() < deadline, f"{len(self.values)} records acknowledged, {wanted} awaited; failures: {self.failures[:3]}"
            time.sleep(0.01)

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._producer.produce(self._topic, f"value-{number}".encode(), partition=self._partition, on_delivery=self._delivered)
            number += 1
            self._producer.poll(0.002)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        offset, value = message.offset(), message.value()
        assert offset is not None and isinstance(value, bytes)
        self.values.append((offset, value))


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
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + 60
    try:
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                found.append((message.offset() or 0, message.value() or b""))
    finally:
        consumer.close()
    return found
