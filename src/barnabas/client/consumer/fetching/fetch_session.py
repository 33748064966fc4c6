# Compiled by mypyc: src/compiled.toml lists this module.
"""The consumer's side of incremental fetch sessions (KIP-227): a request names only partitions that changed since the last one.

There is one `FetchSessionHandler` per broker. `build` computes the next request from all partitions to fetch; `handle_response` validates
the response. There is one request at a time, and the session's epoch counts them. This class computes only; it sends nothing.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from barnabas.protocol.messages.fetch_response import FetchResponse, PartitionData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)

INVALID_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0  # requests a new session
FINAL_EPOCH: Final = -1  # closes a session
EPOCH_MAX: Final = 2**31 - 1
VERSION_MAX_BY_NAME: Final = 12  # later versions name topics by id only


class PartitionToFetch(NamedTuple):
    """The requested values of one partition. A change of any of them is sent to the broker."""

    topic_id: Uuid
    fetch_offset: int
    max_bytes: int
    leader_epoch: int = -1


class FetchPlan(NamedTuple):
    """The content of a request, and the session's partitions after it."""

    to_send: dict[TopicPartition, PartitionToFetch]
    to_forget: list[tuple[Uuid, TopicPartition]]
    session_partitions: dict[TopicPartition, PartitionToFetch]
    session_id: int
    epoch: int
    can_use_topic_ids: bool

    def fill(self, request: FetchRequest) -> FetchRequest:
        request.session_id = self.session_id
        request.session_epoch = self.epoch
        request.topics = _topics(self.to_send)
        request.forgotten_topics_data = _forgotten(self.to_forget)
        return request


class FetchSessionHandler:
    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[TopicPartition, PartitionToFetch] = {}
        self.topic_names: dict[Uuid, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request names all partitions."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def build(self, requested: dict[TopicPartition, PartitionToFetch]) -> FetchPlan:
        by_id = all(want.topic_id != Uuid.ZERO for want in requested.values())
        if self.is_full:
            self.partitions = dict(requested)
            self.topic_names = _names(requested) if by_id else {}
            return FetchPlan(dict(requested), [], dict(requested), self.session_id, self.epoch, by_id)
        changed: dict[TopicPartition, PartitionToFetch] = {}
        forgotten: list[tuple[Uuid, TopicPartition]] = []
        for partition, previous in list(self.partitions.items()):
            now = requested.get(partition)
            if now is None:
                del self.partitions[partition]
                forgotten.append((previous.topic_id, partition))
                by_id = by_id and previous.topic_id != Uuid.ZERO
            elif now != previous:
                if previous.topic_id != now.topic_id and Uuid.ZERO not in (previous.topic_id, now.topic_id):
                    forgotten.append((previous.topic_id, partition))  # another topic with the same name
                self.partitions[partition] = now
                changed[partition] = now
        added = {partition: want for partition, want in requested.items() if partition not in self.partitions}
        self.partitions |= added
        self.topic_names = _names(requested) if by_id else {}
        return FetchPlan(added | changed, forgotten, dict(self.partitions), self.session_id, self.epoch, by_id)

    def handle_response(self, response: FetchResponse, version: int) -> bool:
        """Whether the partitions in the response are the requested ones. If not, the next request starts a new session."""
        if response.error_code != ErrorCode.NONE:
            _log.info(
                "Node %s was unable to process the fetch request of session %s: %s", self.node_id, self.session_id, response.error_code
            )
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._start_over()
            else:
                self._close_and_start_over()
            return False
        answered = self.answered_partitions(response, version)
        unknown = answered is None or any(partition not in self.partitions for partition in answered)
        if self.is_full:
            omitted = answered is not None and len(answered) < len(self.partitions)
            if not answered and response.throttle_time_ms > 0:
                self._start_over()
                return False
            if unknown or omitted:
                _log.info("Node %s sent an invalid full fetch response: %s", self.node_id, answered)
                self._start_over()
                return False
            self.session_id = response.session_id
            self.epoch = INITIAL_EPOCH if response.session_id == INVALID_SESSION_ID else 1
            return True
        if unknown:
            _log.info("Node %s sent an invalid incremental fetch response: %s", self.node_id, answered)
            self._close_and_start_over()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._start_over()
        else:
            self.epoch = 1 if self.epoch >= EPOCH_MAX else self.epoch + 1
        return True

    def answered_partitions(self, response: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        """The partitions of a response by name; None if it names a topic that was not requested."""
        partitions: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic if version <= VERSION_MAX_BY_NAME else self.topic_names.get(topic.topic_id)
            if name is None:
                return None
            for data in topic.partitions:
                partitions[TopicPartition(name, data.partition_index)] = data
        return partitions

    def handle_error(self) -> None:
        """Handles a failed request. It is unknown whether the broker received it."""
        self._close_and_start_over()

    def close(self) -> None:
        """Makes the next plan close the session."""
        self.epoch = FINAL_EPOCH

    def _start_over(self) -> None:
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH

    def _close_and_start_over(self) -> None:
        """Starts over with the known session id: with the initial epoch, the broker drops that session and opens another."""
        self.epoch = INITIAL_EPOCH


def _names(requested: dict[TopicPartition, PartitionToFetch]) -> dict[Uuid, str]:
    return {want.topic_id: partition.topic for partition, want in requested.items()}


def _topics(to_send: dict[TopicPartition, PartitionToFetch]) -> list[FetchTopic]:
    topics: list[FetchTopic] = []
    for partition, want in to_send.items():
        if not topics or topics[-1].topic != partition.topic or topics[-1].topic_id != want.topic_id:
            topics.append(FetchTopic(topic=partition.topic, topic_id=want.topic_id, partitions=[]))
        topics[-1].partitions.append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.fetch_offset,
                partition_max_bytes=want.max_bytes,
            )
        )
    return topics


def _forgotten(to_forget: list[tuple[Uuid, TopicPartition]]) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, Uuid], list[int]] = {}
    for topic_id, partition in to_forget:
        by_topic.setdefault((partition.topic, topic_id), []).append(partition.partition)
    return [ForgottenTopic(topic=name, topic_id=topic_id, partitions=partitions) for (name, topic_id), partitions in by_topic.items()]
