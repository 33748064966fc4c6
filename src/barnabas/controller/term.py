"""One term of this broker as the active controller: its context, its state machines, and the dispatch of events to them.

A term begins with a won election and the failover, which reads everything from the metadata store. It ends with the resignation; nothing of
it is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from barnabas.controller import steps
from barnabas.controller.changes.alter_partitions import AlterPartitions
from barnabas.controller.changes.broker_changes import BrokerChanges
from barnabas.controller.changes.controlled_shutdown import ControlledShutdowns
from barnabas.controller.changes.election_requests import ElectionRequests
from barnabas.controller.changes.reassignments import Reassignments
from barnabas.controller.changes.returned_brokers import leave_out_returned
from barnabas.controller.changes.topic_changes import TopicChanges
from barnabas.controller.channel import ControllerChannel
from barnabas.controller.config import ControllerConfig
from barnabas.controller.context import ControllerContext
from barnabas.controller.events import (
    AlterPartitionReceived,
    AlterReassignments,
    AutoPreferredReplicaLeaderElection,
    BrokerChange,
    BrokerModifications,
    ControlledShutdown,
    ControllerEvent,
    ElectLeaders,
    IsrChangeNotification,
    LeaderAndIsrResponseReceived,
    LogDirEventNotification,
    PartitionModifications,
    PreferredElectionNodeChange,
    ReassignmentNodeChange,
    TopicChange,
    TopicDeletion,
    TopicDeletionStopReplicaResponseReceived,
    UncleanLeaderElectionEnable,
    UpdateMetadataResponseReceived,
)
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.states.topic_deletion import TopicDeletionManager
from barnabas.controller.steps import Steps
from barnabas.controller.watches import ControllerWatches
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class Term:
    """Uses `tree` only to register watches. Reads and writes go through the steps."""

    def __init__(
        self,
        broker_id: int,
        context: ControllerContext,
        config: ControllerConfig,
        tree: TreeClient,
        channel: ControllerChannel,
        put_event: Callable[[ControllerEvent], object],
        random: Random,
    ) -> None:
        self.context = context
        self._broker_id = broker_id
        self._config = config
        self._channel = channel
        self._put_event = put_event
        self._ended = False
        self._watches = ControllerWatches(tree, self._put)
        self._replica_states = ReplicaStateMachine(broker_id, context, self._new_batch)
        self._partition_states = PartitionStateMachine(broker_id, context, config, self._new_batch)
        self._elections = ElectionRequests(context, self._partition_states)
        self._deletion = TopicDeletionManager(
            broker_id, context, config, self._replica_states, self._partition_states, self._new_batch, self._watches.forget_topics
        )
        self._reassignments = Reassignments(
            context, self._replica_states, self._partition_states, self._deletion, self._new_batch, self._put
        )
        self._brokers = BrokerChanges(
            context,
            channel,
            self._watches,
            self._replica_states,
            self._partition_states,
            self._deletion,
            self._reassignments,
            self._new_batch,
        )
        self._alterations = AlterPartitions(context, self._send_metadata)
        self._shutdowns = ControlledShutdowns(context, self._partition_states, self._replica_states, self._new_batch)
        self._topics = TopicChanges(
            context,
            random,
            self._watches,
            self._replica_states,
            self._partition_states,
            self._deletion,
            self._brokers,
            self._reassignments,
        )

    def fail_over(self) -> Steps[None]:
        """In Kafka's order: sets watches before it reads, reads everything before it sends, and sends the live brokers before the
        leaders."""
        yield from steps.enable_feature_versioning()
        self._watches.watch_cluster()
        for parent in (paths.LOG_DIR_EVENT_NOTIFICATION, paths.ISR_CHANGE_NOTIFICATION):
            # Reading everything covers these notifications.
            yield from steps.delete_children(parent, (yield from steps.read_children(parent)), self.context.epoch_version)
        yield from self._load_context()
        yield from leave_out_returned(self.context)
        yield from self._topics.process_deletions_at_failover()
        self._brokers.send_update_metadata(self.context.live_brokers)
        yield from self._replica_states.startup()
        yield from self._partition_states.startup()
        _log.info("Ready to serve as the new controller with epoch %d", self.context.epoch)
        yield from self._reassignments.resume_at_failover()
        yield from self._deletion.resume_deletions()
        yield from self._process_preferred_elections()

    def _load_context(self) -> Steps[None]:
        context = self.context
        context.set_live_brokers((yield from steps.read_brokers()))
        names = yield from steps.read_children(paths.TOPICS)
        context.all_topics = set(names)
        partitions = yield from self._topics.learn_topics(names)
        yield from self._brokers.watch_registrations(list(context.live_brokers))
        yield from self._topics.refresh_leadership(partitions)
        for broker in context.live_brokers.values():
            self._channel.add_broker(broker.broker_id, broker.registration)

    def end(self) -> None:
        """Ends the term: later responses of brokers and changes in the metadata store are ignored."""
        self._ended = True
        self._watches.forget_cluster()
        self._channel.shutdown()

    def process(self, event: ControllerEvent) -> Steps[Any]:
        """Processes an event. Returns the result of a `ControllerEventWithResult`, and None for any other event."""
        match event:
            case BrokerChange():
                yield from self._brokers.process_broker_change()
            case BrokerModifications(broker_id):
                yield from self._brokers.process_broker_modification(broker_id)
            case TopicChange():
                yield from self._topics.process_topic_change()
            case PartitionModifications(topic):
                yield from self._topics.process_partition_modifications(topic)
            case TopicDeletion():
                yield from self._topics.process_topic_deletion()
            case IsrChangeNotification():
                yield from self._topics.process_isr_changes()
            case LogDirEventNotification():
                yield from self._brokers.process_log_dir_events()
            case LeaderAndIsrResponseReceived():
                yield from self._brokers.process_leader_and_isr_response(event)
            case TopicDeletionStopReplicaResponseReceived():
                yield from self._topics.process_stop_replica_response(event)
            case UpdateMetadataResponseReceived(response, broker_id):
                if response.error_code != ErrorCode.NONE:
                    _log.error("Received error %d in UpdateMetadata response from broker %d", response.error_code, broker_id)
            case UncleanLeaderElectionEnable(only_topic):
                yield from self._partition_states.trigger_online(only_topic)
            case ElectLeaders(partitions, strategy):
                return (yield from self._elections.elect(partitions, strategy))
            case AlterReassignments(targets, allow_change):
                return (yield from self._reassignments.alter(targets, allow_change))
            case ReassignmentNodeChange():
                yield from self._reassignments.process_node()
            case PreferredElectionNodeChange():
                yield from self._process_preferred_elections()
            case AlterPartitionReceived(request, version):
                return (yield from self._alterations.alter(request, version))
            case ControlledShutdown(broker_id, broker_epoch):
                return (yield from self._shutdowns.shut_down(broker_id, broker_epoch))
            case AutoPreferredReplicaLeaderElection():
                yield from self._elections.rebalance(self._config.leader_imbalance_per_broker_percentage)
            case _:
                raise ValueError(f"{event} is not for a controller's term")
        return None

    def complete(self, event: ControllerEvent, result: object) -> Steps[None]:
        """Runs what follows from a processed event. A failure here does not change the result of the event."""
        if isinstance(event, AlterPartitionReceived) and isinstance(result, AlterPartitionResponse):
            yield from self._reassignments.isr_changed(self._accepted(result))

    def _process_preferred_elections(self) -> Steps[None]:
        if (yield from self._elections.process_node()):
            self._put(PreferredElectionNodeChange())  # reads the znode again, which sets the watch for the next request

    def _accepted(self, response: AlterPartitionResponse) -> list[TopicPartition]:
        """The partitions whose ISR was accepted."""
        return [
            TopicPartition(topic.topic_name or self.context.topic_names.get(topic.topic_id, ""), partition.partition_index)
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE
        ]

    def _send_metadata(self, partitions: Iterable[TopicPartition]) -> None:
        self._brokers.send_update_metadata(self.context.live_brokers, partitions)

    def _new_batch(self) -> RequestBatch:
        return RequestBatch(self._broker_id, self.context, self._channel, self._put, self._config.inter_broker_listener_name)

    def _put(self, event: ControllerEvent) -> None:
        if not self._ended:
            self._put_event(event)
