"""A random walk through a consumer's calls: whatever is called, records come from the position on, with no gap and from no paused one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import numbered, partitions, produce

PARTITIONS = 3
COUNT = 500
STEPS = 300


class Walk:
    """The consumer, and what its positions should be."""

    def __init__(self, consumer: Consumer[bytes, bytes], topic: str, dice: random.Random) -> None:
        self.consumer = consumer
        self.dice = dice
        self.where = dict.fromkeys(partitions(topic, PARTITIONS), 0)
        self.paused: set[TopicPartition] = set()
        self.read = 0

    def step(self) -> None:
        moves = (self.poll, self.poll, self.poll, self.poll_arrow, self.seek, self.edge, self.pause, self.resume, self.position)
        self.dice.choice(moves)()

    def poll(self) -> None:
        records = self.consumer.poll(self.dice.choice((0, 0.01, 0.2)))
        for partition in records.partitions():
            self.arrived(partition, [record.offset for record in records.records(partition)])

    def poll_arrow(self) -> None:
        batches = self.consumer.poll_arrow(self.dice.choice((0, 0.1)), max_records=self.dice.choice((None, 40)))
        for batch in batches:
            partition = TopicPartition(str(batch.column("topic")[0]), batch.column("partition")[0].as_py())
            self.arrived(partition, batch.column("offset").to_pylist())

    def arrived(self, partition: TopicPartition, offsets: list[Any]) -> None:
        assert partition not in self.paused
        assert offsets == list(range(self.where[partition], self.where[partition] + len(offsets)))
        self.where[partition] += len(offsets)
        self.read += len(offsets)

    def seek(self) -> None:
        partition = self.any()
        self.where[partition] = self.dice.randrange(COUNT)
        self.consumer.seek(partition, self.where[partition])

    def edge(self) -> None:
        partition, to_end = self.any(), self.dice.random() < 0.3
        (self.consumer.seek_to_end if to_end else self.consumer.seek_to_beginning)([partition])
        self.where[partition] = COUNT if to_end else 0

    def pause(self) -> None:
        partition = self.any()
        self.paused.add(partition)
        self.consumer.pause([partition])

    def resume(self) -> None:
        self.consumer.resume(self.where)
        self.paused.clear()

    def position(self) -> None:
        partition = self.any()
        assert self.consumer.position(partition) == self.where[partition]

    def any(self) -> TopicPartition:
        return self.dice.choice(list(self.where))


@pytest.mark.parametrize("seed", range(3))
def test_records_come_from_the_position_on_whatever_is_called(bootstrap: str, new_topic: TopicMaker, seed: int) -> None:
    topic = new_topic(f"walk-{seed}", partitions=PARTITIONS)
    for number in range(PARTITIONS):
        produce(bootstrap, topic, numbered(COUNT), partition=number, batch_size=500 + 3000 * number)
    dice = random.Random(seed)
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "fetch.max.wait.ms": 20}
    most = dice.choice((7, 100, 500))
    with Consumer[bytes, bytes](settings, max_poll_records=most, max_partition_fetch_bytes=dice.choice((1000, 10_000))) as consumer:
        consumer.assign(partitions(topic, PARTITIONS))
        walk = Walk(consumer, topic, dice)
        for _ in range(STEPS):
            walk.step()
    assert walk.read > 0
