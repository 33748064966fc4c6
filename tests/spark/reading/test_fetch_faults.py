"""What a task does when something happens to what it reads: brokers that go away, records that are deleted, topics that are made anew.

No Spark is needed for that: the range is read as a task reads it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic, TopicPartition

from pyspark_barnabas.cluster import ClusterClient
from pyspark_barnabas.errors import DataLossError, TopicRecreatedError
from pyspark_barnabas.read import range_fetcher
from pyspark_barnabas.read.fetch import FetchOptions, read_range
from pyspark_barnabas.read.ranges import OffsetRange
from pyspark_barnabas.read.read_errors import FetchTimeoutError, TopicDeletedError
from pyspark_barnabas.subscription import Subscription
from tests import broker
from tests.broker import TopicMaker

TIMEOUT_S = 30
SMALL = FetchOptions(fetch_bytes=64 * 1024)


def fill(bootstrap: str, topic: str, count: int = 100, size: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.num.messages": 20})
    for number in range(count):
        producer.produce(topic, b"%d" % number + b"." * size)
    assert producer.flush(TIMEOUT_S) == 0


def topic_id(bootstrap: str, topic: str) -> str | None:
    with ClusterClient({"bootstrap.servers": bootstrap}, attempts=3, interval_ms=100) as cluster:
        return cluster.topics(Subscription(topics=frozenset({topic})))[topic].topic_id


def read(bootstrap: str, wanted: OffsetRange, options: FetchOptions = SMALL) -> Iterator[pa.RecordBatch]:
    return read_range(wanted, {"bootstrap.servers": bootstrap}, options)


def offsets(bootstrap: str, wanted: OffsetRange, options: FetchOptions = SMALL) -> list[int]:
    return [offset for batch in read(bootstrap, wanted, options) for offset in batch.column("offset").to_pylist()]


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(TIMEOUT_S)


def delete_topic(bootstrap: str, topic: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while topic in admin.list_topics(timeout=TIMEOUT_S).topics:
        assert time.monotonic() < deadline
    return admin


def test_exactly_the_range_is_read(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("fetch")
    fill(bootstrap, topic)
    identity = topic_id(bootstrap, topic)
    for start, end in ((0, 100), (7, 8), (19, 21), (99, 100), (50, 50)):
        assert offsets(bootstrap, OffsetRange(topic, 0, start, end, identity)) == list(range(start, end))


def test_records_that_retention_took_away_fail_the_task_or_are_left_out(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("retention")
    fill(bootstrap, topic)
    delete_before(bootstrap, topic, 40)
    offset_range = OffsetRange(topic, 0, 10, 60, topic_id(bootstrap, topic))
    with pytest.raises(DataLossError, match=r"offsets 10 to 60 .* 40 to 100 only.*failOnDataLoss"):
        offsets(bootstrap, offset_range)
    tolerant = FetchOptions(fail_on_data_loss=False)
    assert offsets(bootstrap, offset_range, tolerant) == list(range(40, 60))
    assert offsets(bootstrap, OffsetRange(topic, 0, 10, 30, offset_range.topic_id), tolerant) == []


def test_an_end_that_the_log_does_not_have_is_waited_for_no_longer_than_told(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("short")
    fill(bootstrap, topic, 10)
    options = FetchOptions(timeout_ms=700)
    with pytest.raises(FetchTimeoutError, match=r"offset 10 .* 700 ms.*pollTimeoutMs"):
        offsets(bootstrap, OffsetRange(topic, 0, 0, 20, topic_id(bootstrap, topic)), options)
    with pytest.raises(DataLossError, match="0 to 10 only"):
        offsets(bootstrap, OffsetRange(topic, 0, 15, 20, topic_id(bootstrap, topic)), options)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("anew")
    fill(bootstrap, topic)
    offset_range = OffsetRange(topic, 0, 0, 100, topic_id(bootstrap, topic))
    assert len(offsets(bootstrap, offset_range)) == 100
    admin = delete_topic(bootstrap, topic)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    fill(bootstrap, topic)
    with pytest.raises(TopicRecreatedError, match="new checkpoint"):
        offsets(bootstrap, offset_range)


def test_a_topic_that_was_deleted_is_an_error_that_says_so(bootstrap: str, new_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = new_topic("gone")
    fill(bootstrap, topic)
    offset_range = OffsetRange(topic, 0, 0, 100, topic_id(bootstrap, topic))
    delete_topic(bootstrap, topic)
    monkeypatch.setattr(range_fetcher, "UNKNOWN_TOPIC_S_MAX", 0.5)
    with pytest.raises(TopicDeletedError, match="was deleted"):
        offsets(bootstrap, offset_range)
    assert offsets(bootstrap, offset_range, FetchOptions(fail_on_data_loss=False)) == []


def test_a_broker_that_never_comes_is_given_up_in_time() -> None:
    with pytest.raises(FetchTimeoutError, match="pollTimeoutMs"):
        offsets("127.0.0.1:1", OffsetRange("nowhere", 0, 0, 10), FetchOptions(timeout_ms=1500))


@contextmanager
def restarting(data: Path) -> Generator[tuple[str, subprocess.Popen[str], list[str]], None, None]:
    """A broker, and the command that starts it again on the same port."""
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data", str(data)]
    with broker.started(command, broker.READY, broker.START_TIMEOUT_S) as (process, address):
        command[command.index("--port") + 1] = address[2]
        yield f"{address[1]}:{address[2]}", process, command


def test_a_broker_that_is_killed_and_comes_back_costs_no_record(tmp_path: Path) -> None:
    with restarting(tmp_path / "data") as (bootstrap, process, command):
        topic = broker.topic_maker(bootstrap, "x")("killed")
        fill(bootstrap, topic, 5000, size=1000)
        batches = read(bootstrap, OffsetRange(topic, 0, 0, 5000, topic_id(bootstrap, topic)))
        offsets_read = next(batches).column("offset").to_pylist()
        process.kill()
        process.wait()
        with broker.started(command, broker.READY, broker.START_TIMEOUT_S):
            for batch in batches:
                offsets_read += batch.column("offset").to_pylist()
    assert offsets_read == list(range(5000))
