"""A consumer's side of incremental fetches."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.fetching.fetch_session import FINAL_EPOCH, FetchPlan, FetchSessionHandler, PartitionToFetch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

A, B, C = (TopicPartition("t", number) for number in range(3))
ID = Uuid.random(Random(1))
OTHER_ID = Uuid.random(Random(2))
VERSION = 17


def at(offset: int, topic_id: Uuid = ID) -> PartitionToFetch:
    return PartitionToFetch(topic_id, offset, 1000, 0)


def answer(*partitions: TopicPartition, session_id: int = 7, error: int = 0, throttle_ms: int = 0) -> FetchResponse:
    rows = [PartitionData(partition_index=partition.partition) for partition in partitions]
    topics = [FetchableTopicResponse(topic="t", topic_id=ID, partitions=rows)] if rows else []
    return FetchResponse(session_id=session_id, error_code=error, responses=topics, throttle_time_ms=throttle_ms)


def in_session(*partitions: TopicPartition) -> FetchSessionHandler:
    session = FetchSessionHandler(1)
    session.build({partition: at(0) for partition in partitions})
    assert session.handle_response(answer(*partitions), VERSION)
    return session


def test_the_first_request_says_all_and_asks_for_a_session() -> None:
    plan = FetchSessionHandler(1).build({A: at(0), B: at(5)})
    assert (plan.session_id, plan.epoch, plan.to_forget) == (0, 0, [])
    assert plan.to_send == {A: at(0), B: at(5)}
    request = plan.fill(FetchRequest())
    assert [(topic.topic_id, [row.fetch_offset for row in topic.partitions]) for topic in request.topics] == [(ID, [0, 5])]


def test_the_next_says_only_what_changed() -> None:
    session = in_session(A, B)
    plan = session.build({A: at(3), B: at(0), C: at(9)})
    assert (plan.session_id, plan.epoch) == (7, 1)
    assert plan.to_send == {A: at(3), C: at(9)}
    assert plan.session_partitions == {A: at(3), B: at(0), C: at(9)}


def test_what_is_not_wanted_any_more_is_forgotten() -> None:
    plan = in_session(A, B).build({B: at(0)})
    assert plan.to_send == {}
    assert plan.to_forget == [(ID, A)]
    forgotten = plan.fill(FetchRequest()).forgotten_topics_data
    assert [(topic.topic, topic.topic_id, topic.partitions) for topic in forgotten] == [("t", ID, [0])]


def test_a_topic_made_anew_is_forgotten_and_added() -> None:
    plan = in_session(A).build({A: at(0, OTHER_ID)})
    assert plan.to_send == {A: at(0, OTHER_ID)}
    assert plan.to_forget == [(ID, A)]


def test_epochs_count_and_wrap() -> None:
    session = in_session(A)
    for epoch in (1, 2, 3):
        assert session.build({A: at(0)}).epoch == epoch
        assert session.handle_response(answer(), VERSION)
    session.epoch = 2**31 - 1
    assert session.handle_response(answer(), VERSION)
    assert session.epoch == 1


def test_a_broker_without_room_for_sessions_is_told_all_each_time() -> None:
    session = FetchSessionHandler(1)
    for _ in range(2):
        plan = session.build({A: at(0)})
        assert (plan.session_id, plan.epoch, plan.to_send) == (0, 0, {A: at(0)})
        assert session.handle_response(answer(A, session_id=0), VERSION)


def test_a_session_the_broker_forgot_begins_anew() -> None:
    session = in_session(A)
    assert not session.handle_response(answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), VERSION)
    assert (session.session_id, session.epoch) == (0, 0)


@pytest.mark.parametrize("error", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR])
def test_another_error_closes_the_session_and_opens_one(error: ErrorCode) -> None:
    session = in_session(A)
    assert not session.handle_response(answer(error=error), VERSION)
    plan = session.build({A: at(0)})
    assert (plan.session_id, plan.epoch, plan.to_send) == (7, 0, {A: at(0)})


def test_a_request_that_failed_closes_the_session_and_opens_one() -> None:
    session = in_session(A)
    session.handle_error()
    assert (session.session_id, session.epoch) == (7, 0)


def test_a_session_closed_by_the_broker_begins_anew_but_its_answer_counts() -> None:
    session = in_session(A)
    assert session.handle_response(answer(A, session_id=0), VERSION)
    assert (session.session_id, session.epoch) == (0, 0)


@pytest.mark.parametrize("partitions", [(A,), (A, B, C), ()])
def test_a_full_answer_of_other_partitions_is_not_believed(partitions: tuple[TopicPartition, ...]) -> None:
    session = FetchSessionHandler(1)
    session.build({A: at(0), B: at(0)})
    assert not session.handle_response(answer(*partitions), VERSION)
    assert (session.session_id, session.epoch) == (0, 0)


def test_an_empty_answer_of_a_broker_that_throttles_is_asked_again() -> None:
    session = FetchSessionHandler(1)
    session.build({A: at(0)})
    assert not session.handle_response(answer(throttle_ms=100), VERSION)
    assert session.epoch == 0


def test_an_incremental_answer_may_leave_out_but_not_add() -> None:
    session = in_session(A, B)
    session.build({A: at(0), B: at(0)})
    assert session.handle_response(answer(B), VERSION)
    session.build({A: at(0), B: at(0)})
    assert not session.handle_response(answer(C), VERSION)
    assert (session.session_id, session.epoch) == (7, 0)


def test_topics_without_id_are_named() -> None:
    session = FetchSessionHandler(1)
    plan = session.build({A: at(0, Uuid.ZERO)})
    assert not plan.can_use_topic_ids
    assert session.handle_response(answer(A), 12)
    assert session.answered_partitions(answer(A), VERSION) is None  # by an id that nobody asked for


def test_closing_says_so() -> None:
    session = in_session(A)
    session.close()
    plan = session.build({})
    assert (plan.session_id, plan.epoch) == (7, FINAL_EPOCH)


@given(st.lists(st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 3)), min_size=1, max_size=10))
def test_what_the_broker_knows_is_what_is_wanted(steps: list[dict[TopicPartition, int]]) -> None:
    session = FetchSessionHandler(1)
    known: dict[TopicPartition, PartitionToFetch] = {}
    for step in steps:
        asked_offsets = {partition: at(offset) for partition, offset in step.items()}
        plan: FetchPlan = session.build(asked_offsets)
        if plan.epoch == 0:
            known = {}
        for _, partition in plan.to_forget:
            known.pop(partition, None)
        known.update(plan.to_send)
        assert known == asked_offsets == plan.session_partitions
        assert session.handle_response(answer(*(asked_offsets if plan.epoch == 0 else ())), VERSION)
