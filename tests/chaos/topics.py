"""The topics of a chain: made, filled with numbered records, and read to their end as either kind of reader."""

from __future__ import annotations

import time
from dataclasses import dataclass

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

WAIT_S = 60
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass(frozen=True)
class Read:
    offset: int
    value: str


def make_topics(bootstrap: str, names: list[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        made.result(WAIT_S)


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    """So many records in each partition, numbered."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    for number in range(count):
        for partition in range(partitions):
            _produce(producer, topic, partition, str(number).encode())
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def _produce(producer: confluent_kafka.Producer, topic: str, partition: int, value: bytes) -> None:
    """Waits for room while the producer's queue is full."""
    while True:
        try:
            return producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.1)


def read(bootstrap: str, topic: str, partitions: int, isolation: str) -> list[list[Read]]:
    """By partition all that such a reader sees now."""
    config = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    at_once = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = confluent_kafka.Consumer({**config, **at_once, "isolation.level": isolation})
    reads: list[list[Read]] = [[] for _ in range(partitions)]
    ended: set[int | None] = set()
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, confluent_kafka.OFFSET_BEGINNING) for number in range(partitions)])
        deadline = time.monotonic() + WAIT_S
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"{topic} does not end"
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    reads[message.partition() or 0].append(Read(message.offset() or 0, (message.value() or b"").decode()))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
    finally:
        consumer.close()
    return reads


def values(bootstrap: str, topic: str, partitions: int, isolation: str) -> list[list[str]]:
    return [[record.value for record in some] for some in read(bootstrap, topic, partitions, isolation)]


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """By partition what a group has committed."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        partitions_asked = [confluent_kafka.TopicPartition(topic, partition) for partition in range(partitions)]
        return [committed.offset for committed in consumer.committed(partitions_asked, WAIT_S)]
    finally:
        consumer.close()
