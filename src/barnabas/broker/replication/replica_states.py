"""What the controller orders: which partitions this broker leads, follows, stops, or deletes.

An order of an older controller is refused as a whole, one of an older leader epoch for its partition. Leaders are made first, so that they
serve while the followers are still being set up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.partitions.partition import Partition
from barnabas.errors import KafkaError, KafkaStorageError, OutOfDescriptors
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from barnabas.protocol.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest
from barnabas.protocol.messages.stop_replica_response import StopReplicaPartitionError, StopReplicaResponse
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager

_log = logging.getLogger(__name__)

NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2  # a deletion does not raise the epoch, and is never too old
_TOPIC_IDS_SINCE: Final = 5  # the version from which on the response names topics by their ids

Errors = dict[TopicPartition, int]


class Fetchers(Protocol):
    """Those who fetch from leaders what this broker follows."""

    def follow(self, partitions: Iterable[Partition]) -> None: ...

    def stop(self, partitions: Iterable[TopicPartition]) -> None: ...

    def stop_idle(self) -> None: ...


class _Order:
    """One partition of a LeaderAndIsr request."""

    def __init__(self, topic: str, topic_id: Uuid, state: LeaderAndIsrPartitionState) -> None:
        self.partition = TopicPartition(topic, state.partition_index)
        self.topic_id = None if topic_id == Uuid.ZERO else topic_id
        self.state = state


# -- leading and following


def become_leader_or_follower(replicas: ReplicaManager, request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrResponse:
    orders = list(_orders(request))
    if request.controller_epoch < replicas.controller_epoch:
        _log.warning(
            "Ignoring LeaderAndIsr request from controller %d since its controller epoch %d is old. Latest known controller epoch is %d",
            request.controller_id,
            request.controller_epoch,
            replicas.controller_epoch,
        )
        stale = int(ErrorCode.STALE_CONTROLLER_EPOCH)
        return _response(orders, {order.partition: stale for order in orders}, version, stale)
    replicas.controller_epoch = request.controller_epoch
    errors: Errors = {}
    accepted = [order for order in orders if _is_acceptable(replicas, order, request.is_kraft_controller, errors)]
    led = [order for order in accepted if order.state.leader == replicas.broker_id]
    followed = [order for order in accepted if order.state.leader != replicas.broker_id]
    fetchers = replicas.fetchers
    if fetchers is not None:
        fetchers.stop(order.partition for order in led)  # nothing of another leader may come after its own first record
    leaders = [found for order in led if (found := _make_leader(replicas, order, errors)) is not None]
    followers = [found for order in followed if (found := _make_follower(replicas, order, errors)) is not None]
    for found in followers:
        replicas.wake(found.partition)  # what waited for this broker as the leader waits in vain
    if fetchers is not None:
        fetchers.follow(followers)
        fetchers.stop_idle()
    for tell in replicas.on_leadership_change:
        tell(leaders, followers)
    return _response(orders, errors, version)


def _orders(request: LeaderAndIsrRequest) -> Iterator[_Order]:
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _Order(topic.topic_name, topic.topic_id, state)
    for state in request.ungrouped_partition_states:
        yield _Order(state.topic_name, Uuid.ZERO, state)


def _is_acceptable(replicas: ReplicaManager, order: _Order, is_kraft_controller: bool, errors: Errors) -> bool:
    """Whether the order is newer than what this broker knows. What it says of a topic id alone is done here."""
    partition, state = order.partition, order.state
    if partition in replicas.offline:
        errors[partition] = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return False
    found = replicas.online.get(partition)
    log = replicas.log_manager.get(partition)
    known_id = None if log is None else log.topic_id
    current_epoch = NO_EPOCH if found is None else found.leader_epoch
    if order.topic_id is not None and known_id is not None and known_id != order.topic_id:
        _log.error("Topic ID %s of %s does not match the topic ID received: %s", known_id, partition, order.topic_id)
        errors[partition] = int(ErrorCode.INCONSISTENT_TOPIC_ID)
    elif state.leader_epoch > current_epoch or (state.leader_epoch == current_epoch and is_kraft_controller):
        if replicas.broker_id in state.replicas:
            return True
        _log.warning("Ignoring LeaderAndIsr for %s: this broker is not in the assigned replica list %s", partition, state.replicas)
        errors[partition] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif state.leader_epoch == current_epoch and order.topic_id is not None and known_id is None and log is not None:
        log.assign_topic_id(order.topic_id)  # topic ids come to an old cluster without a new epoch
        errors[partition] = int(ErrorCode.NONE)
    else:
        # The same epoch again is what every new controller says of every partition.
        level = logging.DEBUG if state.leader_epoch == current_epoch else logging.INFO
        _log.log(level, "Ignoring LeaderAndIsr for %s: its leader epoch %d is not above %d", partition, state.leader_epoch, current_epoch)
        errors[partition] = int(ErrorCode.STALE_CONTROLLER_EPOCH)
    return False


def _make_leader(replicas: ReplicaManager, order: _Order, errors: Errors) -> Partition | None:
    """The partition, if this broker did not lead it before."""
    found, log = _open(replicas, order, errors)
    if log is None:
        return None
    try:
        return found if found.make_leader(order.state, log, replicas.clock.monotonic_ms()) else None
    except OSError as error:
        _disk_failed(replicas, log, error, errors)
        return None


def _make_follower(replicas: ReplicaManager, order: _Order, errors: Errors) -> Partition | None:
    """The partition, if its leader's epoch is new."""
    found, log = _open(replicas, order, errors)
    if log is None:
        return None
    return found if found.make_follower(order.state, log) else None


