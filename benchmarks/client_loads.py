"""`python -m benchmarks.client_loads CLIENT produce|consume BOOTSTRAP TOPIC COUNT`: one Python client under load, in a process of its own.

Prints how many records a second it produced, all acknowledged, or consumed. Connecting and finding the topic do not count. Each client is
used as its own documentation would have it for speed, with settings that mean the same.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

VALUE = b"v" * 100
PARTITIONS = 4
LINGER_MS = 5
BATCH_BYTES = 16_384
POLL_RECORDS = 500
POLL_SECONDS = 1.0

Load = Callable[[str, str, int], float]


def main() -> None:
    client, doing, bootstrap, topic, count = sys.argv[1:]
    print(LOADS[client, doing](bootstrap, topic, int(count)))


def barnabas_produce(bootstrap: str, topic: str, count: int) -> float:
    from barnabas.client import Producer

    with Producer({"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS, "batch.size": BATCH_BYTES}) as producer:
        producer.send(topic, VALUE).result()
        started = time.perf_counter()
        for _ in range(count):
            producer.send(topic, VALUE)
        producer.flush()
        return count / (time.perf_counter() - started)


def barnabas_consume(bootstrap: str, topic: str, count: int) -> float:
    from barnabas.client import Consumer, TopicPartition

    with Consumer({"bootstrap.servers": bootstrap, "max.poll.records": POLL_RECORDS}) as consumer:
        consumer.assign(partitions := [TopicPartition(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning(partitions)
        taken = len(consumer.poll(POLL_SECONDS))
        started = time.perf_counter()
        first = taken
        while taken < count:
            for _record in (records := consumer.poll(POLL_SECONDS)):
                pass
            taken += len(records)
        return (taken - first) / (time.perf_counter() - started)


def barnabas_poll_arrow(bootstrap: str, topic: str, count: int) -> float:
    from barnabas.client import Consumer, TopicPartition

    with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        consumer.assign(partitions := [TopicPartition(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning(partitions)
        first: int = sum(batch.num_rows for batch in consumer.poll_arrow(POLL_SECONDS))
        taken = first
        started = time.perf_counter()
        while taken < count:
            taken += sum(batch.num_rows for batch in consumer.poll_arrow(POLL_SECONDS))
        return (taken - first) / (time.perf_counter() - started)


async def _barnabas_async_produce(bootstrap: str, topic: str, count: int) -> float:
    from barnabas.client import AsyncProducer

    async with AsyncProducer({"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS, "batch.size": BATCH_BYTES}) as producer:
        await (await producer.send(topic, VALUE))
        started = time.perf_counter()
        for _ in range(count):
            await producer.send(topic, VALUE)
        await producer.flush()
        return count / (time.perf_counter() - started)


async def _barnabas_async_consume(bootstrap: str, topic: str, count: int) -> float:
    from barnabas.client import AsyncConsumer, TopicPartition

    async with AsyncConsumer({"bootstrap.servers": bootstrap, "max.poll.records": POLL_RECORDS}) as consumer:
        await consumer.assign(partitions := [TopicPartition(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning(partitions)
        taken = first = len(await consumer.poll(POLL_SECONDS))
        started = time.perf_counter()
        while taken < count:
            for _record in (records := await consumer.poll(POLL_SECONDS)):
                pass
            taken += len(records)
        return (taken - first) / (time.perf_counter() - started)


def kafka_python_produce(bootstrap: str, topic: str, count: int) -> float:
    from kafka import KafkaProducer  # type: ignore[import-untyped,unused-ignore]

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES)
    producer.send(topic, VALUE).get(10)
    started = time.perf_counter()
    for _ in range(count):
        producer.send(topic, VALUE)
    producer.flush()
    taken = time.perf_counter() - started
    producer.close()
    return count / taken


def kafka_python_consume(bootstrap: str, topic: str, count: int) -> float:
    from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped,unused-ignore]

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, max_poll_records=POLL_RECORDS, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    consumer.seek_to_beginning()
    taken = first = _size_of(consumer.poll(POLL_SECONDS * 1000))
    started = time.perf_counter()
    while taken < count:
        taken += _size_of(consumer.poll(POLL_SECONDS * 1000))
    seconds = time.perf_counter() - started
    consumer.close()
    return (taken - first) / seconds


async def _aiokafka_produce(bootstrap: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES)
    await producer.start()
    await producer.send_and_wait(topic, VALUE)
    started = time.perf_counter()
    for _ in range(count):
        await producer.send(topic, VALUE)
    await producer.flush()
    taken = time.perf_counter() - started
    await producer.stop()
    return count / taken


async def _aiokafka_consume(bootstrap: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    await consumer.seek_to_beginning()
    taken = first = _size_of(await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000), max_records=POLL_RECORDS))
    started = time.perf_counter()
    while taken < count:
        taken += _size_of(await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000), max_records=POLL_RECORDS))
    seconds = time.perf_counter() - started
    await consumer.stop()
    return (taken - first) / seconds


def confluent_produce(bootstrap: str, topic: str, count: int) -> float:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": LINGER_MS, "batch.size": BATCH_BYTES})
    producer.produce(topic, VALUE)
    producer.flush()
    started = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    return count / (time.perf_counter() - started)


def confluent_consume(bootstrap: str, topic: str, count: int) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "benchmark", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    taken = first = _values_in(consumer.consume(POLL_RECORDS, POLL_SECONDS))
    started = time.perf_counter()
    while taken < count:
        taken += _values_in(consumer.consume(POLL_RECORDS, POLL_SECONDS))
    seconds = time.perf_counter() - started
    consumer.close()
    return (taken - first) / seconds


def _values_in(messages: list[Any]) -> int:
    """Looks at each value, which the other clients have looked at already to make their records."""
    return sum(message.value() is not None for message in messages)


def _size_of(polled: dict[Any, list[Any]]) -> int:
    return sum(map(len, polled.values()))


def _on_a_loop(load: Callable[[str, str, int], Any]) -> Load:
    def run(bootstrap: str, topic: str, count: int) -> float:
        try:
            import uvloop
        except ImportError:
            return float(asyncio.run(load(bootstrap, topic, count)))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return float(runner.run(load(bootstrap, topic, count)))

    return run


LOADS: dict[tuple[str, str], Load] = {
    ("barnabas", "produce"): barnabas_produce,
    ("barnabas", "consume"): barnabas_consume,
    ("barnabas-arrow", "consume"): barnabas_poll_arrow,
    ("barnabas-async", "produce"): _on_a_loop(_barnabas_async_produce),
    ("barnabas-async", "consume"): _on_a_loop(_barnabas_async_consume),
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "consume"): kafka_python_consume,
    ("aiokafka", "produce"): _on_a_loop(_aiokafka_produce),
    ("aiokafka", "consume"): _on_a_loop(_aiokafka_consume),
    ("confluent-kafka", "produce"): confluent_produce,
    ("confluent-kafka", "consume"): confluent_consume,
}

if __name__ == "__main__":
    main()
