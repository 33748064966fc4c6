"""`barnabas up --brokers N`: a cluster in one process, for laptops and tests."""

from __future__ import annotations

import re
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.broker import running
from tests.integration.cluster.describing import Description, until

COUNT = 60
READ_TIMEOUT_S = 180  # 60 s were not enough for three brokers in one process on a machine with a load of 15
BAD = re.compile(r"^Traceback |^\S+ CRITICAL ")


def write(bootstrap: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(first, first + COUNT):
        producer.produce("t", str(number).encode(), partition=number % 3)
    producer.commit_transaction(60)


def read(bootstrap: str, group: str, count: int) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    )
    consumer.subscribe(["t"])
    ports: list[int] = []
    deadline = time.monotonic() + READ_TIMEOUT_S
    while len(ports) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            ports.append(int(message.value() or b""))
    consumer.close()
    return sorted(ports)


def test_three_brokers_in_one_process_are_a_cluster_and_keep_what_they_have(tmp_path: Path) -> None:
    with running(tmp_path / "data", ["--brokers", "3"], BAD) as bootstrap:
        described = Description(bootstrap)
        described.create("t", partitions=3)
        until(lambda: all(described.isr("t", number) == {1, 2, 3} for number in range(3)), "all in sync")
        assert {described.leader("t", number) for number in range(3)} == {1, 2, 3}
        write(bootstrap, 0)
        assert read(bootstrap, "g", COUNT) == list(range(COUNT))
    with running(tmp_path / "data", ["--brokers", "3"], BAD) as bootstrap:
        described = Description(bootstrap)
        until(lambda: all(described.isr("t", number) == {1, 2, 3} for number in range(3)), "all in sync again")
        write(bootstrap, COUNT)
        assert read(bootstrap, "other", 2 * COUNT) == list(range(2 * COUNT))
    assert {path.name for path in (tmp_path / "data").iterdir()} >= {"barnabas.db", "broker-1", "broker-2", "broker-3"}
