"""Our producers against Apache Kafka and against our broker; what was written is read by librdkafka."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import InvalidTopic, ProducerFenced
from barnabas.client.producer import AsyncProducer, Producer, ProducerRecord, RoundRobinPartitioner
from barnabas.client.serialization import IntegerSerializer, StringSerializer
from barnabas.errors import InvalidRecord, InvalidTimestamp, InvalidTxnState, RecordTooLarge
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker

WAIT_S = 30


def records(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[Message]:
    """Everything in the topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    consumer.assign([Place(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    messages: list[Message] = []
    ends = 0
    deadline = time.monotonic() + WAIT_S
    while ends < partitions:
        assert time.monotonic() < deadline, "the topic has no end"
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            messages.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            ends += 1
        else:
            raise AssertionError(error)
    consumer.close()
    return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def values(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[Any]:
    return [message.value() for message in records(bootstrap, topic, partitions, isolation)]


def test_a_record_arrives_with_everything_it_has(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("whole", partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        metadata = producer.send(
            ProducerRecord(topic, b"value", b"key", partition=1, timestamp=1700000000000, headers=[("a", b"1"), ("b", None), ("a", b"")])
        ).result(WAIT_S)
        assert (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp) == (topic, 1, 0, 1700000000000)
        assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 5)
        producer.send(topic, None, b"tombstone", partition=1).result(WAIT_S)
        producer.send(topic, b"no key", partition=1).result(WAIT_S)
    first, tombstone, keyless = records(bootstrap, topic, 2)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"key", b"value", 1700000000000)
    assert first.headers() == [("a", b"1"), ("b", None), ("a", b"")]
    assert (tombstone.key(), tombstone.value()) == (b"tombstone", None)
    assert (keyless.key(), keyless.value()) == (None, b"no key")


def test_the_three_ways_to_send(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("ways")
    called: list[int] = []
    with Producer(bootstrap_servers=bootstrap, value_serializer=StringSerializer()) as producer:
        producer.send(topic, "fire and forget")
        assert producer.send(topic, "wait").result(WAIT_S).offset == 1
        producer.send(topic, "callback", callback=lambda metadata, error: called.append(metadata.offset if metadata else -1))
    assert values(bootstrap, topic) == [b"fire and forget", b"wait", b"callback"]
    assert called == [2]


def test_callbacks_of_a_partition_come_in_the_order_of_sending(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("callbacks", partitions=2)
    called: dict[int, list[int]] = {0: [], 1: []}

    def noting(partition: int, number: int) -> Any:
        return lambda metadata, error: called[partition].append(number)

    with Producer(bootstrap_servers=bootstrap, batch_size=200) as producer:
        for number in range(500):
            producer.send(topic, b"%d" % number, partition=number % 2, callback=noting(number % 2, number))
    assert called == {0: list(range(0, 500, 2)), 1: list(range(1, 500, 2))}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap: str, new_topic: TopicMaker, acks: str) -> None:
    topic = new_topic(f"acks-{acks}")
    with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        metadata = producer.send(topic, b"v").result(WAIT_S)
    assert metadata.offset == (-1 if acks == "0" else 0)
    assert values(bootstrap, topic) == [b"v"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(bootstrap: str, new_topic: TopicMaker, codec: str) -> None:
    topic = new_topic(f"compressed-{codec}")
    contents = [b"the same words again and again %d" % number for number in range(2000)]
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for content in contents:
            producer.send(topic, content)
        producer.flush()
        metrics = {name.name: metric.metric_value() for name, metric in producer.metrics().items() if name.group == "producer-metrics"}
    assert values(bootstrap, topic) == contents
    ratio = metrics["compression-rate-avg"]
    assert isinstance(ratio, float)
    assert 0 < ratio < 0.9


def test_much_of_it(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("much", partitions=3)
    with Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        deliveries = [producer.send(topic, b"%0100d" % number, key=b"%d" % (number % 50)) for number in range(10000)]
        producer.flush()
        assert all(delivery.done() and delivery.exception() is None for delivery in deliveries)
    received = records(bootstrap, topic, 3)
    assert sorted(int(message.value() or b"") for message in received) == list(range(10000))
    for partition in range(3):
        mine = [int(message.value() or b"") for message in received if message.partition() == partition]
        assert mine == sorted(mine)
        assert all(deliveries[number].result(0).partition == partition for number in mine)


def test_topics_are_made_when_they_are_first_sent_to(bootstrap: str) -> None:
    topic = f"made-by-sending-{time.time_ns()}"
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(topic, b"v").result(WAIT_S).offset == 0
        assert [info.partition for info in producer.partitions_for(topic)] == [0]


def test_a_name_that_no_topic_can_have_is_refused(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap, max_block_ms=10000) as producer:
        assert isinstance(producer.send("no topic", b"v").exception(WAIT_S), InvalidTopic)


def test_a_record_too_large_for_the_broker_fails(bootstrap: str, new_topic: TopicMaker) -> None:
    """The example of the specification, with the limit of the topic: smaller than what the client allows."""
    topic = new_topic("limited", max_message_bytes=100)
    with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(RecordTooLarge):
            producer.send(topic, bytes(150)).result(WAIT_S)
        assert producer.send(topic, b"small").result(WAIT_S).offset == 0


def test_a_batch_too_large_for_the_broker_is_split(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("split", max_message_bytes=2000)
    contents = [b"%0200d" % number for number in range(60)]
    with Producer(bootstrap_servers=bootstrap, linger_ms=100) as producer:
        deliveries = [producer.send(topic, content) for content in contents]
        producer.flush()
        assert [delivery.result(0).offset for delivery in deliveries] == list(range(60))
        split = next(metric for name, metric in producer.metrics().items() if name.name == "batch-split-total")
        assert split.metric_value() != 0
    assert values(bootstrap, topic) == contents


def test_records_without_a_key_in_a_compacted_topic_are_named(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("compacted", cleanup_policy="compact")
    with Producer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
        good, bad = producer.send(topic, b"v", key=b"k"), producer.send(topic, b"v")
        assert isinstance(bad.exception(WAIT_S), InvalidRecord)
        assert "part of a batch which had one more more invalid records" in str(good.exception(WAIT_S))
        assert producer.send(topic, b"v", key=b"k").result(WAIT_S).offset == 0


def test_a_timestamp_the_topic_does_not_take(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("timely", message_timestamp_before_max_ms=1000)
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert isinstance(producer.send(topic, b"v", timestamp=1000).exception(WAIT_S), InvalidTimestamp)


def test_log_append_time_is_told(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("stamped", message_timestamp_type="LogAppendTime")
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert abs(producer.send(topic, b"v", timestamp=5).result(WAIT_S).timestamp - time.time() * 1000) < 60000


def test_round_robin(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("rounds", partitions=3)
    with Producer(bootstrap_servers=bootstrap, partitioner_class=RoundRobinPartitioner) as producer:
        assert [producer.send(topic, b"v").result(WAIT_S).partition for _ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_records_without_a_key_reach_all_partitions(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("spread", partitions=3)
    with Producer(bootstrap_servers=bootstrap, batch_size=500) as producer:
        deliveries = [producer.send(topic, bytes(100)) for _ in range(1000)]
        producer.flush()
        counts = [sum(delivery.result(0).partition == partition for delivery in deliveries) for partition in range(3)]
    assert min(counts) > 100


@given(st.lists(st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=300)), max_size=20))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_is_read(bootstrap: str, new_topic: TopicMaker, contents: list[tuple[bytes | None, bytes | None]]) -> None:
    topic = new_topic("anything")
    with Producer(bootstrap_servers=bootstrap, linger_ms=1) as producer:
        for key, value in contents:
            producer.send(topic, value, key=key)
    assert [(message.key(), message.value()) for message in records(bootstrap, topic)] == contents


def test_integers_as_java_writes_them(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("integers")
    with Producer(bootstrap_servers=bootstrap, key_serializer=IntegerSerializer(), value_serializer=StringSerializer()) as producer:
        producer.send(topic, "ü", key=-2)
    (message,) = records(bootstrap, topic)
    assert (message.key(), message.value()) == (b"\xff\xff\xff\xfe", "ü".encode())


def test_the_asynchronous_producer(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("asynchronous")

    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(1000)]
            await producer.flush()
            assert [(await delivery).offset for delivery in deliveries] == list(range(1000))

    asyncio.run(run())
    assert values(bootstrap, topic) == [b"%d" % number for number in range(1000)]


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (place,) = consumer.committed([Place(topic, 0)], timeout=WAIT_S)
    consumer.close()
    return int(place.offset)


def test_committed_and_aborted_transactions(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("transactions", partitions=2)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"kept 0", partition=0)
            producer.send(topic, b"kept 1", partition=1)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"dropped", partition=0).result(WAIT_S)
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(topic, b"kept 2", partition=0)
        with producer.transaction():
            pass
        producer.begin_transaction()
        producer.send(topic, b"left open", partition=0).result(WAIT_S)
    assert values(bootstrap, topic, 2) == [b"kept 0", b"kept 2", b"kept 1"]
    assert b"dropped" in values(bootstrap, topic, 2, "read_uncommitted")


def test_offsets_go_with_the_transaction(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("offsets")
    group = f"{topic}-group"
    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(5, "note")}
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(group))
        producer.abort_transaction()
        assert committed(bootstrap, group, topic) < 0
        with producer.transaction():
            producer.send(topic, b"v")
            producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(group))
    assert committed(bootstrap, group, topic) == 5


def test_a_newer_producer_of_the_same_id_fences_the_older(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("fencing")
    with (
        Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as older,
        Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as newer,
    ):
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"of the older").result(WAIT_S)
        newer.init_transactions()
        with newer.transaction():
            newer.send(topic, b"of the newer")
        with pytest.raises(ProducerFenced):
            older.commit_transaction()
        with pytest.raises(ProducerFenced):
            older.begin_transaction()
    assert values(bootstrap, topic) == [b"of the newer"]


def test_a_transaction_that_took_too_long_cannot_be_committed(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("slow")
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id", transaction_timeout_ms=500) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"late").result(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while not _ended(bootstrap, topic):
            assert time.monotonic() < deadline
        with pytest.raises(InvalidTxnState):
            producer.commit_transaction()
    assert values(bootstrap, topic) == []


def _ended(bootstrap: str, topic: str) -> bool:
    """Whether the coordinator has put its marker behind the only record."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watermarks"})
    _, high = consumer.get_watermark_offsets(Place(topic, 0), timeout=WAIT_S)
    consumer.close()
    return bool(high > 1)


def test_many_transactions_one_after_the_other(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("series", partitions=3)
    kept = []
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        producer.init_transactions()
        for number in range(30):
            producer.begin_transaction()
            for partition in range(3):
                producer.send(topic, b"%d" % number, partition=partition)
            if number % 3:
                producer.commit_transaction()
                kept.append(b"%d" % number)
            else:
                producer.abort_transaction()
    assert values(bootstrap, topic, 3) == kept * 3


def test_the_asynchronous_producer_in_transactions(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-transactions")

    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(topic, b"kept")
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"dropped")
                    raise ZeroDivisionError

    asyncio.run(run())
    assert values(bootstrap, topic) == [b"kept"]
