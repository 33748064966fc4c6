"""Applies the control requests: which partitions this broker leads, follows, stops or deletes, and what it knows of the others.

A request with an old controller epoch is refused as a whole, a state with an old leader epoch for its partition. Leaders are made first, so
that they serve while the followers are still being set up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from barnabas import loggers
from barnabas.broker.partitions.partition import Partition
from barnabas.errors import KafkaError, KafkaStorageError, OutOfDescriptors
from barnabas.loggers import TRACE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_text import kafka_text
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.protocol.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest
from barnabas.protocol.messages.stop_replica_response import StopReplicaPartitionError, StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

_log = logging.getLogger(__name__)
_state_changes = logging.getLogger(loggers.STATE_CHANGE)

NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2  # a deletion does not raise the epoch, and is never stale
_TOPIC_IDS_SINCE: Final = 5  # the first version whose response has topic ids

Errors = dict[TopicPartition, int]


class Fetchers(Protocol):
    """The replica fetchers (`ReplicaFetchers`)."""

    def follow(self, partitions: Iterable[Partition]) -> None: ...

    def stop(self, partitions: Iterable[TopicPartition]) -> None: ...

    def stop_idle(self) -> None: ...


class _PartitionChange:
    """One partition of a LeaderAndIsr request."""

    def __init__(self, topic: str, topic_id: Uuid, state: LeaderAndIsrPartitionState) -> None:
        self.partition = TopicPartition(topic, state.partition_index)
        self.topic_id = None if topic_id == Uuid.ZERO else topic_id
        self.state = state


class _Source:
    """The request that a line of the state-change log is about: its controller and its correlation id."""

    def __init__(self, replicas: ReplicaManager, request: LeaderAndIsrRequest | StopReplicaRequest, correlation_id: int) -> None:
        self.broker_id = replicas.broker_id
        self.correlation_id = correlation_id
        self.controller_id = request.controller_id
        self.epoch = request.controller_epoch

    def ignored(self, kind: str, partition: TopicPartition, reason: str, level: int = logging.WARNING) -> None:
        if _state_changes.isEnabledFor(level):
            _state_changes.log(
                level,
                "[Broker id=%d] Ignoring %s from controller %d with correlation id %d epoch %d for partition %s %s",
                self.broker_id,
                kind,
                self.controller_id,
                self.correlation_id,
                self.epoch,
                partition,
                reason,
            )


_OFFLINE: Final = "as the local replica for the partition is in an offline log directory"


# -- leading and following


def become_leader_or_follower(
    replicas: ReplicaManager, request: LeaderAndIsrRequest, version: int, correlation_id: int = loggers.NO_CORRELATION_ID
) -> LeaderAndIsrResponse:
    if request.controller_epoch < replicas.controller_epoch:
        _state_changes.warning(
            "[Broker id=%d] Ignoring LeaderAndIsr request from controller %d with correlation id %d since its controller epoch %d is old. "
            "Latest known controller epoch is %d",
            replicas.broker_id,
            request.controller_id,
            correlation_id,
            request.controller_epoch,
            replicas.controller_epoch,
        )
        return refused_states(request, version, ErrorCode.STALE_CONTROLLER_EPOCH)
    replicas.controller_epoch = request.controller_epoch
    changes = list(_changes(request))
    errors: Errors = {}
    source = _Source(replicas, request, correlation_id)
    is_traced = _state_changes.isEnabledFor(TRACE)
    if is_traced:
        _trace_received(source, changes)
    accepted = [change for change in changes if _is_acceptable(replicas, change, request.is_kraft_controller, errors, source)]
    led = [change for change in accepted if change.state.leader == replicas.broker_id]
    followed = [change for change in accepted if change.state.leader != replicas.broker_id]
    fetchers = replicas.fetchers
    if is_traced:
        _trace_transitions(source, led, followed, "Handling", " starting")
    if fetchers is not None:
        fetchers.stop(change.partition for change in led)  # no batch of the old leader may be appended after the first own record
    leaders = [hosted for change in led if (hosted := _make_leader(replicas, change, errors)) is not None]
    followers = [hosted for change in followed if (hosted := _make_follower(replicas, change, errors)) is not None]
    for hosted in followers:
        replicas.wake(hosted.partition)  # operations that wait for this broker as the leader cannot complete any more
    if fetchers is not None:
        fetchers.follow(followers)
        fetchers.stop_idle()
    if is_traced:
        _trace_transitions(source, led, followed, "Completed", " for")
    for on_change in replicas.on_leadership_change:
        on_change(leaders, followers)
    return _response(changes, errors, version)


def _trace_received(source: _Source, changes: Iterable[_PartitionChange]) -> None:
    for change in changes:
        _state_changes.log(
            TRACE,
            "[Broker id=%d] Received LeaderAndIsr request %s correlation id %d from controller %d epoch %d",
            source.broker_id,
            kafka_text(change.state),
            source.correlation_id,
            source.controller_id,
            source.epoch,
        )


def _trace_transitions(
    source: _Source, led: Iterable[_PartitionChange], followed: Iterable[_PartitionChange], verb: str, relation: str
) -> None:
    text = (
        f"[Broker id={source.broker_id}] {verb} LeaderAndIsr request correlationId {source.correlation_id} from controller "
        f"{source.controller_id} epoch {source.epoch}{relation} the "
    )
    for change in led:
        _state_changes.log(TRACE, "%sbecome-leader transition for partition %s", text, change.partition)
    for change in followed:
        _state_changes.log(
            TRACE, "%sbecome-follower transition for partition %s with leader %d", text, change.partition, change.state.leader
        )


def refused_states(request: LeaderAndIsrRequest, version: int, error: ErrorCode) -> LeaderAndIsrResponse:
    """The response to a request that is refused as a whole: each partition has the error, too."""
    changes = list(_changes(request))
    return _response(changes, {change.partition: int(error) for change in changes}, version, int(error))


def _changes(request: LeaderAndIsrRequest) -> Iterator[_PartitionChange]:
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _PartitionChange(topic.topic_name, topic.topic_id, state)
    for state in request.ungrouped_partition_states:
        yield _PartitionChange(state.topic_name, Uuid.ZERO, state)


def _is_acceptable(replicas: ReplicaManager, change: _PartitionChange, is_kraft_controller: bool, errors: Errors, source: _Source) -> bool:
    """Whether the state is newer than that of this broker. A state that only adds a topic id is applied here."""
    partition, state = change.partition, change.state
    request = "LeaderAndIsr request"
    if partition in replicas.offline:
        source.ignored(request, partition, _OFFLINE)
        errors[partition] = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return False
    hosted = replicas.online.get(partition)
    log = replicas.log_manager.get(partition)
    known_id = None if log is None else log.topic_id
    current_epoch = NO_EPOCH if hosted is None else hosted.leader_epoch
    if change.topic_id is not None and known_id is not None and known_id != change.topic_id:
        _state_changes.error(
            "[Broker id=%d] Topic ID in memory: %s does not match the topic ID for partition %s received: %s.",
            source.broker_id,
            known_id,
            partition,
            change.topic_id,
        )
        errors[partition] = int(ErrorCode.INCONSISTENT_TOPIC_ID)
    elif state.leader_epoch > current_epoch or (state.leader_epoch == current_epoch and is_kraft_controller):
        if replicas.broker_id in state.replicas:
            return True
        source.ignored(request, partition, f"as itself is not in assigned replica list {','.join(map(str, state.replicas))}")
        errors[partition] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif state.leader_epoch == current_epoch and change.topic_id is not None and known_id is None and log is not None:
        log.assign_topic_id(change.topic_id)  # a cluster that is upgraded gets topic ids without a new leader epoch
        _state_changes.info(
            "[Broker id=%d] Updating log for %s to assign topic ID %s from LeaderAndIsr request from controller %d with correlation id %d "
            "epoch %d",
            source.broker_id,
            partition,
            change.topic_id,
            source.controller_id,
            source.correlation_id,
            source.epoch,
        )
        errors[partition] = int(ErrorCode.NONE)
    else:
        epoch = f"since its associated leader epoch {state.leader_epoch}"
        if state.leader_epoch == current_epoch:
            # At INFO in Kafka. Every new controller sends all partitions again with the same leader epoch.
            source.ignored(request, partition, f"{epoch} matches the current leader epoch", logging.DEBUG)
        else:
            source.ignored(request, partition, f"{epoch} is smaller than the current leader epoch {current_epoch}")
        errors[partition] = int(ErrorCode.STALE_CONTROLLER_EPOCH)
    return False


def _make_leader(replicas: ReplicaManager, change: _PartitionChange, errors: Errors) -> Partition | None:
    """The partition, if this broker did not lead it before."""
    hosted, log = _open(replicas, change, errors)
    if log is None:
        return None
    try:
        return hosted if hosted.make_leader(change.state, log, replicas.clock.monotonic_ms()) else None
    except OSError as error:
        _disk_failed(replicas, log, error, errors)
        return None


def _make_follower(replicas: ReplicaManager, change: _PartitionChange, errors: Errors) -> Partition | None:
    """The partition, if its leader's epoch is new."""
    hosted, log = _open(replicas, change, errors)
    if log is None:
        return None
    return hosted if hosted.make_follower(change.state, log) else None


