# Compiled by mypyc: src/compiled.toml lists this module.
"""The follower's side of a fetch session (KIP-227): a fetch names only the partitions whose parameters have changed.

A fetcher has one session for each leader. `fill` writes the partitions of the next fetch request, `accept` checks the response and returns
its results. One fetch is in flight at a time, because the epoch of the session counts them. This module sends nothing itself.
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
        self._requested: dict[TopicPartition, tuple[Uuid, FetchPartition]] = {}  # the partitions of the session, as the leader has them
        self._names: dict[Uuid, str] = {}

    @property
    def is_begun(self) -> bool:
        """Whether the leader has the session, so that the next fetch may be incremental."""
        return self.epoch != INITIAL_EPOCH

    def fill(self, request: FetchRequest, fetches: FollowedPartitions) -> None:
        """Writes all partitions into the request, or in a session only those that have changed."""
        now = {partition: (topic_id, fetch) for partition, topic_id, fetch in fetches}
        request.session_id, request.session_epoch = self.session_id, self.epoch
        if self.epoch == INITIAL_EPOCH:
            request.topics = _by_topic(now)
            request.forgotten_topics_data = []
        else:
            before = self._requested
            request.topics = _by_topic({key: entry for key, entry in now.items() if not _is_same(before.get(key), entry)})
            request.forgotten_topics_data = _forgotten(
                {key: entry for key, entry in before.items() if key not in now or now[key][0] != entry[0]}
            )
        self._requested = now
        self._names = {topic_id: partition.topic for partition, topic_id, _ in fetches}

    def fill_changes(self, request: FetchRequest, changed: FollowedPartitions) -> None:
        """Writes the changed partitions into the request. The session has begun, and all its other partitions are unchanged."""
        request.session_id, request.session_epoch = self.session_id, self.epoch
        for partition, topic_id, fetch in changed:
            self._requested[partition] = (topic_id, fetch)
        request.topics = _by_topic({partition: (topic_id, fetch) for partition, topic_id, fetch in changed})
        request.forgotten_topics_data = []

    def accept(self, response: FetchResponse) -> Answers | None:
        """The results by partition; None if the session has to be started over."""
        if response.error_code != ErrorCode.NONE:
            _log.info("Leader %d refused fetch session %d: error %d", self.leader_id, self.session_id, response.error_code)
            self._start_over(keep_id=response.error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return None
        answers = self._named(response)
        if answers is None or (self.epoch == INITIAL_EPOCH and len(answers) < len(self._requested)):
            _log.info("The response of leader %d does not match the partitions of fetch session %d", self.leader_id, self.session_id)
            self._start_over(keep_id=True)
            return None
        if response.session_id == NO_SESSION:
            self._start_over(keep_id=False)
        else:
            self.session_id = response.session_id
            self.epoch = 1 if self.epoch >= _EPOCH_MAX else self.epoch + 1
        return answers

    def failed(self) -> None:
        """The fetch got no response. It is unknown whether the leader has received it."""
        self._start_over(keep_id=True)

    def _start_over(self, *, keep_id: bool) -> None:
        """With `keep_id` the next full fetch names the old session, which the leader then removes."""
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
                if partition not in self._requested:
                    return None
                answers.append((partition, data))
        return answers

    def requested(self, partition: TopicPartition) -> FetchPartition:
        return self._requested[partition][1]


def _is_same(before: tuple[Uuid, FetchPartition] | None, now: tuple[Uuid, FetchPartition]) -> bool:
    if before is None or before[0] != now[0]:
        return False
    one, other = before[1], now[1]
    return (
        one.fetch_offset == other.fetch_offset
        and one.current_leader_epoch == other.current_leader_epoch
        and one.last_fetched_epoch == other.last_fetched_epoch
        and one.log_start_offset == other.log_start_offset
        and one.partition_max_bytes == other.partition_max_bytes
    )


def _by_topic(fetches: dict[TopicPartition, tuple[Uuid, FetchPartition]]) -> list[FetchTopic]:
    """The partitions in their order, in which the leader reads them until the response is full. Adjacent ones of a topic are grouped."""
    topics: list[FetchTopic] = []
    for partition, (topic_id, fetch) in fetches.items():
        if not topics or topics[-1].topic_id != topic_id:
            topics.append(FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(fetch)
    return topics


def _forgotten(removed: dict[TopicPartition, tuple[Uuid, FetchPartition]]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for partition, (topic_id, _) in removed.items():
        topics.setdefault(topic_id, ForgottenTopic(partition.topic, topic_id, [])).partitions.append(partition.partition)
    return list(topics.values())
