"""Carries out the control requests that this broker receives: LeaderAndIsr, StopReplica and UpdateMetadata.

A request may name many partitions, so it is carried out in slices, and the event loop serves clients between two slices. Control requests
never overtake each other: the next one starts when the one before has finished, also if the same request arrives twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas import loggers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest, StopReplicaTopicState
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.config.config_manager import ConfigManager
    from barnabas.broker.replication.replica_manager import ReplicaManager

T = TypeVar("T", LeaderAndIsrTopicState, StopReplicaTopicState)

_state_changes = logging.getLogger(loggers.STATE_CHANGE)

SHORTAGE_RETRY_S: Final = 0.25
SHORTAGE_RETRIES: Final = 40  # ten seconds, then the response says KAFKA_STORAGE_ERROR: the controller's own timeout is thirty seconds
PARTITIONS_AT_ONCE: Final = 8  # creating the log of one partition takes a millisecond


class ControlRequests:
    """Blocking calls of the disk run on `disk_threads`, or on the event loop where that is None."""

    def __init__(self, replica_manager: ReplicaManager, configs: ConfigManager, disk_threads: Executor | None = None) -> None:
        self._replica_manager = replica_manager
        self._log_manager = replica_manager.log_manager
        self._configs = configs
        self._disk_threads = disk_threads
        # A request whose connection broke is carried out to its end. A retry of it, or the next request, waits for that.
        self._turn = asyncio.Lock()
        self.first_states = asyncio.Event()  # set when the first LeaderAndIsr has been carried out

    async def handle(self, request: Message) -> Message:
        """Carries out a request from the controller in this process, which is always in the highest version. Handlers call the other
        methods, with the version of their request."""
        if isinstance(request, LeaderAndIsrRequest):
            return await self.lead_or_follow(request)
        if isinstance(request, StopReplicaRequest):
            return await self.stop_replicas(request)
        assert isinstance(request, UpdateMetadataRequest), f"A controller does not send {type(request).__name__}"
        return await self.update_metadata(request)

    async def lead_or_follow(
        self,
        request: LeaderAndIsrRequest,
        version: int = LeaderAndIsrRequest.HIGHEST_VERSION,
        correlation_id: int = loggers.NO_CORRELATION_ID,
    ) -> LeaderAndIsrResponse:
        async with self._turn:
            count = len(request.ungrouped_partition_states) + sum(len(topic.partition_states) for topic in request.topic_states)
            _state_changes.info(
                "[Broker id=%d] Handling LeaderAndIsr request correlationId %d from controller %d for %d partitions",
                self._replica_manager.broker_id,
                correlation_id,
                request.controller_id,
                count,
            )
            clock = self._replica_manager.clock
            started_ms = clock.monotonic_ms()
            response = await self._lead_or_follow(request, version, correlation_id)
            _state_changes.info(
                "[Broker id=%d] Finished LeaderAndIsr request in %dms correlationId %d from controller %d for %d partitions",
                self._replica_manager.broker_id,
                clock.monotonic_ms() - started_ms,
                correlation_id,
                request.controller_id,
                count,
            )
        if response.error_code == ErrorCode.NONE:
            self.first_states.set()
        return response

    async def stop_replicas(self, request: StopReplicaRequest, correlation_id: int = loggers.NO_CORRELATION_ID) -> StopReplicaResponse:
        async with self._turn:
            _state_changes.info(
                "[Broker id=%d] Handling StopReplica request correlationId %d from controller %d for %d partitions",
                self._replica_manager.broker_id,
                correlation_id,
                request.controller_id,
                len(request.ungrouped_partitions)
                + sum(len(topic.partition_indexes) for topic in request.topics)
                + sum(len(topic.partition_states) for topic in request.topic_states),
            )
            return await self._stop(request, correlation_id)

    async def update_metadata(
        self, request: UpdateMetadataRequest, correlation_id: int = loggers.NO_CORRELATION_ID
    ) -> UpdateMetadataResponse:
        async with self._turn:
            return self._replica_manager.update_metadata(request, correlation_id)

    async def _lead_or_follow(self, request: LeaderAndIsrRequest, version: int, correlation_id: int) -> LeaderAndIsrResponse:
        if request.ungrouped_partition_states:  # before version 2
            return self._replica_manager.become_leader_or_follower(request, version, correlation_id)
        new_topics = self._topics_without_log(request)
        if new_topics:
            await self._configs.load_topics(new_topics)
            await self._refresh_checkpoints()
        whole = LeaderAndIsrResponse()
        for topics in _slices(request.topic_states, _leader_slice):
            part = await self._with_descriptors(_with_topics(request, topics), version, correlation_id)
            whole.error_code = whole.error_code or part.error_code
            whole.topics += part.topics
            whole.partition_errors += part.partition_errors
            await asyncio.sleep(0)
        await self._sync_names()
        return whole

    async def _with_descriptors(self, request: LeaderAndIsrRequest, version: int, correlation_id: int) -> LeaderAndIsrResponse:
        """Carries out a request, and retries the partitions whose logs could not be opened because the process has no descriptor left. The
        controller would take KAFKA_STORAGE_ERROR for a failed disk and would not send the request again."""
        response = self._replica_manager.become_leader_or_follower(request, version, correlation_id)
        for _ in range(SHORTAGE_RETRIES):
            refused = self._refused_for_now(request, response)
            if not refused:
                break
            await asyncio.sleep(SHORTAGE_RETRY_S)
            again = self._replica_manager.become_leader_or_follower(_with_topics(request, refused), version, correlation_id)
            _merge(response, again)
        return response

    def _refused_for_now(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> list[LeaderAndIsrTopicState]:
        """The partitions with KAFKA_STORAGE_ERROR whose disk has not failed, as topic states of the request."""
        by_id = {topic.topic_id: topic.topic_name for topic in request.topic_states}
        results = [(by_id.get(topic.topic_id, ""), result) for topic in response.topics for result in topic.partition_errors]
        results += [(result.topic_name, result) for result in response.partition_errors]
        refused = {
            TopicPartition(name, result.partition_index) for name, result in results if result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        }
        refused -= self._replica_manager.offline
        if not refused:
            return []
        topics = []
        for topic in request.topic_states:
            states = [state for state in topic.partition_states if TopicPartition(topic.topic_name, state.partition_index) in refused]
            if states:
                topics.append(LeaderAndIsrTopicState(topic.topic_name, topic.topic_id, states))
        return topics

    async def _refresh_checkpoints(self) -> None:
        """Writes the checkpoints before logs are created. Creating a log would write them too, but on the event loop."""
        for checkpoint in self._log_manager.checkpoints.take_stale():
            try:
                await self._on_a_thread(checkpoint.run)
            except OSError as error:
                self._log_manager.checkpoints.failed(checkpoint, error)

    async def _sync_names(self) -> None:
        """Syncs the log directories once per request, before the response, so that a crash undoes neither a creation nor a deletion."""
        sync = self._log_manager.dir_syncs.take()
        if sync is not None:
            await self._on_a_thread(sync.run)
            self._log_manager.dir_syncs.ran(sync)

    async def _on_a_thread(self, call: Callable[[], None]) -> None:
        if self._disk_threads is None:
            call()
        else:
            await asyncio.get_running_loop().run_in_executor(self._disk_threads, call)

    def _topics_without_log(self, request: LeaderAndIsrRequest) -> list[str]:
        """Topics whose configs this broker has not loaded yet. The configs of a new topic are stored before its assignment."""
        logs = self._replica_manager.log_manager
        return [
            topic.topic_name
            for topic in request.topic_states
            if any(logs.get(TopicPartition(topic.topic_name, state.partition_index)) is None for state in topic.partition_states)
        ]

    async def _stop(self, request: StopReplicaRequest, correlation_id: int) -> StopReplicaResponse:
        if request.topics or request.ungrouped_partitions:  # before version 3
            return self._replica_manager.stop_replicas(request, correlation_id)
        whole = StopReplicaResponse()
        for topics in _slices(request.topic_states, _stop_slice):
            part = self._replica_manager.stop_replicas(_with_stopped_topics(request, topics), correlation_id)
            whole.error_code = whole.error_code or part.error_code
            whole.partition_errors += part.partition_errors
            await asyncio.sleep(0)
        await self._sync_names()
        self._configs.forget_topics(self._deleted_topics(request))
        return whole

    def _deleted_topics(self, request: StopReplicaRequest) -> list[str]:
        """Topics that have no log left on this broker. A topic with a remaining log keeps its config."""
        deleted = {topic.topic_name for topic in request.topic_states if any(state.delete_partition for state in topic.partition_states)}
        if not deleted:
            return []
        kept = {log.partition.topic for log in self._replica_manager.log_manager.logs}
        return sorted(deleted - kept)


def _merge(response: LeaderAndIsrResponse, retried: LeaderAndIsrResponse) -> None:
    """Replaces results of the first attempt by those of the retry."""
    by_id = {(topic.topic_id, result.partition_index): result.error_code for topic in retried.topics for result in topic.partition_errors}
    for topic in response.topics:
        for result in topic.partition_errors:
            result.error_code = by_id.get((topic.topic_id, result.partition_index), result.error_code)
    by_name = {(result.topic_name, result.partition_index): result.error_code for result in retried.partition_errors}
    for result in response.partition_errors:
        result.error_code = by_name.get((result.topic_name, result.partition_index), result.error_code)


def _with_topics(request: LeaderAndIsrRequest, topics: list[LeaderAndIsrTopicState]) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=request.controller_id,
        is_kraft_controller=request.is_kraft_controller,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        type=request.type,
        topic_states=topics,
        live_leaders=request.live_leaders,
    )


def _with_stopped_topics(request: StopReplicaRequest, topics: list[StopReplicaTopicState]) -> StopReplicaRequest:
    return StopReplicaRequest(
        controller_id=request.controller_id,
        is_kraft_controller=request.is_kraft_controller,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=topics,
    )


def _slices(topics: Sequence[T], part_of: Callable[[T, slice], T]) -> Iterator[list[T]]:
    """The topics of a request in runs of PARTITIONS_AT_ONCE partitions. Gives at least one run, which may be empty: a request without
    partitions still carries a controller epoch."""
    run: list[T] = []
    size = 0
    for topic in topics:
        for first in range(0, len(topic.partition_states), PARTITIONS_AT_ONCE):
            part = part_of(topic, slice(first, first + PARTITIONS_AT_ONCE))
            run.append(part)
            size += len(part.partition_states)
            if size >= PARTITIONS_AT_ONCE:
                yield run
                run, size = [], 0
    if run or not topics:
        yield run


def _leader_slice(topic: LeaderAndIsrTopicState, part: slice) -> LeaderAndIsrTopicState:
    return LeaderAndIsrTopicState(topic.topic_name, topic.topic_id, topic.partition_states[part])


def _stop_slice(topic: StopReplicaTopicState, part: slice) -> StopReplicaTopicState:
    return StopReplicaTopicState(topic.topic_name, topic.partition_states[part])
