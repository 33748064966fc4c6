from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.partitions.fetch_params import PartitionFetch, TopicIdPartition
from barnabas.broker.requests.fetch_session import FetchContext, FetchManager, FetchSessionCache
from barnabas.broker.requests.fetch_session_cache import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, next_epoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from barnabas.protocol.slices import Records
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

BY_NAME = 12
BY_ID = 13
EVICTION_MS = 120_000
FOO_ID = Uuid(b"foo-foo-foo-foo-")
BAR_ID = Uuid(b"bar-bar-bar-bar-")


class Time:
    def __init__(self) -> None:
        self.ms = 0

    def monotonic_ms(self) -> int:
        return self.ms


class Broker:
    """A fetch manager and what it would find in the logs."""

    def __init__(self, slots: int = 10, max_partitions: int = 1000) -> None:
        self.time = Time()
        self.cache = FetchSessionCache(slots, EVICTION_MS, random=Random(7), max_partitions=max_partitions)
        self.manager = FetchManager(self.cache, self.time)
        self.names: dict[Uuid, str] = {}

    def context(
        self,
        wanted: list[TopicIdPartition],
        session_id: int = NO_SESSION,
        epoch: int = INITIAL_EPOCH,
        *,
        version: int = BY_NAME,
        is_follower: bool = False,
        forgotten: list[TopicIdPartition] | None = None,
        offset: int = 0,
    ) -> FetchContext:
        asked = [(partition, PartitionFetch(offset, 100)) for partition in wanted]
        return self.manager.new_context(version, session_id, epoch, is_follower, asked, forgotten or [], self.names.get)

    def new_session(self, wanted: list[TopicIdPartition], *, version: int = BY_NAME, is_follower: bool = False) -> int:
        return respond(self.context(wanted, version=version, is_follower=is_follower)).session_id

    def fetch(self, session_id: int, epoch: int, wanted: list[TopicIdPartition] | None = None, **how: PartitionData) -> FetchResponse:
        return respond(self.context(wanted or [], session_id, epoch), **how)


def named(topic: str, partition: int = 0) -> TopicIdPartition:
    return TopicIdPartition(Uuid.ZERO, TopicPartition(topic, partition))


def with_id(topic_id: Uuid, topic: str = "", partition: int = 0) -> TopicIdPartition:
    return TopicIdPartition(topic_id, TopicPartition(topic, partition))


def data(high_watermark: int = 10, log_start_offset: int = 0, error: int = 0, records: bytes = b"", **more: object) -> PartitionData:
    answer = PartitionData(0, error, high_watermark, -1, log_start_offset, records=Records(records))
    for name, value in more.items():
        setattr(answer, name, value)
    return answer


def respond(context: FetchContext, **by_topic: PartitionData) -> FetchResponse:
    """Answers with what is given for a topic, and the same for all others every time."""
    answers = []
    for partition, _ in context.requested:
        answer = by_topic.get(partition.partition.topic) or data()
        answer.partition_index = partition.partition.partition
        answers.append((partition, answer))
    return context.response(answers)


def told(response: FetchResponse) -> list[tuple[str, int]]:
    return [(topic.topic, answer.partition_index) for topic in response.responses for answer in topic.partitions]


def wanted_of(context: FetchContext) -> list[tuple[str, int]]:
    return [(partition.partition.topic, partition.partition.partition) for partition, _ in context.requested]


# Full requests


def test_a_full_request_gets_a_session() -> None:
    broker = Broker()
    response = respond(broker.context([named("foo"), named("bar")]))
    assert response.session_id > 0
    assert len(broker.cache) == 1
    assert told(response) == [("foo", 0), ("bar", 0)]


def test_a_final_request_gets_none() -> None:
    broker = Broker()
    response = respond(broker.context([named("foo")], epoch=FINAL_EPOCH))
    assert response.session_id == NO_SESSION
    assert told(response) == [("foo", 0)]
    assert len(broker.cache) == 0


def test_a_final_request_ends_its_session() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    broker.context([], session_id, FINAL_EPOCH)
    assert len(broker.cache) == 0
    assert broker.cache.partition_count == 0


def test_a_full_request_ends_the_session_it_names_and_gets_another() -> None:
    broker = Broker()
    first = broker.new_session([named("foo")])
    second = respond(broker.context([named("foo")], first)).session_id
    assert second not in (first, NO_SESSION)
    assert len(broker.cache) == 1


def test_without_slots_there_are_no_sessions() -> None:
    broker = Broker(slots=0)
    assert broker.new_session([named("foo")]) == NO_SESSION


