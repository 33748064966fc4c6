"""Topics that come, grow and go, and states that leaders changed by themselves: what the controller then does, in Kafka's order.

These are steps, made of those of the state machines; they read the tree and write it only through them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from barnabas.controller import steps
from barnabas.controller.changes.broker_changes import BrokerChanges
from barnabas.controller.changes.reassignments import Reassignments
from barnabas.controller.context import ControllerContext, PartitionAndReplica, PartitionStatus, ReplicaStatus
from barnabas.controller.events import TopicDeletionStopReplicaResponseReceived
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.topic_deletion import TopicDeletionManager
from barnabas.controller.steps import Steps
from barnabas.controller.watches import ControllerWatches
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import TopicAssignment
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)


class TopicChanges:
    def __init__(
        self,
        context: ControllerContext,
        random: Random,
        watches: ControllerWatches,
        replica_states: ReplicaStateMachine,
        partition_states: PartitionStateMachine,
        deletion: TopicDeletionManager,
        brokers: BrokerChanges,
        reassignments: Reassignments,
    ) -> None:
        self._context = context
        self._random = random
        self._watches = watches
        self._replica_states = replica_states
        self._partition_states = partition_states
        self._deletion = deletion
        self._brokers = brokers
        self._reassignments = reassignments

    def learn_topics(self, names: Sequence[str]) -> Steps[list[TopicPartition]]:
        """Puts topics with their ids and assignments into the context, and watches them. Gives their partitions."""
        self._watches.watch_topics(names)
        found = yield from self._with_ids((yield from steps.read_topics(names)))
        partitions = []
        for name, topic in found.items():
            try:
                assert topic.topic_id is not None
                self._context.add_topic_id(name, topic.topic_id)
            except ValueError as fault:
                _log.error("Ignoring topic %s, which nobody can read or write until it is repaired: %s", name, fault)
                continue
            for number, assignment in topic.partitions.items():
                partition = TopicPartition(name, number)
                self._context.set_assignment(partition, assignment)
                partitions.append(partition)
                if assignment.is_being_reassigned:
                    self._context.partitions_being_reassigned.add(partition)
        return partitions

    def _with_ids(self, found: Mapping[str, TopicAssignment]) -> Steps[dict[str, TopicAssignment]]:
        """Topics made before there were ids, or by tools that do not know them, get theirs now."""
        named = {
            name: replace(topic, topic_id=Uuid.random(self._random), version=3) for name, topic in found.items() if topic.topic_id is None
        }
        if named:
            yield from steps.set_topics(named, self._context.epoch_version)
        return {**found, **named}

    def process_topic_change(self) -> Steps[None]:
        names = yield from steps.read_children(paths.TOPICS)
        known = self._context.all_topics
        new = [name for name in names if name not in known]
        gone = known.difference(names)
        self._context.all_topics = set(names)
        self._watches.forget_topics(gone)
        for name in gone:
            self._context.remove_topic(name)
        if not new:
            return
        partitions = yield from self.learn_topics(new)
        _log.info("New topics: %d, deleted topics: %d, new partitions: %d", len(new), len(gone), len(partitions))
        yield from self._on_new_partitions(partitions)

    def process_partition_modifications(self, topic: str) -> Steps[None]:
        if topic in self._context.all_topics and topic not in self._context.topic_ids:  # it was ignored, and may be repaired now
            yield from self._on_new_partitions((yield from self.learn_topics([topic])))
            return
        found = (yield from steps.read_topics([topic])).get(topic)
        if found is None:
            return
        added = {number: each for number, each in found.partitions.items() if not self._context.replicas(TopicPartition(topic, number))}
        if not added:
            return
        if self._context.is_topic_queued_for_deletion(topic):
            _log.warning("Skipping adding partitions %s for topic %s since it is currently being deleted", sorted(added), topic)
            yield from self._restore(topic, found)
            return
        for number, assignment in added.items():
            self._context.set_assignment(TopicPartition(topic, number), assignment)
        yield from self._on_new_partitions([TopicPartition(topic, number) for number in added])

    def _restore(self, topic: str, found: TopicAssignment) -> Steps[None]:
        """Takes back what was added to a topic that is on its way out, so that a deletion never meets a partition it does not know."""
        existing = set((yield from steps.read_children(paths.topic_partitions(topic))))
        partitions = {
            number: self._context.assignment(TopicPartition(topic, number)) for number in found.partitions if str(number) in existing
        }
        restored = TopicAssignment(partitions, self._context.topic_ids.get(topic))
        yield from steps.set_topic(topic, restored, self._context.epoch_version)

    def _on_new_partitions(self, partitions: Sequence[TopicPartition]) -> Steps[None]:
        replicas = self._context.replicas_of_partitions(partitions)
        yield from self._partition_states.handle_state_changes(partitions, PartitionStatus.NEW)
        yield from self._replica_states.handle_state_changes(replicas, ReplicaStatus.NEW)
        yield from self._partition_states.handle_state_changes(partitions, PartitionStatus.ONLINE)
        yield from self._replica_states.handle_state_changes(replicas, ReplicaStatus.ONLINE)

    def process_topic_deletion(self) -> Steps[None]:
        marked = yield from steps.read_children(paths.DELETE_TOPICS)
        unknown = [topic for topic in marked if topic not in self._context.all_topics]
        if unknown:
            _log.warning("Ignoring request to delete non-existing topics %s", ",".join(unknown))
            yield from self._deletion.remove_marks(unknown)
        topics = [topic for topic in marked if topic in self._context.all_topics]
        if not topics:
            return
        if not self._deletion.is_enabled:
            _log.info("Removing the marks of %s since delete topic is disabled", ",".join(topics))
            yield from self._deletion.remove_marks(topics)
            return
        reassigned = {partition.topic for partition in self._context.partitions_being_reassigned}
        yield from self._deletion.enqueue(topics, halted=reassigned.intersection(topics))

    def process_stop_replica_response(self, event: TopicDeletionStopReplicaResponseReceived) -> Steps[None]:
        errors = event.partition_errors
        refused = event.request_error != ErrorCode.NONE
        failed = [partition for partition, error in errors.items() if refused or error != ErrorCode.NONE]
        deleted = [partition for partition, error in errors.items() if not refused and error == ErrorCode.NONE]
        yield from self._deletion.fail_replica_deletion(PartitionAndReplica(partition, event.broker_id) for partition in failed)
        if deleted:
            yield from self._deletion.complete_replica_deletion(PartitionAndReplica(partition, event.broker_id) for partition in deleted)

    def process_isr_changes(self) -> Steps[None]:
        names = yield from steps.read_children(paths.ISR_CHANGE_NOTIFICATION)
        changed = yield from steps.read_isr_changes(names)
        if changed:
            yield from self.refresh_leadership(changed)
            yield from self._reassignments.isr_changed(changed)
            self._brokers.send_update_metadata(self._context.live_brokers, changed)
        yield from steps.delete_children(paths.ISR_CHANGE_NOTIFICATION, names, self._context.epoch_version)

    def refresh_leadership(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        self._context.leadership |= yield from steps.read_leadership(list(partitions))

    def process_deletions_at_failover(self) -> Steps[None]:
        """Takes up what the controller before us was asked for."""
        context = self._context
        marked = yield from steps.read_children(paths.DELETE_TOPICS)
        reassigned = {partition.topic for partition in context.partitions_being_reassigned}
        halted = [topic for topic in marked if topic in reassigned or self._has_offline_replica(topic)]
        yield from self._deletion.initialize(marked, halted)

    def _has_offline_replica(self, topic: str) -> bool:
        replicas = self._context.replicas_of_topic(topic)
        return any(not self._context.is_replica_online(each.replica, each.partition) for each in replicas)
