"""What a program meets that uses a topic for the first time, or names things as Kafka's Java clients and older versions do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from barnabas.client import Admin, AsyncConsumer, AsyncProducer, Consumer, ConsumerConfig, Producer, ProducerConfig, TopicPartition
from barnabas.client.errors import IllegalArgument, IllegalState, RecordDeserializationError
from barnabas.client.network import metadata_updater
from barnabas.testing import EmbeddedBroker, broker
from tests.client_network import on_loop
from tests.logged import lines_of

P = TopicPartition("t", 0)
WAIT_S = 30
INTERNALS = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedBroker]:
    with broker(topics={"t": 1, "six": 6, "one": 6}) as running:
        yield running


def test_a_topic_that_is_being_created_is_no_reason_to_warn(kafka: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        assert producer.send("sent-to-first", b"x").result(WAIT_S).offset == 0
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["read-from-first"])
        consumer.poll(0.5)
    assert lines_of(caplog, metadata_updater, 30) == []


def test_settings_by_javas_constants(kafka: EmbeddedBroker) -> None:
    settings = {ProducerConfig.BOOTSTRAP_SERVERS_CONFIG: kafka.bootstrap_servers, ProducerConfig.ACKS_CONFIG: 1}
    with Producer(settings) as producer:
        producer.send("t", b"by a constant").result(WAIT_S)
    reading = {ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG: kafka.bootstrap_servers, ConsumerConfig.AUTO_OFFSET_RESET_CONFIG: "earliest"}
    with Consumer(reading) as consumer:
        consumer.assign([P])
        assert consumer.poll(WAIT_S)


def test_a_record_that_cannot_be_deserialized_says_why(kafka: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        offset = producer.send("t", b"{no json", key=b"k").result(WAIT_S).offset
    words = rf"^Error deserializing VALUE for partition t-0 at offset {offset}: JSONDecodeError: Expecting property name .*\. If needed"
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, value_deserializer=json.loads) as consumer:
        consumer.assign([P])
        consumer.seek(P, offset)
        with pytest.raises(RecordDeserializationError, match=words) as raised:
            consumer.poll(WAIT_S)
        assert isinstance(raised.value.__cause__, json.JSONDecodeError)

    async def run() -> None:
        async with AsyncConsumer(bootstrap_servers=kafka.bootstrap_servers, value_deserializer=json.loads) as consumer:
            await consumer.assign([P])
            consumer.seek(P, offset)
            with pytest.raises(RecordDeserializationError, match=words):
                await consumer.poll(WAIT_S)

    on_loop(run)


def test_offsets_are_sent_to_a_transaction_with_a_group_id(kafka: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="by-id") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({P: 7}, "by-id")
        with pytest.raises(IllegalArgument, match=r"^The group must be consumer\.group_metadata\(\) or a group id, not None$"):
            producer.send_offsets_to_transaction({P: 8}, None)  # type: ignore[arg-type]

    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="by-id-later") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({P: 9}, "by-id-later")

    on_loop(run)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        for group, offset in (("by-id", 7), ("by-id-later", 9)):
            committed = admin.list_consumer_group_offsets(group)[group][P]
            assert committed is not None and committed.offset == offset


def test_a_record_outside_a_transaction_is_refused_with_names_of_python(kafka: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="outside") as producer:
        with pytest.raises(IllegalState, match=r"^Cannot add topic t to transaction before completing a call to init_transactions$"):
            producer.send("t", b"x")
        producer.init_transactions()
        with pytest.raises(IllegalState, match=r"^Cannot add topic t to transaction while in state READY: call begin_transaction first$"):
            producer.send("t", b"x")


@pytest.mark.parametrize("name", [INTERNALS, "DefaultPartitioner"])
def test_the_old_default_partitioner_keeps_keys_where_they_are(kafka: EmbeddedBroker, name: str) -> None:
    with (
        Producer(bootstrap_servers=kafka.bootstrap_servers, partitioner_class=name) as old,
        Producer(bootstrap_servers=kafka.bootstrap_servers) as new,
    ):
        for number in range(20):
            sent = [producer.send("six", b"", key=b"%d" % number) for producer in (old, new)]
            assert len({delivery.result(WAIT_S).partition for delivery in sent}) == 1


@pytest.mark.parametrize("name", ["org.apache.kafka.clients.producer.UniformStickyPartitioner", "UniformStickyPartitioner", INTERNALS])
def test_the_old_sticky_partitioners_take_another_partition_for_each_batch(kafka: EmbeddedBroker, name: str) -> None:
    key = b"the same" if "Uniform" in name else None  # the one of the two does not look at keys
    with Producer(bootstrap_servers=kafka.bootstrap_servers, partitioner_class=name, linger_ms=0) as producer:
        partitions = [producer.send("six", b"", key=key).result(WAIT_S).partition for _ in range(12)]
    assert all(one != following for one, following in pairwise(partitions)), Counter(partitions)