def test_a_partition_named_twice_is_wanted_once_as_it_was_named_last() -> None:
    asked = [(named("foo"), PartitionFetch(1, 100)), (named("bar"), PartitionFetch(2, 100)), (named("foo"), PartitionFetch(3, 100))]
    context = Broker().manager.new_context(BY_NAME, NO_SESSION, FINAL_EPOCH, False, asked, [], lambda _: None)
    assert [(partition.partition.topic, request.offset) for partition, request in context.requested] == [("foo", 3), ("bar", 2)]


def test_neighbours_of_a_topic_stand_together_and_the_order_is_kept() -> None:
    response = respond(Broker().context([named("foo", 0), named("foo", 1), named("bar", 0), named("foo", 2)]))
    assert [(topic.topic, len(topic.partitions)) for topic in response.responses] == [("foo", 2), ("bar", 1), ("foo", 1)]


def test_a_request_without_partitions_is_answered_without_any() -> None:
    broker = Broker()
    response = respond(broker.context([]))
    assert told(response) == []
    assert response.error_code == ErrorCode.NONE


# Incremental requests


def test_an_incremental_request_is_about_all_partitions_of_the_session() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    assert wanted_of(broker.context([], session_id, 1)) == [("foo", 0), ("bar", 0)]


def test_nothing_is_told_of_a_partition_without_news() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    response = broker.fetch(session_id, 1)
    assert told(response) == []
    assert response.session_id == session_id


@pytest.mark.parametrize(
    "news",
    [
        data(high_watermark=11),
        data(log_start_offset=1),
        data(records=b"batch"),
        data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        data(preferred_read_replica=1),
        data(diverging_epoch=EpochEndOffset(1, 5)),
    ],
    ids=["high watermark", "log start offset", "records", "error", "preferred replica", "diverging epoch"],
)
def test_a_partition_with_news_is_told(news: PartitionData) -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    assert told(broker.fetch(session_id, 1, foo=news)) == [("foo", 0)]


def test_a_changed_high_watermark_is_told_once() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    assert told(broker.fetch(session_id, 1, foo=data(high_watermark=11))) == [("foo", 0)]
    assert told(broker.fetch(session_id, 2, foo=data(high_watermark=11))) == []


def test_after_an_error_a_partition_is_told_again_though_nothing_has_changed() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    broker.fetch(session_id, 1, foo=data(error=ErrorCode.KAFKA_STORAGE_ERROR))
    assert told(broker.fetch(session_id, 2)) == [("foo", 0)]
    assert told(broker.fetch(session_id, 3)) == []


def test_what_a_request_names_is_added_or_changed() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    context = broker.context([named("bar"), named("baz")], session_id, 1, offset=7)
    assert [(partition.partition.topic, request.offset) for partition, request in context.requested] == [("foo", 0), ("bar", 7), ("baz", 7)]


def test_a_partition_that_was_added_is_told() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    assert told(broker.fetch(session_id, 1, [named("baz")])) == [("baz", 0)]


def test_a_forgotten_partition_is_no_longer_wanted() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    assert wanted_of(broker.context([], session_id, 1, forgotten=[named("foo"), named("never")])) == [("bar", 0)]
    assert broker.cache.partition_count == 1


def test_what_is_named_and_forgotten_is_forgotten() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    assert wanted_of(broker.context([named("baz")], session_id, 1, forgotten=[named("baz")])) == [("foo", 0), ("bar", 0)]


def test_a_session_whose_last_partition_is_forgotten_ends() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    response = respond(broker.context([], session_id, 1, forgotten=[named("foo")]))
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, NO_SESSION)
    assert len(broker.cache) == 0


def test_a_partition_that_had_data_goes_to_the_end_of_the_line() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar"), named("baz")])
    broker.fetch(session_id, 1, foo=data(records=b"batch"))
    assert wanted_of(broker.context([], session_id, 2)) == [("bar", 0), ("baz", 0), ("foo", 0)]


def test_a_partition_without_data_keeps_its_place() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo"), named("bar")])
    broker.fetch(session_id, 1, foo=data(high_watermark=11))
    assert wanted_of(broker.context([], session_id, 2)) == [("foo", 0), ("bar", 0)]


# Epochs and errors


@pytest.mark.parametrize("session_id", [1, 0, -1, 2**31 - 1])
def test_a_session_nobody_knows_is_not_found(session_id: int) -> None:
    response = respond(Broker().context([named("foo")], session_id, 1))
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, [])


@pytest.mark.parametrize("epoch", [2, 5, -2])
def test_an_epoch_other_than_the_next_is_invalid(epoch: int) -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    response = broker.fetch(session_id, epoch)
    assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION)


def test_a_wrong_epoch_does_no_harm_to_the_session() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    broker.fetch(session_id, 5, [named("bar")])
    assert wanted_of(broker.context([], session_id, 1)) == [("foo", 0)]


