"""Ways to use a consumer: broadcast, when and where offsets are kept, a pool of handlers, internal topics."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.record import ConsumerRecord
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import numbered, partitions, poll_until, produce, wait_for


def member(bootstrap: str, group: str, **settings: Any) -> Consumer[Any, Any]:
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
                committed = consumer.committed(partition)
                assert committed is not None and committed.offset == waiting[-1].offset + 1
                commits.append(committed.offset)
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
        assert {committed.offset for committed in consumer.committed(partitions(topic, 2)).values() if committed is not None} == {10}


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
        assert {committed.offset for committed in consumer.committed(partitions(topic, 3)).values() if committed is not None} == {200}
    assert sorted(handled) == sorted(numbered(200) * 3)


def test_internal_topics_are_read_by_name(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("internal")
    with member(bootstrap, topic) as consumer:
        consumer.subscribe([topic])
        wait_for(consumer, consumer.assignment)
        consumer.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(0)})
        consumer.subscribe(["__consumer_offsets"])
        assert poll_until(consumer, 1)[0].topic == "__consumer_offsets"


def test_a_pattern_finds_internal_topics_where_they_are_not_excluded(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("not-excluded")
    with member(bootstrap, topic, exclude_internal_topics=False) as consumer:
        consumer.subscribe([topic])
        wait_for(consumer, consumer.assignment)  # makes the internal topic, if there was none
        consumer.unsubscribe()
        consumer.subscribe(re.compile("__consumer_.*"))
        assert {partition.topic for partition in wait_for(consumer, consumer.assignment)} == {"__consumer_offsets"}


def handle_until_it_breaks(bootstrap: str, topic: str, *, commit_first: bool) -> list[int]:
    """The group has committed 2, and a poll brings 2 to 7; the program breaks when it comes to 5."""
    (partition,) = partitions(topic, 1)
    handled: list[int] = []
    with member(bootstrap, topic, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        consumer.commit_sync({partition: OffsetAndMetadata(2)})
        records = poll_until(consumer, 6)
        if commit_first:
            consumer.commit_sync()
        for record in records:
            if record.offset == 5:
                return handled
            handled.append(record.offset)
        consumer.commit_sync()
    raise AssertionError("it did not break")


def handle_the_rest(bootstrap: str, topic: str) -> list[int]:
    with member(bootstrap, topic, enable_auto_commit=False) as consumer:
        consumer.assign(partitions(topic, 1))
        consumer.seek_to_end([])
        (end,) = consumer.end_offsets(partitions(topic, 1)).values()
        start = consumer.committed(TopicPartition(topic, 0))
        assert start is not None
        consumer.seek(TopicPartition(topic, 0), start)
        return [record.offset for record in poll_until(consumer, end - start.offset)]


def test_who_commits_before_handling_loses_what_was_not_handled(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("commit-first")
    produce(bootstrap, topic, numbered(8))
    first = handle_until_it_breaks(bootstrap, topic, commit_first=True)
    assert (first, handle_the_rest(bootstrap, topic)) == ([2, 3, 4], [])  # 5 to 7 are handled by nobody


def test_who_commits_after_handling_handles_twice_what_was_not_committed(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("handle-first")
    produce(bootstrap, topic, numbered(8))
    first = handle_until_it_breaks(bootstrap, topic, commit_first=False)
    assert (first, handle_the_rest(bootstrap, topic)) == ([2, 3, 4], [2, 3, 4, 5, 6, 7])


class Shelf(ConsumerRebalanceListener):
    """Results, and how far they go, in one transaction of a database; what is assigned is read on from there."""

    def __init__(self, database: sqlite3.Connection, consumer: Consumer[Any, Any]) -> None:
        self.database = database
        self.consumer = consumer
        database.execute("create table if not exists results (value blob)")
        database.execute("create table if not exists offsets (topic text, partition int, next int, primary key (topic, partition))")

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            row = self.database.execute("select next from offsets where topic = ? and partition = ?", partition).fetchone()
            if row is not None:
                self.consumer.seek(partition, row[0])

    def keep(self, records: Collection[ConsumerRecord[Any, Any]]) -> None:
        with self.database:
            for record in records:
                self.database.execute("insert into results values (?)", (record.value,))
                row = (record.topic, record.partition, record.offset + 1)
                self.database.execute("insert into offsets values (?, ?, ?) on conflict do update set next = excluded.next", row)


def test_offsets_may_be_kept_with_the_results_in_a_database(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("database", partitions=2)
    for number in (0, 1):
        produce(bootstrap, topic, numbered(30, 30 * number), partition=number)
    database = sqlite3.connect(":memory:")
    for read_up_to in (20, 60):  # the second reader goes on where the first was broken off
        with member(bootstrap, topic, enable_auto_commit=False, max_poll_records=10) as consumer:
            shelf = Shelf(database, consumer)
            consumer.subscribe([topic], shelf)
            while database.execute("select count(*) from results").fetchone()[0] < read_up_to:
                shelf.keep(list(consumer.poll(1)))
            consumer.poll(0)  # read, and not kept: the next reader gets it
    assert sorted(row[0] for row in database.execute("select value from results")) == sorted(numbered(60))
    with member(bootstrap, topic) as consumer:
        assert set(consumer.committed(partitions(topic, 2)).values()) == {None}