def _open(replicas: ReplicaManager, change: _PartitionChange, errors: Errors) -> tuple[Partition, Log | None]:
    """The partition and its log, created if there was none. The log is None if its disk failed."""
    partition = change.partition
    hosted = replicas.online.get(partition)
    if hosted is None:
        hosted = replicas.online[partition] = Partition(partition, replicas.host)
    errors[partition] = int(ErrorCode.NONE)
    try:
        return hosted, _open_log(replicas, hosted, change)
    except OutOfDescriptors as error:
        _log.warning("The state change of %s has to be tried again: %s", partition, error)
        errors[partition] = error.code
        if hosted.log is None:
            replicas.online.pop(partition, None)  # as if the request had not named it
            hosted.close()
    except KafkaStorageError as error:
        _log.error("Skipped the state change of %s since its log is in an offline log directory: %s", partition, error)
        errors[partition] = error.code
        if partition in replicas.online:
            replicas.mark_offline(hosted)
    except KafkaError as error:
        _log.error("Skipped the state change of %s: %s", partition, error)
        errors[partition] = error.code
    return hosted, None


def _open_log(replicas: ReplicaManager, hosted: Partition, change: _PartitionChange) -> Log:
    if hosted.log is not None:
        if change.topic_id is not None:
            hosted.log.assign_topic_id(change.topic_id)
        return hosted.log
    log = replicas.log_manager.get_or_create(
        change.partition,
        replicas.clock.now_ms(),
        topic_id=change.topic_id,
        is_new=change.state.is_new,
        directory=replicas.mover.preferred_dir(change.partition),
    )
    replicas.log_manager.role_given(log)
    replicas.mover.resume(change.partition)
    return log