def _open(replicas: ReplicaManager, order: _Order, errors: Errors) -> tuple[Partition, Log | None]:
    """The partition and its log, made where there was none; no log where its disk does not work."""
    partition = order.partition
    found = replicas.online.get(partition)
    if found is None:
        found = replicas.online[partition] = Partition(partition, replicas.host)
    errors[partition] = int(ErrorCode.NONE)
    try:
        return found, _open_log(replicas, found, order)
    except OutOfDescriptors as error:
        _log.warning("The state change of %s has to be tried again: %s", partition, error)
        errors[partition] = error.code
        if found.log is None:
            replicas.online.pop(partition, None)  # as if it had never been ordered
    except KafkaStorageError as error:
        _log.error("Skipped the state change of %s since its log is in an offline log directory: %s", partition, error)
        errors[partition] = error.code
        if partition in replicas.online:
            replicas.mark_offline(found)
    except KafkaError as error:
        _log.error("Skipped the state change of %s: %s", partition, error)
        errors[partition] = error.code
    return found, None


def _open_log(replicas: ReplicaManager, found: Partition, order: _Order) -> Log:
    if found.log is not None:
        if order.topic_id is not None:
            found.log.assign_topic_id(order.topic_id)
        return found.log
    log = replicas.log_manager.get_or_create(
        order.partition,
        replicas.clock.now_ms(),
        topic_id=order.topic_id,
        is_new=order.state.is_new,
        directory=replicas.mover.preferred_dir(order.partition),
    )
    replicas.log_manager.role_given(log)
    replicas.mover.resume(order.partition)
    return log


def _disk_failed(replicas: ReplicaManager, log: Log, error: OSError, errors: Errors) -> None:
    replicas.log_manager.disk_failed(log.log_dir, f"Error while writing the leader epoch of {log.partition}: {error}", error)
    errors[log.partition] = int(ErrorCode.KAFKA_STORAGE_ERROR)


def _response(orders: Iterable[_Order], errors: Errors, version: int, error: int = 0) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse(error)
    topics: dict[Uuid, LeaderAndIsrTopicError] = {}
    for order in orders:
        topic, index = order.partition
        code = errors.get(order.partition, int(ErrorCode.NONE))
        if version < _TOPIC_IDS_SINCE:
            response.partition_errors.append(LeaderAndIsrPartitionError(topic, index, code))
            continue
        topic_id = order.topic_id or Uuid.ZERO
        if topic_id not in topics:
            topics[topic_id] = LeaderAndIsrTopicError(topic_id)
            response.topics.append(topics[topic_id])
        topics[topic_id].partition_errors.append(LeaderAndIsrPartitionError("", index, code))
    return response


# -- stopping


def stop_replicas(replicas: ReplicaManager, request: StopReplicaRequest) -> StopReplicaResponse:
    if request.controller_epoch < replicas.controller_epoch:
        _log.warning(
            "Ignoring StopReplica request from controller %d since its controller epoch %d is old. Latest known controller epoch is %d",
            request.controller_id,
            request.controller_epoch,
            replicas.controller_epoch,
        )
        return StopReplicaResponse(int(ErrorCode.STALE_CONTROLLER_EPOCH))
    replicas.controller_epoch = request.controller_epoch
    response = StopReplicaResponse(int(ErrorCode.NONE))
    for partition, state in _stops(request):
        error = _stop(replicas, partition, state)
        response.partition_errors.append(StopReplicaPartitionError(partition.topic, partition.partition, error))
    return response


def _stops(request: StopReplicaRequest) -> Iterator[tuple[TopicPartition, StopReplicaPartitionState]]:
    for topic_state in request.topic_states:
        for state in topic_state.partition_states:
            yield TopicPartition(topic_state.topic_name, state.partition_index), state
    # Before version 3 all were deleted or none, whatever their epoch.
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index), StopReplicaPartitionState(index, NO_EPOCH, request.delete_partitions)
    for single in request.ungrouped_partitions:
        index = single.partition_index
        yield TopicPartition(single.topic_name, index), StopReplicaPartitionState(index, NO_EPOCH, request.delete_partitions)


def _stop(replicas: ReplicaManager, partition: TopicPartition, state: StopReplicaPartitionState) -> int:
    if partition in replicas.offline:
        return int(ErrorCode.KAFKA_STORAGE_ERROR)
    found = replicas.online.get(partition)
    if found is not None and state.leader_epoch not in (EPOCH_DURING_DELETE, NO_EPOCH) and state.leader_epoch < found.leader_epoch:
        _log.warning("Ignoring StopReplica for %s: leader epoch %d is below %d", partition, state.leader_epoch, found.leader_epoch)
        return int(ErrorCode.FENCED_LEADER_EPOCH)
    if replicas.fetchers is not None:
        replicas.fetchers.stop([partition])
    error = _delete(replicas, partition, found) if state.delete_partition else int(ErrorCode.NONE)
    replicas.wake(partition)
    return error


def _delete(replicas: ReplicaManager, partition: TopicPartition, found: Partition | None) -> int:
    """Also a log that no partition has: its topic was deleted while this broker was away."""
    if found is not None:
        del replicas.online[partition]
        found.close()
    try:
        replicas.mover.stop(partition)
        replicas.log_manager.delete(partition)
    except KafkaStorageError as error:
        _log.error("Could not delete the log of %s: %s", partition, error)
        return error.code
    return int(ErrorCode.NONE)
