"""A consumer in a group, with Apache Kafka and with our broker: the worked examples of subscribing, committing and rebalancing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.interceptors import ConsumerInterceptor
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern
from barnabas.client.consumer.options import CloseOptions, GroupMembershipOperation
from barnabas.client.consumer.record import ConsumerRecords
from barnabas.client.errors import NoOffsetForPartition, Wakeup
from barnabas.errors import InvalidTopic
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker
from tests.integration.client.records import numbered, partitions, poll_until, produce, wait_for

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def member(bootstrap: str, group: str, **settings: Any) -> Consumer[bytes, bytes]:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"},
        **settings,
    )


@PROTOCOLS
def test_a_subscriber_reads_all_and_commits_the_next_offset(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    """The worked example of positions: consumed 377, committed 378, next 378."""
    topic = new_topic(f"next-{protocol}")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(378))
    with member(bootstrap, topic, group_protocol=protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        records = poll_until(consumer, 378)
        assert records[-1].offset == 377
        assert consumer.committed(partition) is None
        consumer.commit_sync()
        assert consumer.committed(partition) == OffsetAndMetadata(378, "", 0)
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(378, "", 0)}
        assert consumer.position(partition) == 378
        assert consumer.assignment() == {partition}
        assert consumer.subscription() == {topic}
        assert consumer.group_metadata().group_id == topic
        assert consumer.group_metadata().generation_id > 0
        assert consumer.group_metadata().member_id


@PROTOCOLS
def test_the_next_member_goes_on_where_the_last_has_committed(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"go-on-{protocol}")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(20))
    with member(bootstrap, topic, group_protocol=protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, 20)
        consumer.commit_sync({partition: OffsetAndMetadata(12, "a note")})
    with member(bootstrap, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic])
        assert poll_until(consumer, 8)[0].offset == 12
        assert consumer.committed(partition) == OffsetAndMetadata(12, "a note", None)


@PROTOCOLS
def test_closing_commits_what_was_polled_if_commits_are_automatic(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"close-{protocol}")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(30))
    with member(bootstrap, topic, group_protocol=protocol, max_poll_records=10) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, 10)
    with member(bootstrap, topic) as consumer:
        assert consumer.committed(partition) == OffsetAndMetadata(10, "", 0)


@PROTOCOLS
def test_automatic_commits_happen_within_polls_and_are_of_polls_before(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"auto-{protocol}")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(30))
    with member(bootstrap, topic, group_protocol=protocol, max_poll_records=10, auto_commit_interval_ms=1) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, 10)
        time.sleep(0.05)  # longer than the interval: the next poll commits first
        poll_until(consumer, 1)
        deadline = time.monotonic() + 20
        while (committed := consumer.committed(partition)) is None:
            assert time.monotonic() < deadline
        assert committed.offset == 10


def test_an_asynchronous_commit_calls_back_in_a_later_poll_in_order(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("async")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(5))
    seen: list[tuple[dict[TopicPartition, OffsetAndMetadata], Exception | None]] = []
    with member(bootstrap, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, 5)
        consumer.commit_async({partition: OffsetAndMetadata(1)}, lambda offsets, error: seen.append((offsets, error)))
        consumer.commit_async(callback=lambda offsets, error: seen.append((offsets, error)))
        wait_for(consumer, lambda: len(seen) == 2)
        assert [(offsets[partition].offset, error) for offsets, error in seen] == [(1, None), (5, None)]
        assert consumer.committed(partition) == OffsetAndMetadata(5, "", 0)
        consumer.commit_async()
        consumer.commit_sync()  # waits for what was sent before


class Listener(ConsumerRebalanceListener):
    def __init__(self, on_revoked: Callable[[Collection[TopicPartition]], object] | None = None) -> None:
        self.events: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.on_assigned: Callable[[Collection[TopicPartition]], object] = lambda _: None
        self.on_revoked = on_revoked or (lambda _: None)

    def on_partitions_assigned(self, given: Collection[TopicPartition]) -> None:
        self.events.append(("assigned", tuple(given)))
        self.on_assigned(given)

    def on_partitions_revoked(self, given: Collection[TopicPartition]) -> None:
        self.events.append(("revoked", tuple(given)))
        self.on_revoked(given)


def seek_all(consumer: Consumer[Any, Any], given: Collection[TopicPartition], offset: int) -> None:
    for partition in given:
        consumer.seek(partition, offset)


@PROTOCOLS
def test_a_listener_may_commit_and_seek(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    """Offsets kept elsewhere: seek to them when partitions come, commit when they go."""
    topic = new_topic(f"listener-{protocol}", partitions=2)
    for number in (0, 1):
        produce(bootstrap, topic, numbered(10), partition=number)
    listener = Listener()
    with member(bootstrap, topic, group_protocol=protocol, enable_auto_commit=False) as consumer:
        listener.on_assigned = lambda given: seek_all(consumer, given, 4)
        listener.on_revoked = lambda given: consumer.commit_sync()
        consumer.subscribe([topic], listener)
        records = poll_until(consumer, 12)
        assert {record.offset for record in records} == {4, 5, 6, 7, 8, 9}
        consumer.unsubscribe()
        assert [kind for kind, _ in listener.events] == ["assigned", "revoked"]
        assert set(listener.events[0][1]) == set(listener.events[1][1]) == set(partitions(topic, 2))
        assert {offset.offset for offset in consumer.committed(partitions(topic, 2)).values() if offset is not None} == {10}


@PROTOCOLS
def test_two_members_share_the_partitions(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"share-{protocol}", partitions=4)
    with member(bootstrap, topic, group_protocol=protocol) as first, member(bootstrap, topic, group_protocol=protocol) as second:
        first.subscribe([topic])
        wait_for(first, lambda: len(first.assignment()) == 4)
        second.subscribe([topic])

        def shared() -> bool:
            second.poll(0.05)
            return len(first.assignment()) == 2 == len(second.assignment())

        wait_for(first, shared)
        assert first.assignment() | second.assignment() == set(partitions(topic, 4))
        for number in range(4):
            produce(bootstrap, topic, [b"%d" % number], partition=number)
        seen = poll_until(first, 2) + poll_until(second, 2)
        assert {record.value for record in seen} == {b"0", b"1", b"2", b"3"}


def test_a_pattern_finds_topics_made_later_and_no_internal_ones(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("pattern-x")
    prefix = topic.rsplit("-", 1)[0]
    with member(bootstrap, topic, metadata_max_age_ms=300) as consumer:
        consumer.subscribe(re.compile(f"{prefix}-.*|__consumer_offsets"))
        wait_for(consumer, lambda: topic in {partition.topic for partition in consumer.assignment()})
        later = new_topic("pattern-x")
        wait_for(consumer, lambda: {topic, later} <= {partition.topic for partition in consumer.assignment()})
        assert "__consumer_offsets" not in consumer.subscription()
        produce(bootstrap, later, [b"later"])
        assert poll_until(consumer, 1)[0].topic == later


def test_a_pattern_of_the_broker_finds_topics(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("re2-pattern")
    produce(bootstrap, topic, [b"x"])
    with member(bootstrap, topic, group_protocol="consumer") as consumer:
        consumer.subscribe(SubscriptionPattern(re.escape(topic)))
        assert poll_until(consumer, 1)[0].topic == topic


@PROTOCOLS
def test_the_last_subscription_wins_and_no_topics_unsubscribe(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    first, second = new_topic(f"first-{protocol}"), new_topic(f"second-{protocol}")
    produce(bootstrap, first, [b"1"])
    produce(bootstrap, second, [b"2"])
    with member(bootstrap, first, group_protocol=protocol) as consumer:
        consumer.subscribe([first])
        assert poll_until(consumer, 1)[0].topic == first
        consumer.subscribe([second])
        assert consumer.subscription() == {second}
        assert poll_until(consumer, 1)[0].topic == second
        assert consumer.assignment() == {TopicPartition(second, 0)}
        consumer.subscribe([])
        assert consumer.subscription() == set()
        assert consumer.assignment() == set()


def test_none_with_a_commit_is_no_error(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("none-committed")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(5))
    with member(bootstrap, topic, auto_offset_reset="none") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(NoOffsetForPartition):
            poll_until(consumer, 1)
        consumer.commit_sync({partition: OffsetAndMetadata(3)})
        assert poll_until(consumer, 2)[0].offset == 3


class Remembering(ConsumerInterceptor):
    """Drops records older than 10 seconds, and notes what is committed."""

    now_ms = 0

    def __init__(self) -> None:
        self.committed: list[dict[TopicPartition, OffsetAndMetadata]] = []
        self.closed = False
        self.settings: dict[str, Any] = {}

    def configure(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        kept = {
            partition: [record for record in records.records(partition) if self.now_ms - record.timestamp < 10_000]
            for partition in records.partitions()
        }
        return ConsumerRecords(
            {partition: partition_records for partition, partition_records in kept.items() if partition_records}, records.next_offsets()
        )

    def on_commit(self, offsets: Any) -> None:
        self.committed.append(dict(offsets))

    def close(self) -> None:
        self.closed = True


class Failing(ConsumerInterceptor):
    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        raise ValueError("an interceptor's errors go no further")


def test_an_interceptor_drops_what_is_too_old_and_hears_of_commits(bootstrap: str, new_topic: TopicMaker) -> None:
    """The worked example of a time to live: three are sent, only the one in the middle is delivered."""
    topic = new_topic("ttl")
    (partition,) = partitions(topic, 1)
    interceptor = Remembering()
    interceptor.now_ms = int(time.time() * 1000)
    sent = [("first-expired-data", 10_000), ("normal-data", 0), ("last-expired-data", 10_000)]
    produce(bootstrap, topic, [{"value": value.encode(), "timestamp": interceptor.now_ms - age_ms} for value, age_ms in sent])
    with member(bootstrap, topic, interceptor_classes=[Failing(), interceptor], enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in poll_until(consumer, 1)] == [b"normal-data"]
        consumer.commit_sync()
        assert interceptor.committed == [{partition: OffsetAndMetadata(3, "", 0)}]
        assert interceptor.settings["client.id"] == consumer.client_id
    assert interceptor.closed


def test_enforce_rebalance_makes_a_new_generation(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("enforce")
    with member(bootstrap, topic) as consumer:
        consumer.subscribe([topic])
        wait_for(consumer, consumer.assignment)
        before = consumer.group_metadata().generation_id
        consumer.enforce_rebalance("a test asks for it")
        wait_for(consumer, lambda: consumer.group_metadata().generation_id > before)


@PROTOCOLS
def test_a_wakeup_leaves_the_membership_whole(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"woken-{protocol}")
    produce(bootstrap, topic, [b"x"])
    with member(bootstrap, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic])
        for _ in range(5):
            consumer.wakeup()
            with pytest.raises(Wakeup):
                consumer.poll(1)
        assert poll_until(consumer, 1)[0].value == b"x"


def test_polls_of_no_time_come_to_an_assignment_too(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("poll-0")
    with member(bootstrap, topic) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 20
        while not consumer.assignment():
            consumer.poll(0)
            assert time.monotonic() < deadline


def test_assigned_partitions_begin_at_the_commits_of_the_group(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("assigned-commit")
    (partition,) = partitions(topic, 1)
    produce(bootstrap, topic, numbered(10))
    with member(bootstrap, topic, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        poll_until(consumer, 10)
        consumer.commit_sync({partition: OffsetAndMetadata(6, "", 0)})
    with member(bootstrap, topic) as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 6


def test_a_member_may_remain_in_its_group_when_it_closes(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("remain")
    consumer = member(bootstrap, topic, session_timeout_ms=6000)
    consumer.subscribe([topic])
    wait_for(consumer, consumer.assignment)
    consumer.close(CloseOptions(timeout=5, operation=GroupMembershipOperation.REMAIN_IN_GROUP))
    with member(bootstrap, topic) as other:
        other.subscribe([topic])
        other.poll(1)
        assert other.assignment() == set()  # the one that remains is waited for, until its session ends


def test_an_invalid_topic_is_told(bootstrap: str) -> None:
    with member(bootstrap, "invalid-topic") as consumer:
        consumer.subscribe(["not/a/topic"])
        with pytest.raises(InvalidTopic, match="not/a/topic"):
            poll_until(consumer, 1)


def test_a_topic_that_is_read_is_made_if_that_is_allowed(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = f"{new_topic('made-by')}-reading"
    with member(bootstrap, topic) as consumer:
        consumer.subscribe([topic])
        wait_for(consumer, consumer.assignment)


def test_a_topic_that_comes_later_is_assigned_when_it_does(bootstrap: str, new_topic: TopicMaker) -> None:
    first = new_topic("comes")
    later = re.sub(r"\d+$", lambda number: str(int(number[0]) + 1), first)  # the name the next one will have
    with member(bootstrap, first, allow_auto_create_topics=False, metadata_max_age_ms=300) as consumer:
        consumer.subscribe([later])
        assert consumer.poll(0.5).is_empty()
        assert consumer.assignment() == set()
        assert new_topic("comes") == later
        produce(bootstrap, later, [b"x"])
        assert poll_until(consumer, 1)[0].topic == later
