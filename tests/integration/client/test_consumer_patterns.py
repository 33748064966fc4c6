"""Ways to use a consumer that the book shows: broadcast, commits by batch and by partition, a pool of handlers, internal topics."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.record import ConsumerRecord
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import numbered, partitions, poll_until, produce, wait_for


def member(bootstrap: str, group: str, **settings: object) -> Consumer[Any, Any]:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}, **settings)


def test_every_group_gets_every_record(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("broadcast", partitions=2)
    for number in (0, 1):
        produce(bootstrap, topic, numbered(50), partition=number)
    for group in ("first", "second"):
        with member(bootstrap, f"{topic}-{group}") as consumer:
            consumer.subscribe([topic])
            assert len(poll_until(consumer, 100)) == 100


def test_all_partitions_of_a_topic_can_be_assigned(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("assign-all", partitions=3)
    with Consumer[bytes, bytes]({"bootstrap.servers": bootstrap}) as consumer:
        consumer.assign([info.topic_partition for info in consumer.partitions_for(topic)])
        assert consumer.assignment() == set(partitions(topic, 3))


def test_records_are_processed_in_batches_of_200_and_committed_with_each(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("batches")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(650))
    with member(bootstrap, topic, enable_auto_commit=False, max_poll_records=70) as consumer:
        consumer.subscribe([topic])
        waiting: list[ConsumerRecord[Any, Any]] = []
        commits: list[int] = []
        while len(commits) < 3:
            waiting += poll_until(consumer, 1)
            if len(waiting) >= 200:
                consumer.commit_sync()
                found = consumer.committed(partition)
                assert found is not None and found.offset == waiting[-1].offset + 1
                commits.append(found.offset)
                waiting.clear()
        assert commits == [210, 420, 630]


def test_offsets_are_committed_partition_by_partition(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("by-partition", partitions=2)
    for number in (0, 1):
        produce(bootstrap, topic, numbered(10), partition=number)
    with member(bootstrap, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        seen = 0
        while seen < 20:
            records = consumer.poll(1)
            for partition in records.partitions():
                mine = records.records(partition)
                seen += len(mine)
                consumer.commit_sync({partition: OffsetAndMetadata(mine[-1].offset + 1)})
        assert {found.offset for found in consumer.committed(partitions(topic, 2)).values() if found is not None} == {10}


def test_commits_are_asynchronous_in_the_loop_and_synchronous_at_the_end(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async-then-sync")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(100))
    consumer = member(bootstrap, topic, enable_auto_commit=False, max_poll_records=10)
    try:
        consumer.subscribe([topic])
        seen = 0
        while seen < 100:
            seen += len(consumer.poll(1))
            consumer.commit_async()
    finally:
        try:
            consumer.commit_sync()
        finally:
            consumer.close()
    with member(bootstrap, topic) as after:
        assert after.committed(partition) == OffsetAndMetadata(100, "", 0)


def test_one_thread_polls_and_a_pool_handles(bootstrap: str, new_topic: TopicMaker) -> None:
    """The third model of threading: offsets are shared under a lock, only ever raised, and committed by the thread that polls."""
    topic = new_topic("pool", partitions=3)
    for number in range(3):
        produce(bootstrap, topic, numbered(200), partition=number)
    done: dict[TopicPartition, int] = {}
    handled: list[Any] = []
    lock = threading.Lock()

    def handle(partition: TopicPartition, records: list[ConsumerRecord[Any, Any]]) -> None:
        with lock:
            handled.extend(record.value for record in records)
            done[partition] = max(done.get(partition, 0), records[-1].offset + 1)

    with ThreadPoolExecutor(2) as pool, member(bootstrap, topic, enable_auto_commit=False, max_poll_records=50) as consumer:
        consumer.subscribe([topic])
        seen = 0
        while seen < 600:
            records = consumer.poll(1)
            seen += len(records)
            for task in [pool.submit(handle, partition, records.records(partition)) for partition in records.partitions()]:
                task.result()
            with lock:
                if done:
                    consumer.commit_sync({partition: OffsetAndMetadata(offset) for partition, offset in done.items()})
                    done.clear()
        assert {found.offset for found in consumer.committed(partitions(topic, 3)).values() if found is not None} == {200}
    assert sorted(handled) == sorted(numbered(200) * 3)


def test_internal_topics_are_read_by_name(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("internal")
    with member(bootstrap, topic) as consumer:
        consumer.subscribe([topic])
        wait_for(consumer, consumer.assignment)
        consumer.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(0)})
        consumer.subscribe(["__consumer_offsets"])
        assert poll_until(consumer, 1)[0].topic == "__consumer_offsets"