def test_a_request_sent_twice_is_refused_the_second_time() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    broker.fetch(session_id, 1)
    assert broker.fetch(session_id, 1).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_answer_that_was_overtaken_by_another_request_is_refused() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    overtaken = broker.context([], session_id, 1)
    broker.fetch(session_id, 2)
    response = respond(overtaken, foo=data(records=b"batch"))
    assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)
    assert response.responses == []


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (2**31 - 1, 1), (-1, -1), (-7, -1)])
def test_the_epoch_after_the_largest_is_the_first(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


def test_the_epoch_of_a_session_wraps_around() -> None:
    broker = Broker()
    session_id = broker.new_session([named("foo")])
    session = broker.cache.get(session_id)
    assert session is not None
    session.epoch = 2**31 - 1
    broker.fetch(session_id, 2**31 - 1)
    assert broker.fetch(session_id, 1).error_code == ErrorCode.NONE


# Topic ids


@pytest.mark.parametrize(("first", "then"), [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_does_not_change_between_names_and_ids(first: int, then: int) -> None:
    broker = Broker()
    session_id = broker.new_session([with_id(FOO_ID if first == BY_ID else Uuid.ZERO, "foo")], version=first)
    assert respond(broker.context([], session_id, 1, version=then)).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_that_becomes_known_gets_its_name() -> None:
    broker = Broker()
    session_id = broker.new_session([with_id(FOO_ID)], version=BY_ID)
    assert wanted_of(broker.context([], session_id, 1, version=BY_ID)) == [("", 0)]
    broker.names[FOO_ID] = "foo"
    assert wanted_of(broker.context([], session_id, 2, version=BY_ID)) == [("foo", 0)]


def test_with_ids_a_partition_is_the_same_whether_its_name_is_known_or_not() -> None:
    broker = Broker()
    session_id = broker.new_session([with_id(FOO_ID)], version=BY_ID)
    broker.names[FOO_ID] = "foo"
    assert len(broker.context([with_id(FOO_ID, "foo")], session_id, 1, version=BY_ID).requested) == 1


def test_with_ids_two_topics_of_one_name_are_two() -> None:
    broker = Broker()
    session_id = broker.new_session([with_id(FOO_ID, "foo")], version=BY_ID)
    context = broker.context([with_id(BAR_ID, "foo")], session_id, 1, version=BY_ID)
    assert [partition.topic_id for partition, _ in context.requested] == [FOO_ID, BAR_ID]


def test_with_ids_a_topic_is_forgotten_by_its_id() -> None:
    broker = Broker()
    session_id = broker.new_session([with_id(FOO_ID, "foo"), with_id(BAR_ID, "bar")], version=BY_ID)
    assert wanted_of(broker.context([], session_id, 1, version=BY_ID, forgotten=[with_id(FOO_ID)])) == [("bar", 0)]


def test_the_ids_come_back_in_the_response() -> None:
    response = respond(Broker().context([with_id(FOO_ID, "foo")], version=BY_ID))
    assert [topic.topic_id for topic in response.responses] == [FOO_ID]


# The cache


def partitions(count: int, topic: str = "foo") -> list[TopicIdPartition]:
    return [named(topic, index) for index in range(count)]


def test_a_new_session_does_not_push_out_a_young_one() -> None:
    broker = Broker(slots=1)
    first = broker.new_session(partitions(1))
    broker.time.ms = EVICTION_MS
    assert broker.new_session(partitions(5)) == NO_SESSION
    assert broker.cache.get(first) is not None


def test_a_session_that_was_not_used_for_long_gives_way_to_any() -> None:
    broker = Broker(slots=1)
    first = broker.new_session(partitions(5), is_follower=True)
    broker.time.ms = EVICTION_MS + 1
    assert broker.new_session(partitions(1)) != NO_SESSION
    assert broker.cache.get(first) is None
    assert broker.cache.eviction_count == 1


def test_of_two_unused_sessions_the_one_unused_for_longer_goes() -> None:
    broker = Broker(slots=2)
    first = broker.new_session(partitions(1))
    second = broker.new_session(partitions(1))
    broker.time.ms = 1
    broker.fetch(first, 1)
    broker.time.ms = EVICTION_MS + 2
    broker.new_session(partitions(1))
    assert broker.cache.get(second) is None
    assert broker.cache.get(first) is not None


def used_for_long(broker: Broker, size: int, is_follower: bool = False) -> int:
    """A session that is old and still in use."""
    session_id = broker.new_session(partitions(size), is_follower=is_follower)
    broker.time.ms += EVICTION_MS + 1
    broker.fetch(session_id, 1)
    return session_id


def test_an_old_session_gives_way_to_a_larger_one() -> None:
    broker = Broker(slots=1)
    old = used_for_long(broker, 2)
    assert broker.new_session(partitions(3)) != NO_SESSION
    assert broker.cache.get(old) is None


def test_an_old_session_does_not_give_way_to_a_smaller_one() -> None:
    broker = Broker(slots=1)
    old = used_for_long(broker, 3)
    assert broker.new_session(partitions(2)) == NO_SESSION
    assert broker.cache.get(old) is not None


def test_a_session_that_grew_is_worth_what_it_holds_now() -> None:
    broker = Broker(slots=1)
    old = used_for_long(broker, 1)
    broker.fetch(old, 2, partitions(5))
    assert broker.new_session(partitions(3)) == NO_SESSION


def test_a_young_session_of_a_consumer_gives_way_to_a_follower() -> None:
    broker = Broker(slots=1)
    consumer = broker.new_session(partitions(5))
    assert broker.new_session(partitions(1), is_follower=True) != NO_SESSION
    assert broker.cache.get(consumer) is None


def test_of_two_consumers_the_smaller_gives_way_to_a_follower() -> None:
    broker = Broker(slots=2)
    large = broker.new_session(partitions(5))
    small = broker.new_session(partitions(2))
    broker.new_session(partitions(1), is_follower=True)
    assert broker.cache.get(large) is not None
    assert broker.cache.get(small) is None


def test_a_young_session_of_a_follower_does_not_give_way_to_a_follower() -> None:
    broker = Broker(slots=1)
    broker.new_session(partitions(1), is_follower=True)
    assert broker.new_session(partitions(5), is_follower=True) == NO_SESSION


def test_an_old_session_of_a_follower_does_not_give_way_to_a_consumer() -> None:
    broker = Broker(slots=1)
    used_for_long(broker, 1, is_follower=True)
    assert broker.new_session(partitions(5)) == NO_SESSION


def test_no_more_partitions_are_kept_than_there_is_room_for() -> None:
    broker = Broker(max_partitions=5)
    assert broker.new_session(partitions(6)) == NO_SESSION
    assert broker.new_session(partitions(5)) != NO_SESSION
    assert broker.new_session(partitions(1)) == NO_SESSION


def test_a_session_that_outgrows_the_room_ends_and_the_fetcher_starts_again() -> None:
    broker = Broker(max_partitions=5)
    session_id = broker.new_session(partitions(3))
    response = broker.fetch(session_id, 1, partitions(3, "bar"))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(broker.cache), broker.cache.partition_count) == (0, 0)


# Properties


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["new", "use", "end"]), st.integers(0, 5), st.booleans(), st.integers(0, 90_000)), max_size=40))
def test_the_cache_counts_right_and_keeps_its_bounds(steps: list[tuple[str, int, bool, int]]) -> None:
    broker = Broker(slots=3)
    epochs: dict[int, int] = {}
    for what, size, is_follower, later_ms in steps:
        broker.time.ms += later_ms
        alive = [session_id for session_id in epochs if broker.cache.get(session_id) is not None]
        if what == "new":
            epochs[broker.new_session(partitions(size), is_follower=is_follower)] = 1
        elif alive and what == "use":
            chosen = alive[size % len(alive)]
            broker.fetch(chosen, epochs[chosen], partitions(size, "bar"))
            epochs[chosen] += 1
        elif alive:
            broker.context([], alive[size % len(alive)], FINAL_EPOCH)
        sessions = [session for session_id in epochs if (session := broker.cache.get(session_id)) is not None]
        assert len(broker.cache) == len(sessions) <= 3
        assert broker.cache.partition_count == sum(len(session.partitions) for session in sessions)


