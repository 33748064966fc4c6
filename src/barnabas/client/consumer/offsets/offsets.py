"""Looks up offsets: the first and last of a partition, by timestamp, and the validation of positions against a new leader.

Resets and validations of assigned partitions run as tasks on the event loop, concurrently with polls. Their results go into the
SubscriptionState, and errors for the application wait for the next poll. `list_offsets` is a call of the application, which awaits it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.client.clock import Clock
from barnabas.client.consumer.offsets.offset_reset import LATEST_TIMESTAMP, AutoOffsetResetStrategy
from barnabas.client.consumer.offsets.partition_state import FetchPosition, Truncation
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import LogTruncation, Timeout, TopicAuthorization
from barnabas.client.network.metadata import Metadata
from barnabas.errors import KafkaError
from barnabas.protocol.api_keys import OFFSET_FOR_LEADER_EPOCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.network.network_client import NetworkClient

_log: Final = logging.getLogger(__name__)

EPOCH_VALIDATION_VERSION: Final = 3  # in earlier versions OffsetForLeaderEpoch was for brokers only
_UNKNOWN: Final = -1

T = TypeVar("T")


class FoundOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class _Answer(NamedTuple):
    offsets: dict[TopicPartition, FoundOffset | None]
    to_retry: set[TopicPartition]


class OffsetFinder:
    """`on_progress` is called when a waiting poll should check again."""

    def __init__(
        self,
        network: NetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        *,
        clock: Clock,
        read_committed: bool,
        request_timeout_ms: int,
        retry_backoff_ms: int,
        on_progress: Callable[[], None],
    ) -> None:
        self._network = network
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._read_committed = read_committed
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._on_progress = on_progress
        self._tasks: set[asyncio.Task[None]] = set()
        self._problem: KafkaError | None = None
        self._checked_version = -1
        self._look_for: list[set[str]] = []  # the topics of each call of `list_offsets` in progress

    def raise_problem(self) -> None:
        """Raises an error of a reset or a validation that the application must handle; once."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Resets

    def reset_positions(self) -> None:
        """Starts to look up positions for all partitions that await a reset."""
        now_ms = self._clock.monotonic_ms()
        by_leader: dict[int, dict[TopicPartition, AutoOffsetResetStrategy]] = {}
        with self._subscriptions.lock:
            for partition in sorted(self._subscriptions.partitions_needing_reset(now_ms)):
                strategy = self._subscriptions.reset_strategy(partition)
                leader = self._metadata.current_leader(partition).leader
                if leader is None:
                    self._put_off([partition])
                    self._metadata.request_update(False)
                elif strategy is not None:
                    by_leader.setdefault(leader.id, {})[partition] = strategy
            for strategies in by_leader.values():
                self._subscriptions.set_next_allowed_retry(strategies, now_ms + self._request_timeout_ms)
        for leader_id, strategies in by_leader.items():
            self._start(self._reset(leader_id, strategies))

    async def _reset(self, leader_id: int, strategies: dict[TopicPartition, AutoOffsetResetStrategy]) -> None:
        wall_ms = self._clock.now_ms()
        timestamps_or_none = {partition: strategy.timestamp(wall_ms) for partition, strategy in strategies.items()}
        timestamps = {partition: timestamp for partition, timestamp in timestamps_or_none.items() if timestamp is not None}
        try:
            answer = await self._ask(leader_id, timestamps)
            ends = [partition for partition, offset in answer.offsets.items() if offset is None]
            if ends:  # no record is as young as that duration: the log end offset is used
                later = await self._ask(leader_id, dict.fromkeys(ends, LATEST_TIMESTAMP))
                answer.offsets.update(later.offsets)
                answer.to_retry.update(later.to_retry)
        except KafkaError as error:
            self._failed(strategies, error)
            return
        for partition, offset in answer.offsets.items():
            if offset is not None:
                self._seek(partition, offset, strategies[partition])
        if answer.to_retry:
            self._put_off(answer.to_retry)
            self._metadata.request_update(False)

    def _seek(self, partition: TopicPartition, listed: FoundOffset, strategy: AutoOffsetResetStrategy) -> None:
        if listed.leader_epoch >= 0:
            self._metadata.update_last_seen_epoch_if_newer(partition, listed.leader_epoch)
        leader_id, leader_epoch = self.leader_of(partition)
        # The epoch of the record before the offset is unknown, so there is nothing to validate.
        self._subscriptions.maybe_seek_unvalidated(partition, FetchPosition(listed.offset, _UNKNOWN, leader_id, leader_epoch), strategy)

    def leader_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The id and epoch of the leader for a position; -1 if unknown."""
        current = self._metadata.current_leader(partition)
        return (_UNKNOWN if current.leader is None else current.leader.id), current.epoch

    # Validation

    def validate_positions(self) -> None:
        """Detects changes of leaders, and validates positions against the new leaders."""
        if self._checked_version != self._metadata.update_version:
            self._checked_version = self._metadata.update_version
            self.follow_leaders()
        now_ms = self._clock.monotonic_ms()
        by_leader: dict[int, dict[TopicPartition, FetchPosition]] = {}
        with self._subscriptions.lock:
            for partition in sorted(self._subscriptions.partitions_needing_validation(now_ms)):
                position = self._subscriptions.position(partition)
                if position is None or position.leader_id < 0:
                    self._put_off([partition])
                    self._metadata.request_update(False)
                elif self._cannot_validate(position.leader_id):
                    self._subscriptions.complete_validation(partition)
                else:
                    by_leader.setdefault(position.leader_id, {})[partition] = position
            for positions in by_leader.values():
                self._subscriptions.set_next_allowed_retry(positions, now_ms + self._request_timeout_ms)
        for leader_id, positions in by_leader.items():
            self._start(self._validate(leader_id, positions))

    def follow_leaders(self) -> None:
        for partition in self._subscriptions.assignment:
            current = self._metadata.current_leader(partition)
            if current.leader is not None:
                can_validate = not self._cannot_validate(current.leader.id)
                self._subscriptions.maybe_validate_position(partition, current.leader.id, current.epoch, can_validate=can_validate)

    def _cannot_validate(self, node_id: int) -> bool:
        version = self._network.version_of(node_id, OFFSET_FOR_LEADER_EPOCH)
        return version is not None and version < EPOCH_VALIDATION_VERSION

    async def _validate(self, leader_id: int, positions: dict[TopicPartition, FetchPosition]) -> None:
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=_epoch_topics(positions))
        try:
            response = await self._network.send(leader_id, request, timeout_ms=self._request_timeout_ms)
            assert isinstance(response, OffsetForLeaderEpochResponse)
            lost, to_retry = self._take_epochs(response, positions)
        except KafkaError as error:
            self._failed(positions, error)
            return
        if to_retry:
            self._put_off(to_retry)
            self._metadata.request_update(False)
        if lost:
            self._remember(_truncation_error(lost))

    def _take_epochs(
        self, response: OffsetForLeaderEpochResponse, positions: Mapping[TopicPartition, FetchPosition]
    ) -> tuple[list[Truncation], set[TopicPartition]]:
        lost: list[Truncation] = []
        to_retry = set(positions)
        unauthorized: set[str] = set()
        for topic in response.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.topic, row.partition)
                position = positions.get(partition)
                if position is None:
                    continue
                if row.error_code == ErrorCode.NONE:
                    to_retry.discard(partition)
                    truncation = self._subscriptions.maybe_complete_validation(partition, position, row.end_offset, row.leader_epoch)
                    if truncation is not None:
                        lost.append(truncation)
                elif row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.topic)
                else:
                    _log.debug("Attempt to validate the position of %s failed with error %s, retrying.", partition, row.error_code)
        if unauthorized:
            raise TopicAuthorization(unauthorized_topics=unauthorized)
        return lost, to_retry

    # Calls of the application

    async def list_offsets(self, timestamps: Mapping[TopicPartition, int], deadline_ms: int) -> dict[TopicPartition, FoundOffset | None]:
        """The offsets for these timestamps (-2: the first offset, -1: the end offset); None if no record is as young."""
        waiting = dict(timestamps)
        offsets: dict[TopicPartition, FoundOffset | None] = {}
        asked_ms = deadline_ms - self._clock.monotonic_ms()
        topics = {partition.topic for partition in timestamps}
        self._look_for.append(topics)
        self._metadata.set_transient_topics(set().union(*self._look_for))
        try:
            while waiting:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    raise self._metadata.failures.timeout(f"Failed to get offsets by times in {asked_ms}ms")
                version = self._metadata.update_version
                by_leader = self._by_leader(waiting)
                results = await asyncio.gather(
                    *(self._ask(leader_id, part, min(left_ms, self._request_timeout_ms)) for leader_id, part in by_leader.items()),
                    return_exceptions=True,
                )
                for result in results:
                    if isinstance(result, _Answer):
                        offsets.update(result.offsets)
                    elif isinstance(result, KafkaError) and result.retriable:
                        _log.debug("ListOffsets failed, retrying: %s", result)
                    elif isinstance(result, BaseException):
                        raise result
                waiting = {partition: timestamp for partition, timestamp in waiting.items() if partition not in offsets}
                if waiting:
                    await self._wait_for_metadata(version, deadline_ms, waiting)
        finally:
            self._look_for.remove(topics)
            self._metadata.set_transient_topics(set().union(*self._look_for))
        return offsets

    def _by_leader(self, values: Mapping[TopicPartition, T]) -> dict[int, dict[TopicPartition, T]]:
        by_leader: dict[int, dict[TopicPartition, T]] = {}
        for partition, value in values.items():
            leader = self._metadata.current_leader(partition).leader
            if leader is not None:
                by_leader.setdefault(leader.id, {})[partition] = value
        return by_leader

    async def _wait_for_metadata(self, version: int, deadline_ms: int, waiting: Iterable[TopicPartition]) -> None:
        self._metadata.request_update(False)
        left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        try:
            await self._metadata.wait_for_update(version, min(left_ms, self._retry_backoff_ms))
        except Timeout:
            return  # the caller checks the deadline itself
        for partition in waiting:
            self._metadata.raise_for_topic(partition.topic)

    async def find_end_offset(self, partition: TopicPartition) -> None:
        """Looks up the end offset for current_lag, which does not wait."""
        try:
            (end,) = (
                await self.list_offsets({partition: LATEST_TIMESTAMP}, self._clock.monotonic_ms() + self._request_timeout_ms)
            ).values()
        except KafkaError as error:
            _log.debug("Could not find the end of %s: %s", partition, error)
            end = None
        if end is not None:
            self._subscriptions.set_end_offset(partition, end.offset, read_committed=self._read_committed)

    def request_end_offset(self, partition: TopicPartition) -> None:
        self._start(self.find_end_offset(partition))

    # Inside

    async def _ask(self, leader_id: int, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None) -> _Answer:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1 if self._read_committed else 0,
            topics=self._timestamp_topics(timestamps),
            timeout_ms=timeout_ms or self._request_timeout_ms,
        )
        response = await self._network.send(leader_id, request, timeout_ms=timeout_ms or self._request_timeout_ms)
        assert isinstance(response, ListOffsetsResponse)
        return _read_answer(response)

    def _timestamp_topics(self, timestamps: Mapping[TopicPartition, int]) -> list[ListOffsetsTopic]:
        topics: dict[str, ListOffsetsTopic] = {}
        for partition, timestamp in timestamps.items():
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
            epoch = self._metadata.current_leader(partition).epoch
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=partition.partition, current_leader_epoch=epoch, timestamp=timestamp, max_num_offsets=1
                )
            )
        return list(topics.values())

    def _failed(self, partitions: Iterable[TopicPartition], error: KafkaError) -> None:
        self._put_off(partitions)
        self._metadata.request_update(False)
        if not error.retriable:
            self._remember(error)

    def _put_off(self, partitions: Iterable[TopicPartition]) -> None:
        self._subscriptions.set_next_allowed_retry(partitions, self._clock.monotonic_ms() + self._retry_backoff_ms)

    def _remember(self, error: KafkaError) -> None:
        if self._problem is None:
            self._problem = error
        else:
            _log.error("Discarding an error of a reset or validation because another one is pending: %s", error)

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work
            self._on_progress()

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("Looking for offsets failed", exc_info=task.exception())


def _read_answer(response: ListOffsetsResponse) -> _Answer:
    answer = _Answer({}, set())
    unauthorized: set[str] = set()
    for topic in response.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if row.error_code == ErrorCode.NONE:
                offset = row.old_style_offsets[0] if row.old_style_offsets else row.offset
                answer.offsets[partition] = None if offset == _UNKNOWN else FoundOffset(offset, row.timestamp, row.leader_epoch)
            elif row.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                answer.offsets[partition] = None  # the message format has no timestamps: no lookup by timestamp is possible
            elif row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(topic.name)
            else:
                _log.debug("Attempt to fetch offsets for partition %s failed with error %s, retrying.", partition, row.error_code)
                answer.to_retry.add(partition)
    if unauthorized:
        raise TopicAuthorization(unauthorized_topics=unauthorized)
    return answer


def _epoch_topics(positions: Mapping[TopicPartition, FetchPosition]) -> list[OffsetForLeaderTopic]:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition, position in positions.items():
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic, partitions=[]))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.partition, current_leader_epoch=position.leader_epoch, leader_epoch=position.offset_epoch
            )
        )
    return list(topics.values())


def _truncation_error(lost: Iterable[Truncation]) -> LogTruncation:
    fetch_offsets: dict[TopicPartition, int] = {}
    divergent: dict[TopicPartition, tuple[int, int] | None] = {}
    for truncation in lost:
        fetch_offsets[truncation.partition] = truncation.position.offset
        divergence = truncation.divergent
        divergent[truncation.partition] = (
            None if divergence is None else (divergence.offset, -1 if divergence.leader_epoch is None else divergence.leader_epoch)
        )
    return LogTruncation(f"Detected log truncation with diverging offsets {divergent}", fetch_offsets, divergent)
