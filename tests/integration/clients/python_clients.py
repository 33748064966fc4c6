"""The Python clients, which run in the test's own process: confluent-kafka (librdkafka), kafka-python and aiokafka."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import aiokafka
import confluent_kafka

from tests.integration.clients.client import BEGINNING, WAIT_S, Refused, place
from tests.integration.clients.records import MEGABYTE, Record

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its own files in a way that newer Pythons advise against
    import kafka

REQUEST_BYTES_MAX = 16 * MEGABYTE


class Confluent:
    sends_nothing = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": codec,
                "message.max.bytes": REQUEST_BYTES_MAX,
                "enable.idempotence": True,
                "message.timeout.ms": WAIT_S * 1000,
                "linger.ms": 20,
            }
        )
        errors: list[str] = []
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=lambda error, _message: errors.append(str(error)) if error else None,
            )
        left = producer.flush(WAIT_S)
        if errors or left:
            raise Refused(f"{left} not sent; {errors}")

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        # The client wants the name of a group even where it is given its partitions and never joins it.
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"}
        )
        try:
            consumer.assign([self._start(consumer, topic, start)])
            return self._read(consumer, count)
        finally:
            consumer.close()

    def close(self) -> None:
        pass

    def _start(self, consumer: confluent_kafka.Consumer, topic: str, start: str) -> confluent_kafka.TopicPartition:
        kind, number = place(start)
        if kind == "time":
            partitions = [confluent_kafka.TopicPartition(topic, 0, number)]
            offsets: list[confluent_kafka.TopicPartition] = consumer.offsets_for_times(partitions, timeout=WAIT_S)
            return offsets[0]
        return confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING if kind == BEGINNING else number)

    def _read(self, consumer: confluent_kafka.Consumer, count: int) -> list[Record]:
        records: list[Record] = []
        deadline = time.monotonic() + WAIT_S
        while len(records) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(records), timeout=1):
                if message.error():
                    raise Refused(str(message.error()))
                records.append(_confluent_record(message))
        return records


def _confluent_record(message: Any) -> Record:
    headers = tuple(message.headers() or ())
    return Record(message.offset(), message.timestamp()[1], message.key(), message.value(), headers)


class KafkaPython:
    sends_nothing = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=REQUEST_BYTES_MAX,
            linger_ms=20,
            acks="all",
        )
        try:
            sent = [
                producer.send(topic, record.value, record.key, list(record.headers), partition=0, timestamp_ms=record.timestamp_ms)
                for record in records
            ]
            producer.flush(WAIT_S)
            for one in sent:
                one.get(WAIT_S)
        except kafka.errors.KafkaError as problem:
            raise Refused(repr(problem)) from problem
        finally:
            producer.close(WAIT_S)

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, auto_offset_reset="none")
        partition = kafka.TopicPartition(topic, 0)
        try:
            consumer.assign([partition])
            kind, number = place(start)
            if kind == BEGINNING:
                consumer.seek_to_beginning(partition)
            else:
                consumer.seek(partition, number if kind == "offset" else consumer.offsets_for_times({partition: number})[partition].offset)
            records: list[Record] = []
            deadline = time.monotonic() + WAIT_S
            while len(records) < count and time.monotonic() < deadline:
                records += _read_from(consumer.poll(1000, count - len(records)).get(partition, []))
            return records
        finally:
            consumer.close()

    def close(self) -> None:
        pass


class AioKafka:
    sends_nothing = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        asyncio.run(self._produce(topic, codec, records))

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        return asyncio.run(asyncio.wait_for(self._consume(topic, start, count), WAIT_S))

    def close(self) -> None:
        pass

    async def _produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=REQUEST_BYTES_MAX,
            linger_ms=20,
            enable_idempotence=True,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic, record.value, record.key, partition=0, timestamp_ms=record.timestamp_ms, headers=list(record.headers)
                )
                for record in records
            ]
            await asyncio.wait_for(asyncio.gather(*sent), WAIT_S)
        except aiokafka.errors.KafkaError as problem:
            raise Refused(repr(problem)) from problem
        finally:
            await producer.stop()

    async def _consume(self, topic: str, start: str, count: int) -> list[Record]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, auto_offset_reset="none")
        partition = aiokafka.TopicPartition(topic, 0)
        await consumer.start()
        try:
            consumer.assign([partition])
            kind, number = place(start)
            if kind == BEGINNING:
                await consumer.seek_to_beginning(partition)
            else:
                position = number if kind == "offset" else (await consumer.offsets_for_times({partition: number}))[partition].offset
                consumer.seek(partition, position)
            records: list[Record] = []
            while len(records) < count:
                batch = await consumer.getmany(timeout_ms=1000, max_records=count - len(records))
                records += _read_from(batch.get(partition, []))
            return records
        finally:
            await consumer.stop()


def _read_from(messages: Iterable[Any]) -> list[Record]:
    return [Record(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in messages]
