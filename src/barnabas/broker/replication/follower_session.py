# Compiled by mypyc: src/compiled.toml lists this module.
"""A follower's side of incremental fetches (KIP-227): what the leader knows already is not said again.

One for each leader that a fetcher asks. `fill` puts into the next fetch what has to be said, given all that is wanted; `accept` tells
whether the answer may be believed, and what it says. One fetch at a time: the session's epoch counts them. It sends nothing.
"""

from __future__ import annotations

import logging
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1

_log = logging.getLogger(__name__)

FollowedPartitions = list[tuple[TopicPartition, Uuid, FetchPartition]]
Answers = list[tuple[TopicPartition, PartitionData]]


class FollowerSession:
    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self._asked: dict[TopicPartition, tuple[Uuid, FetchPartition]] = {}  # as the leader knows it
        self._names: dict[Uuid, str] = {}

    @property
    def is_begun(self) -> bool:
        """Whether the leader knows all that was said last time."""
        return self.epoch != INITIAL_EPOCH

    def fill(self, request: FetchRequest, wanted: FollowedPartitions) -> None:
        """Says all of it, or only what has changed since the last time."""
        now = {partition: (topic_id, asked) for partition, topic_id, asked in wanted}
        request.session_id, request.session_epoch = self.session_id, self.epoch
        if self.epoch == INITIAL_EPOCH:
            request.topics = _by_topic(now)
            request.forgotten_topics_data = []
        else:
            request.topics = _by_topic({each: ask for each, ask in now.items() if not _is_same(self._asked.get(each), ask)})
            request.forgotten_topics_data = _forgotten(
                {each: ask for each, ask in self._asked.items() if each not in now or now[each][0] != ask[0]}
            )
        self._asked = now
        self._names = {topic_id: partition.topic for partition, topic_id, _ in wanted}

    def fill_changes(self, request: FetchRequest, changed: FollowedPartitions) -> None:
        """Says what has changed of that which was wanted the last time, in a session that has begun; all the rest is as it was."""
        request.session_id, request.session_epoch = self.session_id, self.epoch
        for partition, topic_id, asked in changed:
            self._asked[partition] = (topic_id, asked)
        request.topics = _by_topic({partition: (topic_id, asked) for partition, topic_id, asked in changed})
        request.forgotten_topics_data = []

    def accept(self, response: FetchResponse) -> Answers | None:
        """What the leader says of each partition that it speaks of; None where the session has to begin anew."""
        if response.error_code != ErrorCode.NONE:
            _log.info("Leader %d refused fetch session %d: error %d", self.leader_id, self.session_id, response.error_code)
            self._start_over(keep_id=response.error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return None
        answers = self._named(response)
        if answers is None or (self.epoch == INITIAL_EPOCH and len(answers) < len(self._asked)):
            _log.info("Leader %d did not answer what it was asked in fetch session %d", self.leader_id, self.session_id)
            self._start_over(keep_id=True)
            return None
        if response.session_id == NO_SESSION:
            self._start_over(keep_id=False)
        else:
            self.session_id = response.session_id
            self.epoch = 1 if self.epoch >= _EPOCH_MAX else self.epoch + 1
        return answers

    def failed(self) -> None:
        """No answer: nobody knows whether the leader has seen it."""
        self._start_over(keep_id=True)

    def _start_over(self, *, keep_id: bool) -> None:
        """With the old id the leader drops the old session when it makes the new one."""
        self.epoch = INITIAL_EPOCH
        if not keep_id:
            self.session_id = NO_SESSION

    def _named(self, response: FetchResponse) -> Answers | None:
        answers: Answers = []
        for topic in response.responses:
            name = self._names.get(topic.topic_id)
            if name is None:
                return None
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                if partition not in self._asked:
                    return None
                answers.append((partition, data))
        return answers

    def asked(self, partition: TopicPartition) -> FetchPartition:
        return self._asked[partition][1]


def _is_same(known: tuple[Uuid, FetchPartition] | None, asked: tuple[Uuid, FetchPartition]) -> bool:
    if known is None or known[0] != asked[0]:
        return False
    one, other = known[1], asked[1]
    return (
        one.fetch_offset == other.fetch_offset
        and one.current_leader_epoch == other.current_leader_epoch
        and one.last_fetched_epoch == other.last_fetched_epoch
        and one.log_start_offset == other.log_start_offset
        and one.partition_max_bytes == other.partition_max_bytes
    )


def _by_topic(asked: dict[TopicPartition, tuple[Uuid, FetchPartition]]) -> list[FetchTopic]:
    """In their order, in which they are read until the answer is full; neighbours of the same topic stand together."""
    topics: list[FetchTopic] = []
    for partition, (topic_id, what) in asked.items():
        if not topics or topics[-1].topic_id != topic_id:
            topics.append(FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(what)
    return topics


def _forgotten(gone: dict[TopicPartition, tuple[Uuid, FetchPartition]]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for partition, (topic_id, _) in gone.items():
        topics.setdefault(topic_id, ForgottenTopic(partition.topic, topic_id, [])).partitions.append(partition.partition)
    return list(topics.values())
