"""A member of a group that reads a topic while something happens to its brokers."""

from __future__ import annotations

import threading

from confluent_kafka import Consumer

from tests.integration.cluster.describing import until


class GroupReader:
    """Reads all partitions from a thread, and keeps what it was given; after a rebalance that may be something twice."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.read: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(partitions)}
        self.errors: list[str] = []
        self._topic = topic
        self._stop = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest", "log_level": 0})
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def count(self) -> int:
        return sum(map(len, self.read.values()))

    def wait_for_more(self, count: int) -> None:
        before = self.count()
        until(lambda: self.count() > before + count, f"{count} more records are read")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self._stop.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                error = message.error()
                if error is None:
                    self.read[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
                else:
                    self.errors.append(str(error))
