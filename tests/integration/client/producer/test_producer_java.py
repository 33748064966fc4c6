"""Kafka's own producer and ours side by side: the partitions of keys, and request by request what each says to the same cluster."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.producer import Producer
from barnabas.client.producer.partitioners import partition_for_key
from barnabas.protocol.messages.produce_request import PartitionProduceData
from barnabas.topic_partition import TopicPartition
from tests import kafka
from tests.unit.client.producer.scripted_broker import ScriptedCluster

pytestmark = pytest.mark.java

READ_WITHIN_S = 10
RECORDS = 204
ORACLE = Path(__file__).parents[1] / "java" / "ProducerOracle.java"


def java(*arguments: str, given: str = "") -> str:
    command = kafka.source_command(kafka.available(kafka.prepare), ORACLE, *arguments)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def producer(bootstrap: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 60000, "delivery.timeout.ms": 120000}, **settings)


def said(cluster: ScriptedCluster) -> list[tuple[str, int, Any]]:
    """The requests in their order; records as their bytes, and partitions of a request by their numbers."""
    return [(kind, version, _contents(message)) for kind, version, message in cluster.requests if kind not in ("ApiVersions", "Metadata")]


def _contents(value: Any) -> Any:
    if hasattr(value, "to_bytes") and hasattr(value, "source"):
        return value.to_bytes()
    if isinstance(value, PartitionProduceData):
        return (value.index, _contents(value.records))
    if hasattr(value, "FIELDS"):
        return {name: _contents(getattr(value, name)) for name in value.FIELDS}
    if isinstance(value, list):
        contents = [_contents(element) for element in value]
        return sorted(contents) if value and isinstance(value[0], PartitionProduceData) else contents
    return value


def wait_for_all(cluster: ScriptedCluster) -> None:
    """A producer that wants no answers may be gone before its last request is read."""
    deadline = time.monotonic() + READ_WITHIN_S
    while sum(map(len, cluster.log.values())) < RECORDS and time.monotonic() < deadline:
        time.sleep(0.01)


def test_keys_go_to_the_same_partitions() -> None:
    source = random.Random(7)
    cases = [(source.randrange(1, 2000), source.randbytes(source.randrange(0, 60))) for _ in range(2000)]
    answers = java("partitions", given="".join(f"{count} {key.hex()}\n" for count, key in cases))
    assert [int(line) for line in answers.split()] == [partition_for_key(key, count) for count, key in cases]


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_the_same_records_are_the_same_requests(acks: str) -> None:
    with ScriptedCluster(partitions=2) as theirs:
        java("send", theirs.bootstrap, acks)
        wait_for_all(theirs)
    with ScriptedCluster(partitions=2) as ours:
        with producer(ours.bootstrap, acks=acks) as sending:
            headers = [("h", b"1"), ("n", None)]
            sending.send("t", b"value", b"key", partition=0, timestamp=1700000000000, headers=headers)
            sending.send("t", b"later", partition=0, timestamp=1700000000500)
            sending.send("t", None, b"tombstone", partition=0, timestamp=1699999999000)
            sending.send("t", b"", b"", partition=0, timestamp=1700000000001)
            for number in range(RECORDS - 4):
                sending.send("t", b"value %d" % number, b"k%d" % number, partition=1, timestamp=1700000000000 + number)
        wait_for_all(ours)
        assert said(ours) == said(theirs)
        assert ours.log == theirs.log


@pytest.mark.parametrize("version", [1, 2])
def test_the_same_transactions_are_the_same_requests(version: int) -> None:
    with ScriptedCluster(transaction_version=version) as theirs:
        java("transactions", theirs.bootstrap)
    with ScriptedCluster(transaction_version=version) as ours:
        with producer(ours.bootstrap, transactional_id="x") as sending:
            sending.init_transactions()
            sending.begin_transaction()
            sending.send("t", b"one", partition=0, timestamp=1700000000000)
            sending.flush()
            group = ConsumerGroupMetadata("g", 3, "member", "instance")
            sending.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(5, "note", 2)}, group)
            sending.commit_transaction()
            sending.begin_transaction()
            sending.send("t", b"two", partition=0, timestamp=1700000000000)
            sending.flush()
            sending.abort_transaction()
            sending.begin_transaction()
            sending.commit_transaction()
            sending.begin_transaction()
            sending.send("t", b"three", partition=0, timestamp=1700000000000)
            sending.flush()
        assert said(ours) == said(theirs)
