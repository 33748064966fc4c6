"""Transactions as applications know them, by librdkafka and by Java's client: all or nothing, in order, one producer at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import broker
from tests.broker import TopicMaker, topic_maker
from tests.integration.transactions.clients import COMMITTED, UNCOMMITTED, Client, ConfluentClient, Refused

pytestmark = pytest.mark.java

FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "ProducerFencedException", "InvalidProducerEpochException"}
MANY_PARTITIONS = 1000
DEADLINE_S = 20


@pytest.fixture
def topic(new_topic: TopicMaker) -> str:
    return new_topic("clients", partitions=3)


def test_what_is_committed_is_read_by_all(client: Client, topic: str) -> None:
    producer = client.producer(f"{topic}-id")
    producer.begin()
    producer.send(topic, 0, "a")
    producer.send(topic, 1, "b")
    producer.commit()
    wait_for(client, topic, ["a"])
    assert client.read(topic, UNCOMMITTED) == ["a"]
    wait_for(client, topic, ["b"], partition=1)


def test_what_is_aborted_is_read_only_by_who_reads_all(client: Client, topic: str) -> None:
    producer = client.producer(f"{topic}-id")
    for value, ended in (("a", producer.commit), ("b", producer.abort), ("c", producer.commit)):
        producer.begin()
        producer.send(topic, 0, value)
        ended()
    wait_for(client, topic, ["a", "c"])
    assert client.read(topic, UNCOMMITTED) == ["a", "b", "c"]


def test_an_open_transaction_hides_all_that_comes_after_it(client: Client, topic: str) -> None:
    first, second = client.producer(f"{topic}-first"), client.producer(f"{topic}-second")
    first.begin()
    first.send(topic, 0, "a")
    second.begin()
    second.send(topic, 0, "b")
    second.commit()
    assert client.read(topic, COMMITTED) == []
    first.commit()
    wait_for(client, topic, ["a", "b"])


def test_a_second_producer_of_an_id_ends_what_the_first_has_begun_and_stops_it(client: Client, topic: str) -> None:
    first = client.producer(f"{topic}-id")
    first.begin()
    first.send(topic, 0, "zombie")
    second = client.producer(f"{topic}-id")
    second.begin()
    second.send(topic, 0, "a")
    second.commit()
    with pytest.raises(Refused) as refused:
        first.send(topic, 0, "late")
        first.commit()
    assert str(refused.value) in FENCED
    wait_for(client, topic, ["a"])
    assert client.read(topic, UNCOMMITTED) == ["zombie", "a"]


def test_a_producer_that_was_lost_is_followed_by_another(client: Client, topic: str) -> None:
    lost = client.producer(f"{topic}-id")
    lost.begin()
    lost.send(topic, 0, "lost")
    lost.leave()
    producer = client.producer(f"{topic}-id")
    producer.begin()
    producer.send(topic, 0, "a")
    producer.commit()
    wait_for(client, topic, ["a"])


def test_a_transaction_that_never_ends_is_ended_by_the_clock(client: Client, topic: str) -> None:
    slow, other = client.producer(f"{topic}-slow", timeout_ms=1000), client.producer(f"{topic}-other")
    slow.begin()
    slow.send(topic, 0, "slow")
    other.begin()
    other.send(topic, 0, "a")
    other.commit()
    wait_for(client, topic, ["a"])
    with pytest.raises(Refused):
        slow.commit()


def test_offsets_are_committed_with_the_transaction_or_not_at_all(client: Client, topic: str) -> None:
    producer, group = client.producer(f"{topic}-id"), f"{topic}-group"
    for offset, ended in ((5, producer.commit), (9, producer.abort)):
        producer.begin()
        producer.send(topic, 0, f"{offset}")
        producer.send_offset(group, topic, 0, offset)
        ended()
    wait_for(client, topic, ["5"])
    assert client.committed(group, topic) == 5


def test_a_transaction_of_offsets_alone(client: Client, topic: str) -> None:
    producer, group = client.producer(f"{topic}-id"), f"{topic}-group"
    producer.begin()
    producer.send_offset(group, topic, 2, 7)
    producer.commit()
    assert client.committed(group, topic, 2) == 7


def test_transactions_without_records_are_committed_and_aborted(client: Client, topic: str) -> None:
    producer = client.producer(f"{topic}-id")
    for ended in (producer.commit, producer.abort, producer.commit):
        producer.begin()
        ended()
    producer.begin()
    producer.send(topic, 0, "a")
    producer.commit()
    wait_for(client, topic, ["a"])


def test_a_hundred_transactions_after_each_other_keep_their_order(client: Client, topic: str) -> None:
    producer = client.producer(f"{topic}-id")
    for number in range(100):
        producer.begin()
        producer.send(topic, 0, str(number))
        if number % 3:
            producer.commit()
        else:
            producer.abort()
    wait_for(client, topic, [str(number) for number in range(100) if number % 3])


def test_a_transaction_over_a_thousand_partitions_is_all_or_nothing(tmp_path: Path) -> None:
    with short_lived(tmp_path) as bootstrap:
        topic = topic_maker(bootstrap, "once")("thousand", partitions=MANY_PARTITIONS)
        client = ConfluentClient(bootstrap)
        producer = client.producer(f"{topic}-id")
        for value, ended in (("aborted", producer.abort), ("committed", producer.commit)):
            producer.begin()
            producer.send_all(topic, MANY_PARTITIONS, value)
            ended()
        for partition in (0, 499, MANY_PARTITIONS - 1):
            wait_for(client, topic, ["committed"], partition=partition)
            assert client.read(topic, UNCOMMITTED, partition) == ["aborted", "committed"]


@contextmanager
def short_lived(data: Path) -> Generator[str, None, None]:
    """A broker that is killed in the end: to close as many logs as one test here makes takes long."""
    given = broker.given_bootstrap()
    if given is not None:
        yield given
        return
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data", str(data)]
    with broker.started(command, broker.READY, broker.START_TIMEOUT_S, broker.ERROR) as (_, address):
        yield f"{address[1]}:{address[2]}"


def wait_for(client: Client, topic: str, values: list[str], partition: int = 0) -> None:
    """Until a reader of what is committed sees this: a commit is answered before its markers are written."""
    deadline = time.monotonic() + DEADLINE_S
    while (seen := client.read(topic, COMMITTED, partition)) != values:
        assert time.monotonic() < deadline, f"{topic}-{partition} shows {seen}, not {values}"
        assert values[: len(seen)] == seen, f"{topic}-{partition} shows {seen}, which will never become {values}"
