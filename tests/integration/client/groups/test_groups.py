"""Our consumers in groups, by both protocols: what listeners hear, what commits come to, who is put out and comes back."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from barnabas.client.consumer.assignors import AbstractPartitionAssignor, CooperativeStickyAssignor, RangeAssignor, Subscription
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.interceptors import ConsumerInterceptor
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern
from barnabas.client.consumer.options import CloseOptions, GroupMembershipOperation
from barnabas.client.consumer.record import ConsumerRecords
from barnabas.client.errors import (
    CommitFailed,
    FencedInstanceId,
    IllegalState,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidRegularExpression,
    KafkaError,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    Wakeup,
)
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker

WAIT_S = 30
SESSION_TIMEOUT_MS = 3000
CLASSIC = {"group.protocol": "classic", "session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 200}
CONSUMER = {"group.protocol": "consumer"}
both_protocols = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])

Partitions = Collection[TopicPartition]
BytesConsumer = Consumer[bytes, bytes]


class Heard(ConsumerRebalanceListener):
    """Everything a listener hears, in order; without assignments that bring nothing new."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[int, ...]]] = []

    def on_partitions_assigned(self, partitions: Partitions) -> None:
        if partitions:
            self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: Partitions) -> None:
        if partitions:
            self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: Partitions) -> None:
        self._note("lost", partitions)

    def _note(self, what: str, partitions: Partitions) -> None:
        self.events.append((what, tuple(sorted(one.partition for one in partitions))))


