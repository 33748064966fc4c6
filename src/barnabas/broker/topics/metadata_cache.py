# Compiled by mypyc: src/compiled.toml lists this module.
"""The metadata cache: the brokers, topics and partitions of the cluster, as in the last UpdateMetadata of the controller.

Every request that names a topic looks it up here first, and Metadata is served from the cache alone. Only UpdateMetadata changes it, in one
step that no reader sees half done. It never reads the metadata store and makes no decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, KeysView
from dataclasses import dataclass
from typing import Final

from barnabas import loggers
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.loggers import TRACE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_text import kafka_text
from barnabas.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)
_state_changes: Final = logging.getLogger(loggers.STATE_CHANGE)

LEADER_DURING_DELETE: Final = -2  # the leader of a partition whose topic is being deleted
NO_LEADER: Final = -1

# How Metadata represents a partition whose leader does not have the listener of the client. It depends on the codes that a version knows.
HIDE_UNREACHABLE: Final = 0  # v0: replicas without the listener are left out, with REPLICA_NOT_AVAILABLE
LEADER_MISSING: Final = 1  # v1 to v5: LEADER_NOT_AVAILABLE
LISTENER_MISSING: Final = 2  # v6 and later: LISTENER_NOT_FOUND


@dataclass(frozen=True, slots=True)
class AliveBroker:
    id: int
    endpoints: dict[str, EndPoint]
    rack: str | None

    def endpoint(self, listener_name: str) -> EndPoint | None:
        return self.endpoints.get(listener_name)


class MetadataCache:
    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.controller_id: int | None = None
        self.on_update: list[Callable[[], None]] = []  # called after every update
        self.on_topics_changed: list[Callable[[list[str]], None]] = []  # called with the topics of an update
        self._brokers: dict[int, AliveBroker] = {}
        self._partitions: dict[str, dict[int, UpdateMetadataPartitionState]] = {}
        self._keys: dict[str, dict[int, TopicPartition]] = {}  # cached, because making a TopicPartition costs more than a lookup
        self._topic_ids: dict[str, Uuid] = {}
        self._topic_names: dict[Uuid, str] = {}
        # Topics as in a Metadata response, by listener and style: building ten thousand partitions costs more than sending them.
        self._built: dict[tuple[str, int], dict[str, MetadataResponseTopic]] = {}

    def update(self, request: UpdateMetadataRequest, correlation_id: int = loggers.NO_CORRELATION_ID) -> list[TopicPartition]:
        """Applies an UpdateMetadata and returns the deleted partitions. The cost depends on the size of the request, not of the cache."""
        self.controller_id = request.controller_id if request.controller_id >= 0 else None
        self._update_brokers(request.live_brokers)
        is_traced = _state_changes.isEnabledFor(TRACE)
        cached = 0
        deleted: dict[TopicPartition, None] = {}
        for topic in request.topic_states:
            self._set_topic_id(topic.topic_name, topic.topic_id)
            self._update_partitions(topic.topic_name, topic.partition_states, deleted)
            cached += len(topic.partition_states)
            if is_traced:
                self._trace(topic.topic_name, topic.partition_states, request, correlation_id)
        for state in request.ungrouped_partition_states:  # v4 and before
            self._update_partitions(state.topic_name, [state], deleted)
            cached += 1
            if is_traced:
                self._trace(state.topic_name, [state], request, correlation_id)
        _state_changes.info(
            "[Broker id=%d] Add %d partitions and deleted %d partitions from metadata cache in response to UpdateMetadata request sent by "
            "controller %d epoch %d with correlation id %d",
            self.broker_id,
            cached - len(deleted),
            len(deleted),
            request.controller_id,
            request.controller_epoch,
            correlation_id,
        )
        for callback in self.on_update:
            callback()
        self._notify_topics_changed(request)
        return list(deleted)

    def _trace(self, topic: str, states: list[UpdateMetadataPartitionState], request: UpdateMetadataRequest, correlation_id: int) -> None:
        for state in states:
            partition = TopicPartition(topic, state.partition_index)
            if state.leader == LEADER_DURING_DELETE:
                change = f"Deleted partition {partition} from metadata cache"
            else:
                change = f"Cached leader info {kafka_text(state)} for partition {partition}"
            _state_changes.log(
                TRACE,
                "[Broker id=%d] %s in response to UpdateMetadata request sent by controller %d epoch %d with correlation id %d",
                self.broker_id,
                change,
                request.controller_id,
                request.controller_epoch,
                correlation_id,
            )

    def topics(self) -> KeysView[str]:
        return self._partitions.keys()

    def topic_id(self, topic: str) -> Uuid | None:
        return self._topic_ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        return self._topic_names.get(topic_id)

    def contains(self, topic: str, partition: int | None = None) -> bool:
        partitions = self._partitions.get(topic)
        return partitions is not None and (partition is None or partition in partitions)

    def partition_key(self, topic: str, partition: int) -> TopicPartition | None:
        """The TopicPartition of a partition in the cache, or None."""
        partitions = self._partitions.get(topic)
        if partitions is None or partition not in partitions:
            return None
        keys = self._keys.setdefault(topic, {})
        key = keys.get(partition)
        if key is None:
            key = keys[partition] = TopicPartition(topic, partition)
        return key

    def partition_count(self, topic: str) -> int | None:
        partitions = self._partitions.get(topic)
        return None if partitions is None else len(partitions)

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic in order. Empty for an unknown topic."""
        return sorted(self._partitions.get(topic, ()))

    def partition_info(self, topic: str, partition: int) -> UpdateMetadataPartitionState | None:
        partitions = self._partitions.get(topic)
        return None if partitions is None else partitions.get(partition)

    def holds_replicas(self) -> bool:
        """Whether any partition is assigned to this broker."""
        return any(self.broker_id in state.replicas for states in self._partitions.values() for state in states.values())

    def alive_brokers(self) -> list[AliveBroker]:
        """In the order of their ids."""
        return list(self._brokers.values())

    def has_alive_broker(self, broker_id: int) -> bool:
        return broker_id in self._brokers

    def rack(self, broker_id: int) -> str | None:
        broker = self._brokers.get(broker_id)
        return None if broker is None else broker.rack

    def broker_endpoint(self, broker_id: int, listener_name: str) -> EndPoint | None:
        """The endpoint of a broker on this listener. None if the broker is not alive or has no such listener."""
        broker = self._brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(listener_name)

    def leader_endpoint(self, topic: str, partition: int, listener_name: str) -> tuple[int, EndPoint] | None:
        """The leader of a partition and its endpoint on this listener. None without a leader that has this listener."""
        state = self.partition_info(topic, partition)
        if state is None:
            return None
        endpoint = self.broker_endpoint(state.leader, listener_name)
        return None if endpoint is None else (state.leader, endpoint)

    def topic_metadata(self, topics: Iterable[str], listener_name: str, style: int = LISTENER_MISSING) -> list[MetadataResponseTopic]:
        """The known topics among `topics`, as in a Metadata response. Responses share these objects: callers must not change them."""
        built = self._built.setdefault((listener_name, style), {})
        responses = []
        for name in topics:
            topic = built.get(name)
            if topic is None:
                if name not in self._partitions:
                    continue
                topic = built[name] = self._topic_response(name, listener_name, style)
            responses.append(topic)
        return responses

    def partition_metadata(
        self, topic: str, partition: int, listener_name: str, style: int = LISTENER_MISSING
    ) -> MetadataResponsePartition | None:
        """One partition as in a Metadata response."""
        state = self.partition_info(topic, partition)
        return None if state is None else self._partition_response(state, listener_name, style)

    def _notify_topics_changed(self, request: UpdateMetadataRequest) -> None:
        names = [topic.topic_name for topic in request.topic_states]
        names += dict.fromkeys(state.topic_name for state in request.ungrouped_partition_states)
        if names:
            for callback in self.on_topics_changed:
                callback(names)

    def _update_brokers(self, live_brokers: list[UpdateMetadataBroker]) -> None:
        brokers = {broker.id: _alive_broker(broker) for broker in sorted(live_brokers, key=lambda broker: broker.id)}
        if brokers == self._brokers:
            return
        self._brokers = brokers
        self._built.clear()
        own = brokers.get(self.broker_id)
        if own is not None and any(broker.endpoints.keys() != own.endpoints.keys() for broker in brokers.values()):
            listeners = {broker.id: sorted(broker.endpoints) for broker in brokers.values()}
            _log.error("Listeners are not identical across brokers, a client may find partitions without a leader: %s", listeners)

    def _set_topic_id(self, topic: str, topic_id: Uuid) -> None:
        previous_id = self._topic_ids.get(topic, Uuid.ZERO)
        if previous_id == topic_id:
            return
        self._topic_names.pop(previous_id, None)
        if topic_id == Uuid.ZERO:
            del self._topic_ids[topic]
        else:
            self._topic_ids[topic] = topic_id
            self._topic_names[topic_id] = topic

    def _update_partitions(self, topic: str, states: list[UpdateMetadataPartitionState], deleted: dict[TopicPartition, None]) -> None:
        partitions = self._partitions.setdefault(topic, {})
        for state in states:
            partition = state.partition_index
            if state.leader == LEADER_DURING_DELETE:
                partitions.pop(partition, None)
                deleted[TopicPartition(topic, partition)] = None
            else:
                partitions[partition] = state
                deleted.pop(TopicPartition(topic, partition), None)
        if not partitions:
            del self._partitions[topic]
            self._keys.pop(topic, None)
            self._set_topic_id(topic, Uuid.ZERO)
        for built in self._built.values():
            built.pop(topic, None)

    def _topic_response(self, topic: str, listener_name: str, style: int) -> MetadataResponseTopic:
        states = self._partitions[topic]
        partitions = [self._partition_response(states[partition], listener_name, style) for partition in sorted(states)]
        return MetadataResponseTopic(ErrorCode.NONE, topic, self._topic_ids.get(topic, Uuid.ZERO), is_internal(topic), partitions)

    def _partition_response(self, state: UpdateMetadataPartitionState, listener_name: str, style: int) -> MetadataResponsePartition:
        replicas, isr = state.replicas, state.isr
        if style == HIDE_UNREACHABLE:
            replicas = [broker_id for broker_id in replicas if self.broker_endpoint(broker_id, listener_name) is not None]
            isr = [broker_id for broker_id in isr if self.broker_endpoint(broker_id, listener_name) is not None]
        leader = state.leader
        error = ErrorCode.NONE
        if self.broker_endpoint(leader, listener_name) is None:
            listener_is_missing = style == LISTENER_MISSING and leader in self._brokers
            error = ErrorCode.LISTENER_NOT_FOUND if listener_is_missing else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(error, state.partition_index, leader, state.leader_epoch, replicas, isr, state.offline_replicas)


def _alive_broker(broker: UpdateMetadataBroker) -> AliveBroker:
    endpoints = {}
    for endpoint in broker.endpoints:
        protocol = SecurityProtocol(endpoint.security_protocol)
        listener_name = endpoint.listener or protocol.name  # v1 and v2 name no listener
        endpoints[listener_name] = EndPoint(listener_name, endpoint.host, endpoint.port, protocol)
    if broker.v0_host:
        endpoints["PLAINTEXT"] = EndPoint("PLAINTEXT", broker.v0_host, broker.v0_port)
    return AliveBroker(broker.id, endpoints, broker.rack or None)
