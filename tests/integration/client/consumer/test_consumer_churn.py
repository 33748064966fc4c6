"""Members that come and go while records are read: each record is read, and once only where offsets are committed with each poll."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import CommitFailed
from barnabas.errors import RebalanceInProgress
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import DEADLINE_S, numbered, produce

PARTITIONS = 4
PER_PARTITION = 400


class Log:
    """What all members have read, in the order in which they did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: dict[TopicPartition, list[int]] = {}
        self.errors: list[BaseException] = []

    def add(self, records: Any) -> None:
        with self.lock:
            for record in records:
                self.seen.setdefault(record.topic_partition, []).append(record.offset)

    def count(self) -> int:
        with self.lock:
            return sum(len(set(offsets)) for offsets in self.seen.values())


def read_for_a_while(bootstrap: str, topic: str, protocol: str, log: Log, dice: random.Random, deadline: float) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    try:
        while log.count() < PARTITIONS * PER_PARTITION and time.monotonic() < deadline:
            with Consumer[bytes, bytes](settings, group_protocol=protocol, max_poll_records=7) as consumer:
                consumer.subscribe([topic])
                for _ in range(dice.randrange(20, 60)):
                    records = consumer.poll(0.2)
                    if records:
                        try:
                            consumer.commit_sync()
                        except (CommitFailed, RebalanceInProgress):
                            continue  # others own what was read, and will read it
                        log.add(records)
    except BaseException as error:
        log.errors.append(error)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_no_record_is_lost_while_members_come_and_go(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"churn-{protocol}", partitions=PARTITIONS)
    for number in range(PARTITIONS):
        produce(bootstrap, topic, numbered(PER_PARTITION), partition=number)
    log = Log()
    deadline = time.monotonic() + DEADLINE_S
    members = [
        threading.Thread(target=read_for_a_while, args=(bootstrap, topic, protocol, log, random.Random(seed), deadline))
        for seed in range(3)
    ]
    for thread in members:
        thread.start()
    for thread in members:
        thread.join()
    assert log.errors == []
    assert {partition.partition: sorted(set(offsets)) for partition, offsets in log.seen.items()} == {
        number: list(range(PER_PARTITION)) for number in range(PARTITIONS)
    }
    for offsets in log.seen.values():
        assert offsets == sorted(set(offsets))  # committed before the next owner read on: in order, and once
