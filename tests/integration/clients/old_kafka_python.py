"""kafka-python 1.4 as a process that takes the commands of java/Client.java; it is told which broker's age to speak for.

    python old_kafka_python.py LIBRARY BOOTSTRAP 0.9

LIBRARY is the directory it was installed to, away from today's kafka-python, which has the same name.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

WAIT_S = 30


def main(library: str, bootstrap: str, age: str) -> None:
    kafka = _load(library)
    client = _Client(kafka, bootstrap, tuple(map(int, age.split("."))))
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split("\t")
        try:
            getattr(client, command)(*words)
            answer = "ok"
        except Exception as problem:  # whatever goes wrong is the answer
            answer = f"error\t{problem!r}".replace("\n", " ")
        print(answer, flush=True)


class _Client:
    def __init__(self, kafka: Any, bootstrap: str, age: tuple[int, ...]) -> None:
        self._kafka = kafka
        self._records = import_module("tests.integration.clients.records")
        self._config = {"bootstrap_servers": bootstrap, "api_version": age}
        self._stamps = age >= (0, 10)

    def produce(self, topic: str, codec: str, file: str) -> None:
        producer = self._kafka.KafkaProducer(
            compression_type=None if codec == "none" else codec, max_request_size=16 << 20, acks="all", linger_ms=20, **self._config
        )
        try:
            sent = [
                producer.send(topic, record.value, record.key, partition=0, timestamp_ms=record.timestamp_ms if self._stamps else None)
                for record in self._records.read_records(Path(file))
            ]
            producer.flush(WAIT_S)
            for one in sent:
                one.get(WAIT_S)
        finally:
            producer.close(WAIT_S)

    def consume(self, topic: str, start: str, count: str, file: str) -> None:
        consumer = self._kafka.KafkaConsumer(
            group_id=None, auto_offset_reset="earliest", enable_auto_commit=False, max_partition_fetch_bytes=4 << 20, **self._config
        )
        try:
            read = self._read(consumer, self._kafka.TopicPartition(topic, 0), start, int(count))
        finally:
            consumer.close()
        self._records.write_records(Path(file), read)

    def _read(self, consumer: Any, partition: Any, start: str, count: int) -> list[Any]:
        consumer.assign([partition])
        kind, _, number = start.partition(":")
        if kind == "beginning":
            consumer.seek_to_beginning(partition)
        elif kind == "offset":
            consumer.seek(partition, int(number))
        else:
            consumer.seek(partition, consumer.offsets_for_times({partition: int(number)})[partition].offset)
        read: list[Any] = []
        deadline = time.monotonic() + WAIT_S
        while len(read) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count - len(read)} of {count} records did not come")
            for message in consumer.poll(500, count - len(read)).get(partition, []):
                stamp = -1 if message.timestamp is None else message.timestamp
                read.append(self._records.Record(message.offset, stamp, message.key, message.value))
        return read


def _load(library: str) -> Any:
    """Its copy of six cannot be imported by Python 3.12 and newer: today's six takes its place."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, library)
    six = import_module("six")
    sys.modules["kafka.vendor.six"] = six
    sys.modules["kafka.vendor.six.moves"] = six.moves
    return import_module("kafka")


if __name__ == "__main__":
    main(*sys.argv[1:])
