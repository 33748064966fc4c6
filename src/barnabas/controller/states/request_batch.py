"""The control requests of one state change, collected per broker: Kafka's ControllerBrokerRequestBatch.

A batch is made for one change and sent once, at its end: LeaderAndIsr, then UpdateMetadata, then StopReplica. Responses become events. It
reads the context and does not change it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from barnabas import loggers
from barnabas.controller.channel import ControllerChannel
from barnabas.controller.context import ControllerContext, LeaderAndIsr, LiveBroker
from barnabas.controller.events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from barnabas.loggers import TRACE
from barnabas.protocol.message import Message
from barnabas.protocol.message_text import kafka_text
from barnabas.protocol.messages.leader_and_isr_request import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_state_changes = logging.getLogger(loggers.STATE_CHANGE)


class RequestBatch:
    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        channel: ControllerChannel,
        put_event: Callable[[ControllerEvent], object],
        inter_broker_listener_name: str,
    ) -> None:
        self._controller_id = controller_id
        self._context = context
        self._channel = channel
        self._put_event = put_event
        self._listener_name = inter_broker_listener_name
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartitionState]] = {}
        self._update_metadata_brokers: dict[int, None] = {}
        self._update_metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}

    def add_leader_and_isr(self, broker_ids: Iterable[int], partition: TopicPartition, state: LeaderAndIsr, *, is_new: bool) -> None:
        """Adds a LeaderAndIsr for these brokers, which have replicas of the partition, and an UpdateMetadata for all live brokers."""
        assignment = self._context.assignment(partition)
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            partitions = self._leader_and_isr.setdefault(broker_id, {})
            before = partitions.get(partition)
            partitions[partition] = LeaderAndIsrPartitionState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                partition_epoch=state.partition_epoch,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
                is_new=is_new or (before is not None and before.is_new),
                leader_recovery_state=state.leader_recovery_state,
            )
        self.add_update_metadata(self._context.live_brokers, (partition,))

    def add_stop_replica(self, broker_id: int, partition: TopicPartition, *, delete: bool) -> None:
        partitions = self._stop_replica.setdefault(broker_id, {})
        before = partitions.get(partition)
        partitions[partition] = StopReplicaPartitionState(
            partition_index=partition.partition,
            leader_epoch=self._context.leader_epoch_to_stop(partition),
            delete_partition=delete or (before is not None and before.delete_partition),
        )

    def add_update_metadata(self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Adds an UpdateMetadata for these brokers. Partitions without a state, which never had a leader, are left out."""
        self._update_metadata_brokers |= dict.fromkeys(broker_ids)
        for partition in partitions:
            state = self._context.leadership.get(partition)
            if state is not None:
                self._update_metadata[partition] = self._metadata_of(partition, state)

    def _metadata_of(self, partition: TopicPartition, state: LeaderAndIsr) -> UpdateMetadataPartitionState:
        context = self._context
        if partition.topic in context.topics_to_be_deleted:
            state = state.during_delete()
        replicas = context.replicas(partition)
        return UpdateMetadataPartitionState(
            topic_name=partition.topic,
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            zk_version=state.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[replica for replica in replicas if not context.is_replica_online(replica, partition)],
        )

    def send(self) -> None:
        self._send_leader_and_isr()
        self._send_update_metadata()
        self._send_stop_replica()

    def _send_leader_and_isr(self) -> None:
        for broker_id, states in self._leader_and_isr.items():
            broker = self._context.live_brokers.get(broker_id)
            if broker is None:
                continue
            leaders = {state.leader for state in states.values()}
            leading = sum(state.leader == broker_id for state in states.values())
            if _state_changes.isEnabledFor(TRACE):
                for partition, state in states.items():
                    role = "become-leader" if state.leader == broker_id else "become-follower"
                    self._trace(f"{role} LeaderAndIsr", state, broker_id, partition)
            _state_changes.info(
                "[Controller id=%d epoch=%d] Sending LeaderAndIsr request to broker %d with %d become-leader and %d become-follower "
                "partitions",
                self._controller_id,
                self._context.epoch,
                broker_id,
                leading,
                len(states) - leading,
            )
            topics: dict[str, LeaderAndIsrTopicState] = {}
            for partition, state in states.items():
                topic = topics.get(partition.topic)
                if topic is None:
                    topic = topics[partition.topic] = LeaderAndIsrTopicState(partition.topic, self._topic_id(partition.topic))
                topic.partition_states.append(state)
            request = LeaderAndIsrRequest(
                controller_id=self._controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=broker.epoch,
                topic_states=list(topics.values()),
                live_leaders=[
                    node for leader in self._context.live_brokers.values() if leader.broker_id in leaders for node in self._node(leader)
                ],
            )
            self._channel.send(broker_id, request, partial(self._leader_and_isr_response, broker_id))

    def _node(self, broker: LiveBroker) -> list[LeaderAndIsrLiveLeader]:
        """The inter-broker endpoint of a leader. Empty if the broker does not have this listener: followers cannot connect to it."""
        return [
            LeaderAndIsrLiveLeader(broker.broker_id, endpoint.host, endpoint.port)
            for endpoint in broker.registration.endpoints
            if endpoint.listener_name == self._listener_name
        ]

    def _send_update_metadata(self) -> None:
        live_brokers = self._context.live_brokers
        recipients = [live_brokers[broker_id] for broker_id in self._update_metadata_brokers if broker_id in live_brokers]
        if not recipients:
            return
        _state_changes.info(
            "[Controller id=%d epoch=%d] Sending UpdateMetadata request to brokers %s for %d partitions",
            self._controller_id,
            self._context.epoch,
            [broker.broker_id for broker in recipients],
            len(self._update_metadata),
        )
        topics: dict[str, UpdateMetadataTopicState] = {}
        for partition, state in self._update_metadata.items():
            topic = topics.get(partition.topic)
            if topic is None:
                topic = topics[partition.topic] = UpdateMetadataTopicState(partition.topic, self._topic_id(partition.topic))
            topic.partition_states.append(state)
        topic_states = list(topics.values())
        described_brokers = [_described(broker) for broker in live_brokers.values()]
        for broker in recipients:
            request = UpdateMetadataRequest(
                controller_id=self._controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=broker.epoch,
                topic_states=topic_states,
                live_brokers=described_brokers,
            )
            self._channel.send(broker.broker_id, request, partial(self._update_metadata_response, broker.broker_id))

    def _send_stop_replica(self) -> None:
        for broker_id, states in self._stop_replica.items():
            broker = self._context.live_brokers.get(broker_id)
            if broker is None:
                continue
            if _state_changes.isEnabledFor(TRACE):
                for partition, state in states.items():
                    self._trace("StopReplica", state, broker_id, partition)
            _state_changes.info(
                "[Controller id=%d epoch=%d] Sending StopReplica request for %d replicas to broker %d",
                self._controller_id,
                self._context.epoch,
                len(states),
                broker_id,
            )
            topics: dict[str, StopReplicaTopicState] = {}
            for partition, state in states.items():
                topic = topics.get(partition.topic)
                if topic is None:
                    topic = topics[partition.topic] = StopReplicaTopicState(partition.topic)
                topic.partition_states.append(state)
            request = StopReplicaRequest(
                controller_id=self._controller_id,
                controller_epoch=self._context.epoch,
                broker_epoch=broker.epoch,
                topic_states=list(topics.values()),
            )
            deleted = {partition for partition, state in states.items() if state.delete_partition}
            self._channel.send(broker_id, request, partial(self._stop_replica_response, broker_id, deleted))

    def _trace(self, kind: str, state: Message, broker_id: int, partition: TopicPartition) -> None:
        _state_changes.log(
            TRACE,
            "[Controller id=%d epoch=%d] Sending %s request %s to broker %d for partition %s",
            self._controller_id,
            self._context.epoch,
            kind,
            kafka_text(state),
            broker_id,
            partition,
        )

    def _topic_id(self, topic: str) -> Uuid:
        return self._context.topic_ids.get(topic, Uuid.ZERO)

    def _leader_and_isr_response(self, broker_id: int, response: Message) -> None:
        self._put_event(LeaderAndIsrResponseReceived(cast(LeaderAndIsrResponse, response), broker_id))

    def _update_metadata_response(self, broker_id: int, response: Message) -> None:
        self._put_event(UpdateMetadataResponseReceived(cast(UpdateMetadataResponse, response), broker_id))

    def _stop_replica_response(self, broker_id: int, deleted: set[TopicPartition], message: Message) -> None:
        """Only topic deletion needs the response."""
        response = cast(StopReplicaResponse, message)
        errors = {}
        for result in response.partition_errors:
            partition = TopicPartition(result.topic_name, result.partition_index)
            if partition in deleted and self._context.is_topic_deletion_in_progress(partition.topic):
                errors[partition] = result.error_code
        if errors:
            self._put_event(TopicDeletionStopReplicaResponseReceived(broker_id, response.error_code, errors))


def _described(broker: LiveBroker) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(endpoint.port, endpoint.host, endpoint.listener_name, int(endpoint.security_protocol))
        for endpoint in broker.registration.endpoints
    ]
    return UpdateMetadataBroker(id=broker.broker_id, endpoints=endpoints, rack=broker.registration.rack)