class Stage:
    """A topic, a group, and the consumers that a test has put there; they are closed when it ends."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = f"group-of-{topic}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self._consumers: list[BytesConsumer] = []

    def consumer(self, protocol: Mapping[str, object], listener: ConsumerRebalanceListener | None = None, **settings: Any) -> BytesConsumer:
        """Subscribed to the topic."""
        one = self.unsubscribed(protocol, **settings)
        one.subscribe([self.topic], listener)
        return one

    def unsubscribed(self, protocol: Mapping[str, object], **settings: Any) -> BytesConsumer:
        base = {"bootstrap.servers": self.bootstrap, "group.id": self.group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        one: BytesConsumer = Consumer({**base, **protocol}, **settings)
        self._consumers.append(one)
        return one

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    def produce(self, count: int, partition: int = 0) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap})
        for number in range(count):
            producer.produce(self.topic, str(number).encode(), partition=partition)
        assert producer.flush(WAIT_S) == 0

    def committed(self) -> dict[int, int]:
        """As an administrator sees it."""
        consumer_group_offsets = self.admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions(self.group)])
        return {one.partition: one.offset for one in consumer_group_offsets[self.group].result(WAIT_S).topic_partitions}

    def members(self) -> list[str]:
        (described,) = self.admin.describe_consumer_groups([self.group]).values()
        return [member.member_id for member in described.result(WAIT_S).members]

    def end(self) -> None:
        for one in self._consumers:
            one.close(5)


@pytest.fixture
def stage(bootstrap: str, new_topic: TopicMaker, request: pytest.FixtureRequest) -> Generator[Stage, None, None]:
    name = re.sub(r"\W+", "-", request.node.originalname)[:60]
    made = Stage(bootstrap, new_topic(name, partitions=4))
    yield made
    made.end()


def until(what: str, condition: Callable[[], bool], *consumers: BytesConsumer) -> list[Any]:
    """Polls the consumers in turn until the condition holds; gives the records they were given meanwhile."""
    deadline = time.monotonic() + WAIT_S
    records: list[Any] = []
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {WAIT_S} s: {what}; assigned {[sorted(one.assignment()) for one in consumers]}")
        for one in consumers:
            records += one.poll(0.05)
    return records


def first_records(one: BytesConsumer) -> list[Any]:
    """What the first poll that gives something gives."""
    deadline = time.monotonic() + WAIT_S
    while not (records := list(one.poll(0.1))):
        assert time.monotonic() < deadline, "no records"
    return records


def assigned(*consumers: BytesConsumer) -> list[int]:
    return sorted(one.partition for consumer in consumers for one in consumer.assignment())


def shared(*consumers: BytesConsumer) -> bool:
    """Whether the four partitions are divided among them, and each has some."""
    return assigned(*consumers) == [0, 1, 2, 3] and all(consumer.assignment() for consumer in consumers)


# Assignments and listeners


@both_protocols
def test_a_member_that_is_alone_gets_everything(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    one = stage.consumer(protocol, heard)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    assert heard.events == [("assigned", (0, 1, 2, 3))]


@both_protocols
def test_a_second_member_gets_its_share_and_gives_it_back_when_it_closes(stage: Stage, protocol: dict[str, object]) -> None:
    first, second = stage.consumer(protocol), stage.consumer(protocol)
    until("both have a share", lambda: shared(first, second), first, second)
    second.close()
    until("the first has all", lambda: assigned(first) == [0, 1, 2, 3], first)


def test_an_eager_rebalance_takes_everything_first(stage: Stage) -> None:
    heard = Heard()
    strategy = {"partition.assignment.strategy": ["range"]}
    first = stage.consumer(CLASSIC | strategy, heard)
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    second = stage.consumer(CLASSIC | strategy)
    until("both have a share", lambda: shared(first, second), first, second)
    assert heard.events[1:] == [("revoked", (0, 1, 2, 3)), ("assigned", tuple(assigned(first)))]


@pytest.mark.parametrize(
    "protocol", [CLASSIC | {"partition.assignment.strategy": ["cooperative-sticky"]}, CONSUMER], ids=["classic", "consumer"]
)
def test_a_cooperative_rebalance_takes_only_what_moves(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    first = stage.consumer(protocol, heard)
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    second = stage.consumer(protocol)
    until("both have a share", lambda: shared(first, second), first, second)
    assert heard.events[1:] == [("revoked", tuple(assigned(second)))]


@both_protocols
def test_a_listener_may_commit_what_is_taken_and_seek_in_what_is_given(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(5)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Partitions) -> None:
            for partition in partitions:
                one.seek(partition, 2)

        def on_partitions_revoked(self, partitions: Partitions) -> None:
            one.commit_sync()

    one = stage.unsubscribed(protocol)
    one.subscribe([stage.topic], Listener())
    seen = first_records(one)
    one.close()
    assert (seen[0].offset, stage.committed()[0]) == (2, 5)


@both_protocols
def test_what_a_listener_raises_is_raised_by_poll_and_the_assignment_stands(stage: Stage, protocol: dict[str, object]) -> None:
    class Broken(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Partitions) -> None:
            if partitions:
                raise ValueError("no thanks")

    one = stage.consumer(protocol, Broken())
    with pytest.raises(KafkaError, match="User rebalance callback throws an error") as caught:
        until("the listener is called", lambda: False, one)
    assert isinstance(caught.value.__cause__, ValueError)
    assert assigned(one) == [0, 1, 2, 3]


@both_protocols
def test_unsubscribing_leaves_the_group_at_once(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    one = stage.consumer(protocol, heard)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    one.unsubscribe()
    assert heard.events[-1] == ("revoked", (0, 1, 2, 3))
    assert (one.assignment(), stage.members()) == (set(), [])


@both_protocols
def test_a_member_can_come_back_after_it_has_unsubscribed(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    one.unsubscribe()
    one.subscribe([stage.topic])
    until("all is assigned again", lambda: assigned(one) == [0, 1, 2, 3], one)


@both_protocols
def test_another_subscription_brings_another_assignment(stage: Stage, protocol: dict[str, object], new_topic: TopicMaker) -> None:
    other = new_topic("another-subscription", partitions=1)
    one = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    one.subscribe([other])
    until("the other topic is assigned", lambda: one.assignment() == {TopicPartition(other, 0)}, one)


@both_protocols
def test_a_pattern_brings_topics_that_are_made_later(stage: Stage, protocol: dict[str, object], new_topic: TopicMaker) -> None:
    prefix = f"seen-by-{protocol['group.protocol']}"
    first = new_topic(prefix, partitions=1)
    one = stage.unsubscribed(protocol, metadata_max_age_ms=300)
    one.subscribe(re.compile(f".*{prefix}.*"))
    until("the topic is assigned", lambda: TopicPartition(first, 0) in one.assignment(), one)
    second = new_topic(prefix, partitions=1)
    until("the new topic is assigned", lambda: TopicPartition(second, 0) in one.assignment(), one)
    assert one.subscription() == {first, second}


def test_a_leader_with_a_pattern_serves_members_with_other_topics(stage: Stage, new_topic: TopicMaker) -> None:
    other = new_topic("not-of-the-leader", partitions=1)
    leader = stage.unsubscribed(CLASSIC)
    leader.subscribe(re.compile(re.escape(stage.topic)))
    until("the leader has its topic", lambda: assigned(leader) == [0, 1, 2, 3], leader)
    follower = stage.unsubscribed(CLASSIC)
    follower.subscribe([other])
    until("the other has its topic", lambda: follower.assignment() == {TopicPartition(other, 0)}, leader, follower)
    until("the leader has its own again", lambda: assigned(leader) == [0, 1, 2, 3], leader, follower)
    assert leader.subscription() == {stage.topic}


def test_a_pattern_that_the_broker_evaluates_brings_topics(stage: Stage) -> None:
    stage.produce(1)
    one = stage.unsubscribed(CONSUMER)
    one.subscribe(SubscriptionPattern(f"{stage.topic[:-1]}.$"))
    records = until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    records += one.poll(WAIT_S) if not records else []
    assert [record.value for record in records] == [b"0"]


def test_a_pattern_that_is_none_is_refused_by_the_broker(stage: Stage) -> None:
    one = stage.unsubscribed(CONSUMER)
    one.subscribe(SubscriptionPattern("*["))
    with pytest.raises(InvalidRegularExpression):
        until("the broker refuses", lambda: False, one)


def test_a_pattern_for_the_broker_needs_the_consumer_protocol(stage: Stage) -> None:
    one = stage.unsubscribed(CLASSIC)
    with pytest.raises(IllegalState, match="not supported when using the CLASSIC protocol"):
        one.subscribe(SubscriptionPattern("t.*"))


@both_protocols
def test_partitions_that_are_added_are_assigned(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol, metadata_max_age_ms=300)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    stage.admin.create_partitions([NewPartitions(stage.topic, 6)])[stage.topic].result(WAIT_S)
    until("the new ones are assigned", lambda: assigned(one) == [0, 1, 2, 3, 4, 5], one)


def test_the_application_may_ask_for_a_rebalance(stage: Stage) -> None:
    one = stage.consumer(CLASSIC)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    generation = one.group_metadata().generation_id
    one.enforce_rebalance("because")
    until("there is a new generation", lambda: one.group_metadata().generation_id > generation, one)


def test_an_assignor_of_the_application_divides_the_partitions(stage: Stage) -> None:
    class AllToTheFirst(AbstractPartitionAssignor):
        name = "all-to-the-first"

        def assign_partitions(self, topics: Any, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
            every = [TopicPartition(topic, number) for topic, partitions in topics.items() for number in range(len(partitions))]
            first = min(subscriptions)
            return {member: every if member == first else [] for member in subscriptions}

    strategy = {"partition.assignment.strategy": [AllToTheFirst]}
    first, second = stage.consumer(CLASSIC | strategy), stage.consumer(CLASSIC | strategy)
    until("both are in the group", lambda: len(stage.members()) == 2, first, second)
    until("one has all", lambda: sorted([assigned(first), assigned(second)]) == [[], [0, 1, 2, 3]], first, second)


def test_members_without_a_common_assignor_are_refused(stage: Stage) -> None:
    first = stage.consumer(CLASSIC | {"partition.assignment.strategy": [RangeAssignor]})
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    second = stage.consumer(CLASSIC | {"partition.assignment.strategy": [CooperativeStickyAssignor]})
    with pytest.raises(InconsistentGroupProtocol):
        until("the second is refused", lambda: False, second)


def test_an_assignor_that_the_broker_does_not_have_is_refused(stage: Stage) -> None:
    one = stage.consumer(CONSUMER | {"group.remote.assignor": "nonsense"})
    with pytest.raises(UnsupportedAssignor):
        until("the broker refuses", lambda: False, one)


# Life and death


@both_protocols
def test_a_member_whose_application_does_not_poll_loses_its_partitions_and_comes_back(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    slow = stage.consumer(protocol, heard, max_poll_interval_ms=1500)
    until("all is assigned", lambda: assigned(slow) == [0, 1, 2, 3], slow)
    other = stage.consumer(protocol)
    until("the other has all", lambda: assigned(other) == [0, 1, 2, 3], other)
    until("both have a share", lambda: shared(slow, other), slow, other)
    assert heard.events[1][0] == "lost"


@both_protocols
def test_a_member_that_waits_in_poll_for_longer_than_the_poll_interval_stays(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    slower = {"heartbeat.interval.ms": 2500} if protocol is CLASSIC else {}
    one = stage.consumer(protocol | slower, heard, max_poll_interval_ms=1000)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    before = list(heard.events)  # a busy machine may have put it out between two polls
    one.poll(2.5)
    assert heard.events == before


def test_a_member_that_was_put_out_cannot_commit_and_comes_back(stage: Stage) -> None:
    heard = Heard()
    one = stage.consumer(CLASSIC, heard, max_poll_interval_ms=800)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    before = len(heard.events)  # a busy machine may have put it out between two polls
    deadline = time.monotonic() + WAIT_S
    while stage.members():
        assert time.monotonic() < deadline, "the member has not left"
    with pytest.raises(CommitFailed):
        one.commit_sync({stage.partition(0): OffsetAndMetadata(1)})
    until("all is assigned again", lambda: len(heard.events) == before + 2, one)
    assert heard.events[before:] == [("lost", (0, 1, 2, 3)), ("assigned", (0, 1, 2, 3))]


@both_protocols
def test_a_static_member_finds_its_assignment_again_without_a_rebalance(stage: Stage, protocol: dict[str, object]) -> None:
    heard = Heard()
    other = stage.consumer(protocol, heard)
    static = stage.consumer(protocol, group_instance_id="one")
    until("both have a share", lambda: shared(other, static), other, static)
    had, heard.events[:] = static.assignment(), []
    static.close()
    again = stage.consumer(protocol, group_instance_id="one")
    until("it has the same again", lambda: again.assignment() == had, other, again)
    assert heard.events == []


@both_protocols
def test_a_static_member_that_is_told_to_leave_leaves(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol, group_instance_id="one")
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    one.close(CloseOptions(operation=GroupMembershipOperation.LEAVE_GROUP))
    assert stage.members() == []


@both_protocols
def test_a_dynamic_member_that_is_told_to_remain_remains_until_its_session_ends(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    one.close(CloseOptions(operation=GroupMembershipOperation.REMAIN_IN_GROUP))
    assert len(stage.members()) == 1


def test_a_static_member_is_fenced_by_another_of_its_name(stage: Stage) -> None:
    first = stage.consumer(CLASSIC, group_instance_id="one")
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    second = stage.consumer(CLASSIC, group_instance_id="one")
    with pytest.raises(FencedInstanceId):
        until("the first is fenced", lambda: False, second, first)


def test_a_static_member_of_the_consumer_protocol_refuses_another_of_its_name(stage: Stage) -> None:
    first = stage.consumer(CONSUMER, group_instance_id="one")
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    second = stage.consumer(CONSUMER, group_instance_id="one")
    with pytest.raises(UnreleasedInstanceId):
        until("the second is refused", lambda: False, first, second)


# Commits


@both_protocols
def test_positions_are_committed_and_found_by_the_next_consumer(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(10)
    one = stage.consumer(protocol, max_poll_records=4)
    first_records(one)
    one.commit_sync()
    one.close()
    two = stage.consumer(protocol)
    records = until("the rest is read", lambda: two.assignment() != set() and two.position(stage.partition(0)) == 10, two)
    assert [record.offset for record in records] == list(range(4, 10))


@both_protocols
def test_a_commit_carries_offset_metadata_and_leader_epoch(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    metadata = OffsetAndMetadata(7, "by whom", 0)
    one.commit_sync({stage.partition(1): metadata})
    assert one.committed([stage.partition(0), stage.partition(1)]) == {stage.partition(0): None, stage.partition(1): metadata}


@both_protocols
def test_callbacks_of_commits_come_in_order_and_only_when_the_application_calls(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    called: list[tuple[int, object, int]] = []
    for offset in range(5):
        one.commit_async(
            {stage.partition(0): OffsetAndMetadata(offset)},
            lambda offsets, error: called.append((offsets[stage.partition(0)].offset, error, threading.get_ident())),
        )
    one.commit_sync({stage.partition(0): OffsetAndMetadata(9)})
    assert called == [(offset, None, threading.get_ident()) for offset in range(5)]
    assert stage.committed() == {0: 9}


@both_protocols
def test_positions_are_committed_by_themselves_while_polling(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(3)
    one = stage.consumer(protocol, enable_auto_commit=True, auto_commit_interval_ms=100)
    until("what was read is committed", lambda: stage.committed() == {0: 3, 1: 0, 2: 0, 3: 0}, one)


@both_protocols
def test_positions_are_committed_by_themselves_when_closing(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(3)
    one = stage.consumer(protocol, enable_auto_commit=True, auto_commit_interval_ms=60_000)
    until("all is read", lambda: one.assignment() != set() and one.position(stage.partition(0)) == 3, one)
    one.close()
    assert stage.committed()[0] == 3


@both_protocols
def test_positions_are_committed_by_themselves_before_partitions_are_taken(stage: Stage, protocol: dict[str, object]) -> None:
    for partition in range(4):
        stage.produce(2, partition)
    auto = dict(protocol) | {"enable.auto.commit": True, "auto.commit.interval.ms": 60_000}
    first = stage.consumer(auto)
    until("all is read", lambda: assigned(first) != [] and all(first.position(one) == 2 for one in first.assignment()), first)
    second = stage.consumer(auto)
    records = until("both have a share", lambda: shared(first, second), first, second)
    assert records == []
    assert [stage.committed()[one.partition] for one in second.assignment()] == [2] * len(second.assignment())


def test_partitions_that_the_application_assigned_itself_are_committed_without_joining(stage: Stage) -> None:
    one = stage.unsubscribed(CLASSIC)
    one.assign([stage.partition(2)])
    one.commit_sync({stage.partition(2): OffsetAndMetadata(3)})
    assert (stage.committed(), stage.members()) == ({2: 3}, [])


def test_a_commit_for_a_topic_that_was_made_anew_is_done_when_its_new_id_is_known(stage: Stage) -> None:
    one = stage.unsubscribed(CONSUMER, default_api_timeout_ms=WAIT_S * 1000)
    one.assign([stage.partition(0)])
    one.position(stage.partition(0))  # now the topic's id is known
    stage.admin.delete_topics([stage.topic])[stage.topic].result(WAIT_S)
    until("it is gone", lambda: stage.topic not in stage.admin.list_topics(timeout=WAIT_S).topics)
    stage.admin.create_topics([NewTopic(stage.topic, 1)])[stage.topic].result(WAIT_S)
    one.commit_sync({stage.partition(0): 7})
    assert one.committed(stage.partition(0)) == OffsetAndMetadata(7)


def test_a_commit_without_a_member_is_refused_while_the_group_has_members(stage: Stage) -> None:
    member = stage.consumer(CLASSIC)
    until("all is assigned", lambda: assigned(member) == [0, 1, 2, 3], member)
    stranger = stage.unsubscribed(CLASSIC)
    stranger.assign([stage.partition(2)])
    with pytest.raises(CommitFailed):
        stranger.commit_sync({stage.partition(2): OffsetAndMetadata(3)})


def test_a_consumer_without_a_group_cannot_commit(stage: Stage) -> None:
    one = stage.unsubscribed({"group.id": None})
    one.assign([stage.partition(0)])
    with pytest.raises(InvalidGroupId):
        one.commit_sync({stage.partition(0): OffsetAndMetadata(1)})


@both_protocols
def test_interceptors_are_told_what_was_committed(stage: Stage, protocol: dict[str, object]) -> None:
    calls: list[dict[TopicPartition, OffsetAndMetadata]] = []

    class Interceptor(ConsumerInterceptor):
        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            calls.append(dict(offsets))

    stage.produce(2)
    one = stage.consumer(protocol, interceptor_classes=[Interceptor])
    until("all is read", lambda: one.assignment() != set() and one.position(stage.partition(0)) == 2, one)
    one.commit_sync()
    assert [(offsets[stage.partition(0)].offset, len(offsets)) for offsets in calls] == [(2, 4)]


@both_protocols
def test_what_is_committed_and_read_next_is_one_past_what_was_read(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(378)
    one = stage.consumer(protocol)
    records = until("all is read", lambda: one.assignment() != set() and one.position(stage.partition(0)) == 378, one)
    one.commit_sync()
    committed = one.committed(stage.partition(0))
    assert committed is not None
    assert (records[-1].offset, committed.offset, one.position(stage.partition(0))) == (377, 378, 378)


@both_protocols
def test_an_interceptor_drops_records_that_are_too_old(stage: Stage, protocol: dict[str, object]) -> None:
    """Three are sent, the first and the last of them as if ten seconds ago and more."""

    class TimeToLive(ConsumerInterceptor):
        def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
            now_ms = time.time() * 1000
            young = {
                partition: [record for record in records.records(partition) if now_ms - record.timestamp < 10_000]
                for partition in records.partitions()
            }
            return ConsumerRecords({partition: kept for partition, kept in young.items() if kept}, records.next_offsets())

    producer = confluent_kafka.Producer({"bootstrap.servers": stage.bootstrap})
    now_ms = int(time.time() * 1000)
    for value, age_ms in ((b"first-expired-data", 11_000), (b"normal-data", 0), (b"last-expired-data", 11_000)):
        producer.produce(stage.topic, value, partition=0, timestamp=now_ms - age_ms)
    assert producer.flush(WAIT_S) == 0
    one = stage.consumer(protocol, interceptor_classes=[TimeToLive])
    records = until("all is read", lambda: one.assignment() != set() and one.position(stage.partition(0)) == 3, one)
    assert [record.value for record in records] == [b"normal-data"]


@both_protocols
def test_a_member_that_waits_for_records_takes_part_in_a_rebalance_at_once(stage: Stage, protocol: dict[str, object]) -> None:
    first = stage.consumer(protocol)
    until("all is assigned", lambda: assigned(first) == [0, 1, 2, 3], first)
    stop = threading.Event()

    def wait() -> None:
        while not stop.is_set():
            first.poll(WAIT_S)

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        second = stage.consumer(protocol)
        until("the second has a share", lambda: assigned(second) != [], second)
    finally:
        stop.set()
        stage.produce(1, partition=0)
        stage.produce(1, partition=1)
        stage.produce(1, partition=2)
        stage.produce(1, partition=3)
        waiting.join(WAIT_S)
    assert not waiting.is_alive()


@both_protocols
def test_polls_that_do_not_wait_get_there_too(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(1)
    one = stage.consumer(protocol)
    deadline = time.monotonic() + WAIT_S
    while not (records := one.poll(0)):
        assert time.monotonic() < deadline, "no record"
    assert [record.value for record in records] == [b"0"]


@both_protocols
def test_a_listener_that_wakes_the_poll_up_does_not_end_the_rebalance(stage: Stage, protocol: dict[str, object]) -> None:
    stage.produce(1)
    calls: list[int] = []

    class Sleepy(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Partitions) -> None:
            if partitions and not calls:
                calls.append(len(partitions))
                raise Wakeup("not now")

    one = stage.consumer(protocol, Sleepy())
    with pytest.raises(Wakeup):
        until("the listener is called", lambda: False, one)
    assert [record.value for record in first_records(one)] == [b"0"]


@both_protocols
def test_a_member_tells_who_it_is_in_its_group(stage: Stage, protocol: dict[str, object]) -> None:
    one = stage.consumer(protocol, group_instance_id="me")
    until("all is assigned", lambda: assigned(one) == [0, 1, 2, 3], one)
    metadata = one.group_metadata()
    assert (metadata.group_id, metadata.generation_id > 0, metadata.group_instance_id) == (stage.group, True, "me")
    assert stage.members() == [metadata.member_id]
