"""A follower's fetch session: what is said to a leader that knows most of it, and which answers are believed."""

from __future__ import annotations

from barnabas.broker.replication.follower_session import FollowerSession
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
LEADER = 1


def wanted(*offsets: tuple[str, Uuid, int, int]) -> list[tuple[TopicPartition, Uuid, FetchPartition]]:
    return [
        (TopicPartition(topic, partition), topic_id, FetchPartition(partition, fetch_offset=offset))
        for topic, topic_id, partition, offset in offsets
    ]


def filled(session: FollowerSession, asked: list[tuple[TopicPartition, Uuid, FetchPartition]]) -> FetchRequest:
    request = FetchRequest()
    session.fill(request, asked)
    return request


def answered(session_id: int, *partitions: tuple[Uuid, int], error: int = 0) -> FetchResponse:
    topics = [FetchableTopicResponse(topic_id=topic_id, partitions=[PartitionData(index)]) for topic_id, index in partitions]
    return FetchResponse(error_code=error, session_id=session_id, responses=topics)


def said(request: FetchRequest) -> list[tuple[Uuid, int, int]]:
    return [(topic.topic_id, partition.partition, partition.fetch_offset) for topic in request.topics for partition in topic.partitions]


def opened(session: FollowerSession) -> None:
    filled(session, wanted(("a", A, 0, 5), ("b", B, 0, 7)))
    assert session.accept(answered(9, (A, 0), (B, 0))) is not None


def test_the_first_fetch_says_everything() -> None:
    request = filled(FollowerSession(LEADER), wanted(("a", A, 0, 5), ("a", A, 1, 6), ("b", B, 0, 7)))
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert said(request) == [(A, 0, 5), (A, 1, 6), (B, 0, 7)]


def test_later_ones_say_what_has_changed() -> None:
    session = FollowerSession(LEADER)
    opened(session)
    request = filled(session, wanted(("a", A, 0, 5), ("b", B, 0, 8), ("b", B, 1, 0)))
    assert (request.session_id, request.session_epoch) == (9, 1)
    assert said(request) == [(B, 0, 8), (B, 1, 0)]
    assert request.forgotten_topics_data == []


def test_what_is_not_followed_any_more_is_forgotten() -> None:
    session = FollowerSession(LEADER)
    opened(session)
    request = filled(session, wanted(("b", B, 0, 7)))
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(A, [0])]


def test_an_answer_names_the_partitions_that_it_speaks_of() -> None:
    session = FollowerSession(LEADER)
    opened(session)
    filled(session, wanted(("a", A, 0, 5), ("b", B, 0, 8)))
    answers = session.accept(answered(9, (B, 0)))
    assert answers is not None
    assert [partition for partition, _ in answers] == [TopicPartition("b", 0)]
    assert session.requested(TopicPartition("b", 0)).fetch_offset == 8


def test_a_session_that_the_leader_lost_begins_anew_without_its_id() -> None:
    session = FollowerSession(LEADER)
    opened(session)
    assert session.accept(answered(0, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)) is None
    request = filled(session, wanted(("a", A, 0, 5)))
    assert (request.session_id, request.session_epoch, said(request)) == (0, 0, [(A, 0, 5)])


def test_after_no_answer_the_old_session_is_replaced() -> None:
    session = FollowerSession(LEADER)
    opened(session)
    session.failed()
    request = filled(session, wanted(("a", A, 0, 5)))
    assert (request.session_id, request.session_epoch, said(request)) == (9, 0, [(A, 0, 5)])


def test_an_answer_that_leaves_something_out_of_a_whole_or_names_a_stranger_is_not_believed() -> None:
    session = FollowerSession(LEADER)
    filled(session, wanted(("a", A, 0, 5), ("b", B, 0, 7)))
    assert session.accept(answered(9, (A, 0))) is None
    opened(session)
    filled(session, wanted(("a", A, 0, 5)))
    assert session.accept(answered(9, (B, 0))) is None


def test_without_a_session_every_fetch_says_everything() -> None:
    session = FollowerSession(LEADER)
    filled(session, wanted(("a", A, 0, 5)))
    session.accept(answered(0, (A, 0)))
    assert said(filled(session, wanted(("a", A, 0, 5)))) == [(A, 0, 5)]


def test_a_session_that_has_begun_can_be_told_of_changes_alone() -> None:
    session = FollowerSession(LEADER)
    assert not session.is_begun
    opened(session)
    assert session.is_begun
    request = FetchRequest()
    session.fill_changes(request, wanted(("b", B, 0, 8)))
    assert (request.session_id, request.session_epoch, said(request)) == (9, 1, [(B, 0, 8)])
    assert request.forgotten_topics_data == []
    assert session.requested(TopicPartition("b", 0)).fetch_offset == 8
    assert session.accept(answered(9, (A, 0))) is not None
    assert said(filled(session, wanted(("a", A, 0, 5), ("b", B, 0, 8)))) == []