def _disk_failed(replicas: ReplicaManager, log: Log, error: OSError, errors: Errors) -> None:
    replicas.log_manager.disk_failed(log.log_dir, f"Error while writing the leader epoch of {log.partition}: {error}", error)
    errors[log.partition] = int(ErrorCode.KAFKA_STORAGE_ERROR)


def _response(changes: Iterable[_PartitionChange], errors: Errors, version: int, error: int = 0) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse(error)
    topics: dict[Uuid, LeaderAndIsrTopicError] = {}
    for change in changes:
        topic, index = change.partition
        code = errors.get(change.partition, int(ErrorCode.NONE))
        if version < _TOPIC_IDS_SINCE:
            response.partition_errors.append(LeaderAndIsrPartitionError(topic, index, code))
            continue
        topic_id = change.topic_id or Uuid.ZERO
        if topic_id not in topics:
            topics[topic_id] = LeaderAndIsrTopicError(topic_id)
            response.topics.append(topics[topic_id])
        topics[topic_id].partition_errors.append(LeaderAndIsrPartitionError("", index, code))
    return response


# -- stopping


def stop_replicas(
    replicas: ReplicaManager, request: StopReplicaRequest, correlation_id: int = loggers.NO_CORRELATION_ID
) -> StopReplicaResponse:
    if request.controller_epoch < replicas.controller_epoch:
        _state_changes.warning(
            "[Broker id=%d] Ignoring StopReplica request from controller %d with correlation id %d since its controller epoch %d is old. "
            "Latest known controller epoch is %d",
            replicas.broker_id,
            request.controller_id,
            correlation_id,
            request.controller_epoch,
            replicas.controller_epoch,
        )
        return StopReplicaResponse(int(ErrorCode.STALE_CONTROLLER_EPOCH))
    replicas.controller_epoch = request.controller_epoch
    response = StopReplicaResponse(int(ErrorCode.NONE))
    source = _Source(replicas, request, correlation_id)
    is_traced = _state_changes.isEnabledFor(TRACE)
    for partition, state in _stops(request):
        if is_traced:
            _state_changes.log(
                TRACE,
                "[Broker id=%d] Received StopReplica request %s correlation id %d from controller %d epoch %d for partition %s",
                source.broker_id,
                kafka_text(state),
                correlation_id,
                source.controller_id,
                source.epoch,
                partition,
            )
        error = _stop(replicas, partition, state, source)
        response.partition_errors.append(StopReplicaPartitionError(partition.topic, partition.partition, error))
    return response


