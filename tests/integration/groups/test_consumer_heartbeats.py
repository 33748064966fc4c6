"""One sequence of ConsumerGroupHeartbeats, sent to our broker and to Apache Kafka, is answered alike: errors, epochs and assignments.

Among them what a client sends that is confused by its own subscribing and unsubscribing, as librdkafka 2.15 at times is.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.uuid import Uuid
from tests import broker, kafka_server
from tests.integration.transactions.wire import Connection

pytestmark = pytest.mark.java

WAIT_S = 30
TOPICS = ("first", "second", "third", "fourth")
PARTITIONS = 2
GROUP = "beating"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
OTHER_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
HEARTBEAT_VERSION = 1
METADATA_VERSION = 12
FIND_COORDINATOR_VERSION = 3

Answer = tuple[str, int, str | None, int, list[tuple[str, list[int]]] | None]  # what was asked; error, text, epoch and assignment


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Answer], list[Answer]]:
    directory = tmp_path_factory.mktemp("heartbeats")
    for name in ("ours", "kafka"):
        (directory / name).mkdir()
    return play_on_ours(directory / "ours"), play_on_kafka(directory / "kafka")


def play_on_ours(directory: Path) -> list[Answer]:
    with broker.running(directory, ["--host", "127.0.0.1"]) as bootstrap:
        return play(bootstrap)


def play_on_kafka(directory: Path) -> list[Answer]:
    with kafka_server.running(directory, 1) as bootstrap:
        return play(bootstrap)


def test_every_heartbeat_is_answered_as_kafka_answers_it(answers: tuple[list[Answer], list[Answer]]) -> None:
    ours, theirs = answers
    assert ours == theirs


def test_what_cannot_be_taken_for_a_join_is_refused(answers: tuple[list[Answer], list[Answer]]) -> None:
    refused = [answer for answer in answers[0] if answer[0].startswith("epoch 0")]
    assert len(refused) == 5
    assert {answer[1] for answer in refused} == {ErrorCode.INVALID_REQUEST}


class Member:
    """Sends heartbeats with the epoch it was last given, and notes the answers."""

    def __init__(self, connection: Connection, ids: dict[str, Uuid], group: str) -> None:
        self.answers: list[Answer] = []
        self.epoch = 0
        self._group = group
        self._connection = connection
        self._ids = ids
        self._names = {topic_id: name for name, topic_id in ids.items()}

    def beat(self, what: str, epoch: int | None = None, owned: dict[str, list[int]] | None = None, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=fields.pop("member", MEMBER),
            member_epoch=self.epoch if epoch is None else epoch,
            topic_partitions=None if owned is None else [TopicPartitions(self._ids[name], some) for name, some in owned.items()],
            **fields,
        )
        answer = self._connection.ask(request, HEARTBEAT_VERSION)
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
        assigned = None
        if answer.assignment is not None:
            assigned = sorted((self._names[topic.topic_id], sorted(topic.partitions)) for topic in answer.assignment.topic_partitions)
        text = answer.error_message and answer.error_message.replace(self._group, "GROUP")
        self.answers.append((what, answer.error_code, text, answer.member_epoch, assigned))


def play(bootstrap: str) -> list[Answer]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS]).values():
        made.result(WAIT_S)
    with closing(Connection(bootstrap)) as connection:
        member = enter(connection)
        first, second, third, fourth = TOPICS
        both = [0, 1]
        timeout: dict[str, Any] = {"rebalance_timeout_ms": 60_000}
        member.beat("nothing new")
        member.beat("has what it was given", owned={first: both, second: both})
        member.beat("other topics", subscribed_topic_names=[second, third])
        member.beat("nothing new")
        member.beat("has given back", owned={second: both})
        member.beat("has what it was given", owned={second: both, third: both})
        member.beat("other topics, and what it has", subscribed_topic_names=[fourth], owned={second: both, third: both})
        member.beat("other topics while it gives back", subscribed_topic_names=[first])
        member.beat("has given back all", owned={})
        member.beat("has what it was given", owned={first: both})
        member.beat("leaves", -1)
        member.beat("goes on as if it had not left", 5)
        member.beat("epoch 0 and nothing else", 0)
        member.beat("epoch 0 without what it has", 0, subscribed_topic_names=[first], **timeout)
        member.beat("epoch 0 and has something", 0, owned={first: [0]}, subscribed_topic_names=[first], **timeout)
        member.beat("epoch 0 without topics", 0, owned={}, **timeout)
        member.beat("epoch 0 without a timeout", 0, owned={}, subscribed_topic_names=[first])
        member.beat("joins again", 0, owned={}, subscribed_topic_names=[first], **timeout)
        member.beat("joins though it has joined", 0, owned={}, subscribed_topic_names=[first, second], **timeout)
        member.beat("says everything", owned={first: both}, subscribed_topic_names=[first, second], **timeout)
        member.beat("says all but what it has", subscribed_topic_names=[first, second], **timeout)
        member.beat("leaves", -1)
        member.beat("leaves again", -1)
        member.beat("joins for nothing", 0, owned={}, subscribed_topic_names=[], **timeout)
        member.beat("wants a topic", subscribed_topic_names=[first])
        member.beat("wants none any more", subscribed_topic_names=[])
        member.beat("has nothing", owned={})
        member.beat("another joins", 0, member=OTHER_MEMBER, owned={}, subscribed_topic_names=[first], **timeout)
        return member.answers


def enter(connection: Connection) -> Member:
    """A member that has joined. Until the coordinator is there and knows the topics, another group is tried."""
    ids = topic_ids(connection)
    deadline, number = time.monotonic() + WAIT_S, 0
    while time.monotonic() < deadline:
        number += 1
        member = Member(connection, ids, f"{GROUP}-{number}")
        member.beat("joins", 0, owned={}, subscribed_topic_names=list(TOPICS[:2]), rebalance_timeout_ms=60_000)
        if member.answers[0][4] == [(name, [0, 1]) for name in TOPICS[:2]]:
            return member
        connection.ask(FindCoordinatorRequest(GROUP), FIND_COORDINATOR_VERSION)  # the first who asks for one makes it
    raise AssertionError(f"No coordinator within {WAIT_S} s: {member.answers}")


def topic_ids(connection: Connection) -> dict[str, Uuid]:
    response = connection.ask(MetadataRequest([MetadataRequestTopic(name=name) for name in TOPICS]), METADATA_VERSION)
    return {topic.name: topic.topic_id for topic in response.topics}
