"""`barnabas convert`: what one broker has is served by three, and by one again, with nothing lost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker import running
from tests.integration.cluster.describing import Description, until

BAD = re.compile(r"^Traceback |^\S+ CRITICAL ")
DEADLINE_S = 60
QUICK_CLEANER = ["--override", "log.cleaner.backoff.ms=100"]
TOPICS = {"orders": 3, "broker": 2, "latest": 1}
GROUP = "readers"
DELETED_BELOW = 7

Partition = tuple[str, int]
Contents = dict[Partition, tuple[int, int, list[tuple[int, bytes | None, bytes | None, int]]]]


def barnabas(*arguments: str) -> tuple[int, str]:
    """The exit code, and all that was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.returncode, done.stdout


def convert(data: Path, brokers: int, *options: str) -> str:
    code, text = barnabas("convert", "--data", str(data), "--brokers", str(brokers), *options)
    assert code == 0, text
    return text


def write(bootstrap: str, prefix: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(30):
        producer.produce("orders", f"{prefix}-{number}", f"key-{number}", partition=number % 3)
        producer.produce("latest", f"{prefix}-{number}", f"key-{number % 5}")
    assert producer.flush(DEADLINE_S) == 0


def write_transactions(bootstrap: str, prefix: str) -> None:
    """One that commits, one that aborts, by the same id each time."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
    producer.init_transactions(DEADLINE_S)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce("broker", f"{prefix}-{end.__name__}", partition=partition)
        producer.flush(DEADLINE_S)
        end(DEADLINE_S)


def read(bootstrap: str) -> Contents:
    """What a reader of committed records gets of every partition, with the offsets at which it begins and ends."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "compare", "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    contents: Contents = {}
    for topic, count in TOPICS.items():
        for number in range(count):
            partition = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(partition, timeout=DEADLINE_S)
            contents[topic, number] = (low, high, [])
    consumer.assign([TopicPartition(topic, number, low) for (topic, number), (low, _, _) in contents.items()])
    at_end: set[Partition] = set()
    while len(at_end) < len(contents):
        message = consumer.poll(DEADLINE_S)
        assert message is not None, "no record and no end of a partition"
        error = message.error()
        where = (str(message.topic()), int(message.partition() or 0))
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            at_end.add(where)
        else:
            offset = message.offset()
            assert offset is not None
            contents[where][2].append((offset, message.key(), message.value(), message.timestamp()[1]))
    consumer.close()
    return contents


def committed(bootstrap: str) -> dict[Partition, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])[GROUP].result(timeout=DEADLINE_S)
    return {(committed.topic, committed.partition): committed.offset for committed in offsets.topic_partitions or []}


def commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("orders", number, offset) for number in range(3)], asynchronous=False)
    consumer.close()


def read_lasting(bootstrap: str) -> Contents:
    """The same, but of the compacted topic only the last record of each key: the cleaner may take the others at any time."""
    contents = read(bootstrap)
    low, high, records = contents["latest", 0]
    contents["latest", 0] = low, high, sorted({key: (offset, key, value, at) for offset, key, value, at in records}.values())
    return contents


def is_compacted(bootstrap: str) -> bool:
    low, high, records = read(bootstrap)["latest", 0]
    return len(records) < high - low


def fill(bootstrap: str) -> None:
    described = Description(bootstrap)
    for topic, partitions in TOPICS.items():
        settings = {"cleanup_policy": "compact", "segment_ms": "1", "min_cleanable_dirty_ratio": "0.01"} if topic == "latest" else {}
        described.create(topic, partitions, 1, **settings)
    write(bootstrap, "first")
    write_transactions(bootstrap, "first")
    commit(bootstrap, 4)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition("orders", 0, DELETED_BELOW)])[TopicPartition("orders", 0)].result(timeout=DEADLINE_S)
    write(bootstrap, "second")
    until(lambda: is_compacted(bootstrap), "the compacted topic is cleaned")


def test_one_broker_becomes_three_and_one_again_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, QUICK_CLEANER, BAD) as bootstrap:
        fill(bootstrap)
        before, groups = read_lasting(bootstrap), committed(bootstrap)
        code, text = barnabas("convert", "--data", str(data), "--brokers", "3")
        assert code == 4 and "is in use by a broker" in text
    assert before["orders", 0][0] == DELETED_BELOW and len(before["broker", 1][2]) == 1

    assert "Nothing was changed" in convert(data, 3, "--dry-run")
    assert "to be moved, by renaming" in convert(data, 3)
    with running(data, ["--brokers", "3"], BAD) as bootstrap:
        described = Description(bootstrap)
        everything = [*((topic, number) for topic, count in TOPICS.items() for number in range(count)), ("__transaction_state", 0)]
        until(lambda: all(described.isr(*place) == {1, 2, 3} for place in everything), "all replicas in sync")
        assert read_lasting(bootstrap) == before and committed(bootstrap) == groups
        write(bootstrap, "third")
        write_transactions(bootstrap, "third")
        commit(bootstrap, 9)
        after, groups = read_lasting(bootstrap), committed(bootstrap)
        assert len(after["broker", 0][2]) == 2

    assert "other replicas have all of it" in convert(data, 1)
    with running(data, [], BAD) as bootstrap:
        assert read_lasting(bootstrap) == after and committed(bootstrap) == groups
        write_transactions(bootstrap, "fourth")
        assert len(read_lasting(bootstrap)["broker", 0][2]) == 3
    assert not list(data.glob("*stray*"))


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1), (3, 2)])
def test_another_number_of_brokers_is_refused_and_changes_nothing(tmp_path: Path, first: int, second: int) -> None:
    data = tmp_path / "data"
    with running(data, ["--brokers", str(first)], BAD) as bootstrap:
        Description(bootstrap).create("orders", 1, 1)
    before = sorted(path.relative_to(data) for path in data.rglob("*"))
    code, text = barnabas("up", "--port", "0", "--data", str(data), "--brokers", str(second))
    assert code == 5
    assert text == (
        f"barnabas: {data} was made for {first} broker{'s' if first > 1 else ''}, not for {second}: name another directory with --data, "
        f"or move the data with: barnabas convert --data {data} --brokers {second}\n"
    )
    assert sorted(path.relative_to(data) for path in data.rglob("*")) == before


def test_a_server_does_not_take_the_directories_of_several_brokers_for_topics(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, ["--brokers", "2"], BAD) as bootstrap:
        Description(bootstrap).create("orders", 1, 1)
    before = sorted(path.relative_to(data) for path in data.rglob("*"))
    code, text = barnabas("server", "--override", f"log.dirs={data}", "--override", "listeners=PLAINTEXT://127.0.0.1:0")
    assert code == 5 and "was made for several brokers" in text.splitlines()[-1]
    assert sorted(path.relative_to(data) for path in data.rglob("*")) == before