@settings(max_examples=200)
@given(st.lists(st.dictionaries(st.integers(0, 4), st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans())), max_size=15))
def test_a_fetcher_that_hears_only_news_knows_as_much_as_one_that_hears_all(rounds: list[dict[int, tuple[int, int, bool]]]) -> None:
    broker = Broker()
    truth = dict.fromkeys(range(5), (0, 0))
    session_id = NO_SESSION
    known: dict[int, tuple[int, int]] = {}
    for epoch, changes in enumerate([{}, *rounds]):
        truth.update({index: (high, start) for index, (high, start, _) in changes.items()})
        failing = {index for index, (_, _, fails) in changes.items() if fails}
        context = broker.context(partitions(5) if epoch == 0 else [], session_id, epoch)
        answers = []
        for partition, _ in context.requested:
            index = partition.partition.partition
            high, start = truth[index]
            answer = data(-1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER) if index in failing else data(high, start)
            answer.partition_index = index
            answers.append((partition, answer))
        response = context.response(answers)
        session_id = response.session_id
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.error_code == ErrorCode.NONE:
                    known[answer.partition_index] = (answer.high_watermark, answer.log_start_offset)
                else:
                    known.pop(answer.partition_index, None)
        assert known == {index: state for index, state in truth.items() if index not in failing}
