"""The asynchronous consumer, with Apache Kafka and with our broker."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from barnabas.client.consumer.async_consumer import AsyncConsumer
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import ConcurrentModification, IllegalState, Wakeup
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import DEADLINE_S, numbered, partitions, produce


def reader(bootstrap: str, **settings: Any) -> AsyncConsumer[bytes, bytes]:
    return AsyncConsumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, **settings)


def test_async_for_gives_record_after_record(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-for")
    produce(bootstrap, topic, numbered(2000))

    async def read() -> list[bytes | None]:
        seen: list[bytes | None] = []
        async with reader(bootstrap, group_id=topic) as consumer:
            consumer.subscribe([topic])
            async with asyncio.timeout(DEADLINE_S):
                async for record in consumer:
                    seen.append(record.value)
                    if len(seen) == 2000:
                        break
            await consumer.commit_sync()
            assert await consumer.committed(TopicPartition(topic, 0)) == OffsetAndMetadata(2000, "", 0)
        return seen

    assert asyncio.run(read()) == numbered(2000)


def test_positions_and_offsets_are_told(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-offsets")
    produce(bootstrap, topic, numbered(10))
    (partition,) = partitions(topic, 1)

    async def look() -> None:
        async with reader(bootstrap) as consumer:
            await consumer.assign([partition])
            assert await consumer.position(partition) == 0
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            consumer.seek(partition, 7)
            records = await consumer.poll(10)
            assert [record.offset for record in records] == [7, 8, 9]
            assert consumer.current_lag(partition) == 0
            consumer.seek_to_beginning([partition])
            consumer.pause([partition])
            assert (await consumer.poll(0.2)).is_empty()
            consumer.resume([partition])
            assert (await consumer.poll(10)).count() == 10
            assert [info.partition for info in await consumer.partitions_for(topic)] == [0]
            assert topic in await consumer.list_topics()
            assert (await consumer.offsets_for_times({partition: 1}))[partition] is not None
            await consumer.unsubscribe()
            with pytest.raises(IllegalState, match="not subscribed"):
                await consumer.poll(0)

    asyncio.run(look())


def test_a_poll_that_is_cancelled_loses_nothing(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-cancel")

    async def read() -> list[bytes | None]:
        seen: list[bytes | None] = []
        async with reader(bootstrap, group_id=topic) as consumer:
            consumer.subscribe([topic])
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await consumer.poll(10)
            await asyncio.to_thread(produce, bootstrap, topic, numbered(10))
            async with asyncio.timeout(DEADLINE_S):
                while len(seen) < 10:
                    seen += [record.value for record in await consumer.poll(1)]
        return seen

    assert asyncio.run(read()) == numbered(10)


def test_two_tasks_may_not_poll_at_once_and_wakeup_ends_a_poll(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-two")

    async def poll_twice() -> None:
        async with reader(bootstrap) as consumer:
            await consumer.assign(partitions(topic, 1))
            first = asyncio.ensure_future(consumer.poll(20))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentModification):
                await consumer.poll(0)
            consumer.wakeup()
            with pytest.raises(Wakeup):
                await first

    asyncio.run(poll_twice())


class AwaitingListener(ConsumerRebalanceListener):
    def __init__(self, consumer: AsyncConsumer[bytes, bytes]) -> None:
        self.consumer = consumer
        self.assigned: list[TopicPartition] = []

    async def on_partitions_assigned(self, given: Collection[TopicPartition]) -> None:
        await asyncio.sleep(0)
        self.assigned += given
        for partition in given:
            self.consumer.seek(partition, 5)


def test_a_listener_may_be_a_coroutine(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-listener")
    produce(bootstrap, topic, numbered(10))

    async def read() -> None:
        async with reader(bootstrap, group_id=topic) as consumer:
            listener = AwaitingListener(consumer)
            consumer.subscribe([topic], listener)
            async with asyncio.timeout(DEADLINE_S):
                while not (records := list(await consumer.poll(1))):
                    pass
            assert listener.assigned == [TopicPartition(topic, 0)]
            assert records[0].offset == 5

    asyncio.run(read())