def refused_stops(request: StopReplicaRequest, error: ErrorCode) -> StopReplicaResponse:
    """The response to a request that the client may not send: each partition has the error, too."""
    partitions = [StopReplicaPartitionError(partition.topic, partition.partition, int(error)) for partition, _ in _stops(request)]
    return StopReplicaResponse(int(error), partitions)


def _stops(request: StopReplicaRequest) -> Iterator[tuple[TopicPartition, StopReplicaPartitionState]]:
    for topic_state in request.topic_states:
        for state in topic_state.partition_states:
            yield TopicPartition(topic_state.topic_name, state.partition_index), state
    # Before version 3 a request deletes all its partitions or none, and has no leader epochs.
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index), StopReplicaPartitionState(index, NO_EPOCH, request.delete_partitions)
    for single in request.ungrouped_partitions:
        index = single.partition_index
        yield TopicPartition(single.topic_name, index), StopReplicaPartitionState(index, NO_EPOCH, request.delete_partitions)


def _stop(replicas: ReplicaManager, partition: TopicPartition, state: StopReplicaPartitionState, source: _Source) -> int:
    request = f"StopReplica request (delete={'true' if state.delete_partition else 'false'})"
    if partition in replicas.offline:
        source.ignored(request, partition, _OFFLINE)
        return int(ErrorCode.KAFKA_STORAGE_ERROR)
    hosted = replicas.online.get(partition)
    if hosted is not None and state.leader_epoch not in (EPOCH_DURING_DELETE, NO_EPOCH) and state.leader_epoch < hosted.leader_epoch:
        epochs = f"leader epoch {state.leader_epoch} is smaller than the current leader epoch {hosted.leader_epoch}"
        source.ignored(request, partition, f"since its associated {epochs}")
        return int(ErrorCode.FENCED_LEADER_EPOCH)
    if replicas.fetchers is not None:
        replicas.fetchers.stop([partition])
    error = _delete(replicas, partition, hosted, source) if state.delete_partition else int(ErrorCode.NONE)
    replicas.wake(partition)
    return error


def _delete(replicas: ReplicaManager, partition: TopicPartition, hosted: Partition | None, source: _Source) -> int:
    """Deletes the partition and its log. There may be a log without a partition: its topic was deleted while this broker was down."""
    if hosted is not None:
        del replicas.online[partition]
        hosted.close()
    try:
        replicas.mover.stop(partition)
        replicas.log_manager.delete(partition)
    except KafkaStorageError as error:
        source.ignored("StopReplica request (delete=true)", partition, _OFFLINE, logging.ERROR)
        _log.error("Could not delete the log of %s: %s", partition, error)
        return error.code
    return int(ErrorCode.NONE)


# -- metadata


def update_metadata(
    replicas: ReplicaManager, request: UpdateMetadataRequest, correlation_id: int = loggers.NO_CORRELATION_ID
) -> UpdateMetadataResponse:
    if request.controller_epoch < replicas.controller_epoch:
        _state_changes.warning(
            "[Broker id=%d] Received update metadata request with correlation id %d from an old controller %d with epoch %d. "
            "Latest known controller epoch is %d",
            replicas.broker_id,
            correlation_id,
            request.controller_id,
            request.controller_epoch,
            replicas.controller_epoch,
        )
        return UpdateMetadataResponse(int(ErrorCode.STALE_CONTROLLER_EPOCH))
    replicas.controller_epoch = request.controller_epoch
    cache = replicas.metadata_cache
    alive = cache.alive_brokers()
    deleted = cache.update(request, correlation_id)
    if deleted:
        for on_deleted in replicas.on_partitions_deleted:
            on_deleted(deleted)
    if any(not cache.has_alive_broker(broker.id) for broker in alive):
        _brokers_failed(replicas)
    return UpdateMetadataResponse(int(ErrorCode.NONE))


def _brokers_failed(replicas: ReplicaManager) -> None:
    """A high watermark may have waited for a replica of a failed broker that was about to join the ISR. If the other replicas have all
    records, no fetch of theirs moves it, so it is checked here."""
    for hosted in list(replicas.online.values()):
        hosted.isr_changed()
