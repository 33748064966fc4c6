"""A consumer that takes its partitions by itself, with Apache Kafka and with our broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import Producer as TransactionalProducer
from confluent_kafka import TopicPartition as Prefix
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.record import OffsetAndTimestamp
from barnabas.client.errors import (
    ConcurrentModification,
    IllegalArgument,
    IllegalState,
    NoOffsetForPartition,
    OffsetOutOfRange,
    RecordDeserializationError,
    Timeout,
    Wakeup,
)
from barnabas.errors import InvalidGroupId, InvalidTopic
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import numbered, partitions, poll_until, produce, wait_for


def reader(bootstrap: str, **settings: Any) -> Consumer[bytes, bytes]:
    return Consumer(
        {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"} | {k.replace("_", "."): v for k, v in settings.items()}
    )


def test_all_records_come_in_order(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("all")
    produce(bootstrap, topic, numbered(3000))
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        assert [record.value for record in poll_until(consumer, 3000)] == numbered(3000)


def test_all_fields_of_a_record_come(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("fields")
    produce(
        bootstrap, topic, [{"key": b"k", "value": b"value", "timestamp": 1234567890123, "headers": [("a", b"1"), ("b", None), ("a", b"")]}]
    )
    produce(bootstrap, topic, [{"key": None, "value": None, "timestamp": 5}])
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        full, empty = poll_until(consumer, 2)
    assert (full.topic, full.partition, full.offset, full.timestamp, str(full.timestamp_type)) == (topic, 0, 0, 1234567890123, "CreateTime")
    assert (full.key, full.value, full.headers, full.leader_epoch) == (b"k", b"value", (("a", b"1"), ("b", None), ("a", b"")), 0)
    assert (full.serialized_key_size, full.serialized_value_size) == (1, 5)
    assert (empty.key, empty.value, empty.serialized_key_size, empty.serialized_value_size) == (None, None, -1, -1)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_come(bootstrap: str, new_topic: TopicMaker, codec: str) -> None:
    topic = new_topic(codec)
    produce(bootstrap, topic, numbered(1000), compression_type=codec, linger_ms=50)
    with reader(bootstrap, check_crcs=True) as consumer:
        consumer.assign(partitions(topic, 1))
        assert [record.value for record in poll_until(consumer, 1000)] == numbered(1000)


def test_a_poll_returns_no_more_than_max_poll_records(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("most")
    produce(bootstrap, topic, numbered(25))
    with reader(bootstrap, max_poll_records=10) as consumer:
        consumer.assign(partitions(topic, 1))
        assert [len(consumer.poll(10)) for _ in range(3)] == [10, 10, 5]


def test_a_poll_without_subscription_is_refused(bootstrap: str) -> None:
    with (
        reader(bootstrap) as consumer,
        pytest.raises(IllegalState, match="Consumer is not subscribed to any topics or assigned any partitions"),
    ):
        consumer.poll(0)


def test_the_kinds_of_subscription_exclude_each_other(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("exclusive")
    with reader(bootstrap, group_id="exclusive") as consumer:
        consumer.assign(partitions(topic, 1))
        with pytest.raises(IllegalState, match="Subscription to topics, partitions and pattern are mutually exclusive"):
            consumer.subscribe([topic])
        consumer.assign([])  # the same as unsubscribe
        assert consumer.assignment() == set()
        consumer.subscribe([topic])
        with pytest.raises(IllegalState, match="mutually exclusive"):
            consumer.assign(partitions(topic, 1))


def test_a_poll_with_timeout_0_waits_for_nothing(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("at-once")
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        assert consumer.poll(0).is_empty()


def test_positions_move_behind_what_was_returned(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("position")
    produce(bootstrap, topic, numbered(7))
    (partition,) = partitions(topic, 1)
    with reader(bootstrap) as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 0
        records = poll_until(consumer, 7)
        assert records[-1].offset == 6
        assert consumer.position(partition) == 7
        with pytest.raises(IllegalState, match=r"You can only check the position for partitions assigned to this consumer."):
            consumer.position(TopicPartition(topic, 9))


def test_next_offsets_are_what_to_commit(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("next")
    produce(bootstrap, topic, numbered(3))
    (partition,) = partitions(topic, 1)
    with reader(bootstrap) as consumer:
        consumer.assign([partition])
        records = consumer.poll(10)
        assert records.next_offsets() == {partition: OffsetAndMetadata(3, "", 0)}
        assert records.partitions() == {partition}
        assert records.count() == len(records.records(partition)) == len(records.records(topic)) == 3


def test_seek_goes_anywhere_in_the_log(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("seek")
    produce(bootstrap, topic, numbered(100))
    (partition,) = partitions(topic, 1)
    with reader(bootstrap) as consumer:
        consumer.assign([partition])
        assert poll_until(consumer, 1)[0].offset == 0
        consumer.seek(partition, 50)
        assert consumer.position(partition) == 50
        assert poll_until(consumer, 1)[0].offset == 50
        consumer.seek(partition, OffsetAndMetadata(7, "", 0))
        assert poll_until(consumer, 1)[0].offset == 7
        consumer.seek_to_end([partition])
        assert consumer.position(partition) == 100
        consumer.seek_to_beginning([])
        assert poll_until(consumer, 1)[0].offset == 0
        with pytest.raises(IllegalArgument, match="seek offset must not be a negative number"):
            consumer.seek(partition, -1)
        with pytest.raises(IllegalState, match="No current assignment for partition"):
            consumer.seek(TopicPartition(topic, 1), 0)


def test_the_end_is_the_next_offset_and_fetching_there_is_no_error(bootstrap: str, new_topic: TopicMaker) -> None:
    """The worked example of out of range: 100 records, seek(101) is reset, seek(100) is not."""
    topic = new_topic("range")
    produce(bootstrap, topic, numbered(100))
    (partition,) = partitions(topic, 1)
    with reader(bootstrap, auto_offset_reset="latest") as consumer:
        consumer.assign([partition])
        assert consumer.end_offsets([partition]) == {partition: 100}
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        consumer.seek(partition, 100)
        assert consumer.poll(0.7).is_empty()
        assert consumer.position(partition) == 100
        consumer.seek(partition, 101)
        wait_for(consumer, lambda: consumer.position(partition) == 100)
        produce(bootstrap, topic, [b"new"])
        assert [(record.offset, record.value) for record in poll_until(consumer, 1)] == [(100, b"new")]


def test_out_of_range_is_raised_where_there_is_no_reset(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("none")
    (partition,) = partitions(topic, 1)
    with reader(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([partition])
        with pytest.raises(NoOffsetForPartition, match="Undefined offset with no reset policy for partitions"):
            consumer.poll(5)
        consumer.seek(partition, 3)
        with pytest.raises(OffsetOutOfRange) as raised:
            poll_until(consumer, 1)
        assert raised.value.offset_out_of_range_partitions == {partition: 3}
        consumer.seek(partition, 0)
        produce(bootstrap, topic, [b"x"])
        assert poll_until(consumer, 1)[0].value == b"x"


def test_latest_begins_at_the_end(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("latest")
    produce(bootstrap, topic, numbered(5))
    (partition,) = partitions(topic, 1)
    with reader(bootstrap, auto_offset_reset="latest") as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 5


def test_by_duration_begins_where_records_are_that_young(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("duration")
    (partition,) = partitions(topic, 1)
    now_ms = int(time.time() * 1000)
    produce(bootstrap, topic, [{"value": b"old", "timestamp": now_ms - 7200_000}, {"value": b"young", "timestamp": now_ms - 1000}])
    with reader(bootstrap, auto_offset_reset="by_duration:PT1H") as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 1
    with reader(bootstrap, auto_offset_reset="by_duration:PT0.001S") as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 2  # nothing that young: the end (Kafka's consumer would wait for a record without reading)
    with reader(bootstrap, auto_offset_reset="by_duration:P36500D") as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 0  # before there were timestamps: the beginning


def test_offsets_are_found_by_time(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("times", partitions=2)
    produce(bootstrap, topic, [{"value": b"x", "timestamp": 1000 * number} for number in range(1, 11)])
    first, second = partitions(topic, 2)
    with reader(bootstrap) as consumer:
        assert consumer.offsets_for_times({first: 4500, second: 1}) == {first: OffsetAndTimestamp(4, 5000, 0), second: None}
        assert consumer.offsets_for_times({first: 5000}) == {first: OffsetAndTimestamp(4, 5000, 0)}
        assert consumer.offsets_for_times({first: 99999}) == {first: None}
        assert consumer.offsets_for_times({}) == {}
        with pytest.raises(IllegalArgument, match="The target time cannot be negative"):
            consumer.offsets_for_times({first: -1})
        with pytest.raises(Timeout):
            consumer.end_offsets([TopicPartition(topic, 7)], timeout=0.5)


def test_paused_partitions_return_nothing_and_lose_nothing(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("pause", partitions=2)
    first, second = partitions(topic, 2)
    produce(bootstrap, topic, numbered(1200), partition=0)
    produce(bootstrap, topic, numbered(1200), partition=1)
    with reader(bootstrap, max_poll_records=50) as consumer:
        consumer.assign([first, second])
        seen = poll_until(consumer, 100)
        consumer.pause([first])
        assert consumer.paused() == {first}
        while sum(record.partition == 1 for record in seen) < 1200:
            more = poll_until(consumer, 1)
            assert {record.partition for record in more} == {1}
            seen += more
        assert consumer.poll(0.2).is_empty()
        consumer.resume([first])
        assert consumer.paused() == set()
        seen += poll_until(consumer, 2400 - len(seen))
        for number in (0, 1):
            assert [record.value for record in seen if record.partition == number] == numbered(1200)
        with pytest.raises(IllegalState, match="No current assignment"):
            consumer.pause([TopicPartition(topic, 5)])


def test_wakeup_ends_the_poll_of_another_thread(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("wakeup")
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        timer = threading.Timer(0.3, consumer.wakeup)
        timer.start()
        before = time.monotonic()
        with pytest.raises(Wakeup):
            consumer.poll(20)
        assert time.monotonic() - before < 10
        timer.join()
        consumer.wakeup()  # with nobody waiting, the next poll gets it
        with pytest.raises(Wakeup):
            consumer.poll(20)
        assert consumer.poll(0).is_empty()


def test_a_second_thread_is_refused(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("threads")
    refused: list[Exception] = []

    def intrude() -> None:
        try:
            consumer.poll(0)
        except ConcurrentModification as error:
            refused.append(error)
        consumer.wakeup()

    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        timer = threading.Timer(0.3, intrude)
        timer.start()
        with pytest.raises(Wakeup):
            consumer.poll(20)
        timer.join()
    assert "Consumer is not safe for multi-threaded access" in str(refused[0])


def test_a_closed_consumer_refuses_everything(bootstrap: str) -> None:
    consumer = reader(bootstrap)
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalState, match=r"This consumer has already been closed."):
        consumer.poll(0)
    consumer.wakeup()


def test_without_a_group_nothing_is_committed(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("groupless")
    with reader(bootstrap) as consumer:
        with pytest.raises(InvalidGroupId, match=r"you must provide a valid group.id"):
            consumer.subscribe([topic])
        consumer.assign(partitions(topic, 1))
        for call in (
            consumer.commit_sync,
            consumer.commit_async,
            lambda: consumer.committed(partitions(topic, 1)),
            consumer.group_metadata,
        ):
            with pytest.raises(InvalidGroupId):
                call()


def _number(data: bytes) -> int:
    return int(data)


def test_a_record_that_cannot_be_deserialized_is_passed_by_a_seek(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("poison")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, [b"1", b"two", b"3"])
    with Consumer[bytes, int]({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, value_deserializer=_number) as consumer:
        consumer.assign([partition])
        assert [record.value for record in poll_until(consumer, 1)] == [1]
        for _ in range(2):
            with pytest.raises(RecordDeserializationError) as raised:
                poll_until(consumer, 1)
        consumer.seek(raised.value.topic_partition, raised.value.offset + 1)
        assert [record.value for record in poll_until(consumer, 1)] == [3]


def test_the_partitions_of_topics_are_told(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("partitions", partitions=3)
    with reader(bootstrap, allow_auto_create_topics=False) as consumer:
        infos = consumer.partitions_for(topic)
        assert [info.partition for info in infos] == [0, 1, 2]
        assert infos[0].leader is not None and infos[0].replicas == infos[0].in_sync_replicas == (infos[0].leader,)
        assert infos[0].offline_replicas == ()
        assert consumer.partitions_for("there-is-no-such-topic") == []
        assert len(consumer.list_topics()[topic]) == 3
        with pytest.raises(InvalidTopic):
            consumer.partitions_for("not/a/topic")


def test_lag_is_what_stands_behind_the_position(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("lag")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(10))
    with reader(bootstrap, max_poll_records=4) as consumer:
        consumer.assign([partition])
        assert consumer.current_lag(partition) is None
        assert consumer.position(partition) == 0
        poll_until(consumer, 4)
        assert consumer.current_lag(partition) == 6
        lags = [metric for name, metric in consumer.metrics().items() if name.name == "records-lag" and name.tag_map["topic"] == topic]
        assert lags[0].metric_value() == 6


def test_a_record_larger_than_the_limits_still_comes(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("soft-limit")
    produce(bootstrap, topic, [b"x" * 100_000, b"y" * 100_000])
    with reader(bootstrap, fetch_max_bytes=1000, max_partition_fetch_bytes=1000) as consumer:
        consumer.assign(partitions(topic, 1))
        assert [len(record.value) for record in poll_until(consumer, 2)] == [100_000, 100_000]


def test_iterating_gives_record_after_record(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("iterate")
    produce(bootstrap, topic, numbered(1000))
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 1))
        seen = []
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 1000:
                break
    assert seen == numbered(1000)


def test_read_committed_sees_no_aborted_and_no_open_transaction(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("committed")
    (partition,) = partitions(topic, 1)
    producer = TransactionalProducer({"bootstrap.servers": bootstrap, "transactional.id": f"txn-{topic}"})
    producer.init_transactions(30)
    for name, commit in (("a", False), ("b", True), ("c", False), ("d", True)):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(topic, f"{name}{number}".encode(), partition=0)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    with reader(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        assert [record.value for record in poll_until(consumer, 6)] == [b"b0", b"b1", b"b2", b"d0", b"d1", b"d2"]
        assert consumer.poll(0.3).is_empty()
        assert consumer.position(partition) == 16  # behind the last marker; the open transaction begins here
        assert consumer.end_offsets([partition]) == {partition: 16}
    with reader(bootstrap) as consumer:
        consumer.assign([partition])
        assert len(poll_until(consumer, 13)) == 13
        assert consumer.end_offsets([partition]) == {partition: 17}
    producer.abort_transaction(30)


def test_many_partitions_are_read_side_by_side(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("many", partitions=20)
    for number in range(20):
        produce(bootstrap, topic, numbered(100), partition=number)
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 20))
        seen = poll_until(consumer, 2000)
    for number in range(20):
        assert [record.value for record in seen if record.partition == number] == numbered(100)


def test_a_deleted_record_prefix_moves_the_beginning(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("deleted")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(10))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for outcome in admin.delete_records([Prefix(topic, 0, 6)]).values():
        outcome.result(30)
    with reader(bootstrap) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 6}
        consumer.assign([partition])
        consumer.seek(partition, 2)
        assert [record.offset for record in poll_until(consumer, 4)] == [6, 7, 8, 9]


def test_a_topic_made_anew_is_read_from_its_beginning(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("anew")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    produce(bootstrap, topic, numbered(5))
    with reader(bootstrap, metadata_max_age_ms=300, allow_auto_create_topics=False) as consumer:
        consumer.assign(partitions(topic, 1))
        poll_until(consumer, 5)
        admin.delete_topics([topic])[topic].result(30)
        deadline = time.monotonic() + 20
        while True:
            try:
                admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
                break
            except KafkaException:
                assert time.monotonic() < deadline
                consumer.poll(0.1)
        produce(bootstrap, topic, [b"new"])
        assert [(record.offset, record.value) for record in poll_until(consumer, 1)] == [(0, b"new")]
