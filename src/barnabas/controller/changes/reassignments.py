"""Partitions that move to other brokers: asked for by AlterPartitionReassignments, or the old way by /admin/reassign_partitions.

A reassignment in progress stands in the assignment of its topic, as replicas being added and removed, so that the next controller finds it.
It has two phases. First all replicas, old and new, hear of it, and the new ones begin to follow. When every target is in the ISR, the
targets become the assignment: one of them leads, the others leave the ISR, are stopped and deleted. What was asked for last counts; asked
for nothing, a partition goes back to where it came from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr, PartitionAndReplica, PartitionStatus, ReplicaStatus
from barnabas.controller.elections import ElectionStrategy
from barnabas.controller.events import ControllerEvent, ReassignmentNodeChange
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.states.topic_deletion import TopicDeletionManager
from barnabas.controller.steps import ControllerMoved, StateChangeFailed, Steps
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment
from barnabas.topic_partition import TopicPartition

# For each partition: the brokers it is to be on, or None to take a reassignment back.
Targets = Mapping[TopicPartition, Sequence[int] | None]
Outcomes = dict[TopicPartition, "KafkaError | None"]

_REMOVAL: Final = (
    ReplicaStatus.OFFLINE,
    ReplicaStatus.DELETION_STARTED,
    ReplicaStatus.DELETION_SUCCESSFUL,
    ReplicaStatus.NON_EXISTENT,
)

_log = logging.getLogger(__name__)


class Reassignments:
    def __init__(
        self,
        context: ControllerContext,
        replica_states: ReplicaStateMachine,
        partition_states: PartitionStateMachine,
        deletion: TopicDeletionManager,
        new_batch: Callable[[], RequestBatch],
        put_event: Callable[[ControllerEvent], None],
    ) -> None:
        self._context = context
        self._replica_states = replica_states
        self._partition_states = partition_states
        self._deletion = deletion
        self._new_batch = new_batch
        self._put_event = put_event

    # --- what begins or resumes one

    def alter(self, targets: Targets, allow_replication_factor_change: bool = True) -> Steps[Outcomes]:
        """Why not, by partition, or None. What the old node says of the same partitions is void."""
        wanted, outcomes = self._sort_out(targets, allow_replication_factor_change)
        yield from self._remove_from_node(lambda partition, _: partition in wanted)
        outcomes |= yield from self._begin(wanted)
        return {partition: outcomes[partition] for partition in targets}

    def process_node(self) -> Steps[set[TopicPartition]]:
        """/admin/reassign_partitions was written. Gives what was begun; what cannot be is removed from it, for nobody else will."""
        asked = yield from steps.read_reassignments()
        wanted, outcomes = self._sort_out(asked or {}, allow_replication_factor_change=True)
        outcomes |= yield from self._begin(wanted)
        failed = {partition: error for partition, error in outcomes.items() if error is not None}
        if failed:
            _log.warning("Failed reassignment through zk with the following errors: %s", failed)
            yield from self._remove_from_node(lambda partition, _: partition in failed)
        return {partition for partition, error in outcomes.items() if error is None}

    def resume_at_failover(self) -> Steps[None]:
        begun = yield from self.process_node()
        yield from self._resume(partition for partition in sorted(self._context.partitions_being_reassigned) if partition not in begun)

    def resume_on(self, broker_ids: Iterable[int]) -> Steps[None]:
        """Brokers that are back may be the ones a reassignment waits for."""
        started = set(broker_ids)
        moving = self._context.partitions_being_reassigned
        yield from self._resume(each for each in moving if started.intersection(self._context.assignment(each).target_replicas))

    def isr_changed(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """In-sync replicas grew, perhaps by the last one that was waited for."""
        for partition in partitions:
            if partition in self._context.partitions_being_reassigned:
                assignment = self._context.assignment(partition)
                if (yield from self._is_complete(partition, assignment)):
                    yield from self._reassign_or_log(partition, assignment)

    # --- what is asked for

    def _sort_out(
        self, targets: Targets, allow_replication_factor_change: bool
    ) -> tuple[dict[TopicPartition, ReplicaAssignment], Outcomes]:
        """What can be done, and why the rest cannot."""
        wanted: dict[TopicPartition, ReplicaAssignment] = {}
        refused: Outcomes = {}
        for partition, replicas in targets.items():
            try:
                self._check(partition, replicas, allow_replication_factor_change)
                wanted[partition] = self._planned(partition, replicas)
            except KafkaError as error:
                refused[partition] = error
        return wanted, refused

    def _check(self, partition: TopicPartition, replicas: Sequence[int] | None, allow_replication_factor_change: bool) -> None:
        """Raises KafkaError, with the words of Kafka 4.2."""
        topic = self._context.assignments.get(partition.topic)
        if topic is None or self._context.is_topic_queued_for_deletion(partition.topic):
            raise UnknownTopicOrPartition(f"Unable to find a topic named {partition.topic}.")
        if partition.partition not in topic:
            raise UnknownTopicOrPartition(f"Unable to find partition {partition.topic}:{partition.partition}.")
        if replicas is None:
            return
        self._check_replicas(replicas)
        before = self._context.assignment(partition).target_replicas
        if not allow_replication_factor_change and len(before) != len(replicas):
            raise InvalidReplicationFactor(f"The replication factor is changed from {len(before)} to {len(replicas)}")

    def _check_replicas(self, replicas: Sequence[int]) -> None:
        if not replicas:
            raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
        before: int | None = None
        for broker_id in sorted(replicas):
            if broker_id == before:
                raise InvalidReplicaAssignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
            if broker_id not in self._context.live_brokers:
                raise InvalidReplicaAssignment(
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
                )
            before = broker_id

    def _planned(self, partition: TopicPartition, replicas: Sequence[int] | None) -> ReplicaAssignment:
        assignment = self._context.assignment(partition)
        if replicas is None and not assignment.is_being_reassigned:
            raise NoReassignmentInProgress  # without words, as from Kafka
        return assignment.reassigned_to(assignment.origin_replicas if replicas is None else replicas)

    # --- the two phases

    def _begin(self, wanted: Mapping[TopicPartition, ReplicaAssignment]) -> Steps[Outcomes]:
        outcomes: Outcomes = {}
        for partition, assignment in wanted.items():
            succeeded = yield from self._reassign_or_log(partition, assignment)
            outcomes[partition] = None if succeeded else KafkaError()
        return outcomes

    def _resume(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        for partition in list(partitions):
            yield from self._reassign_or_log(partition, self._context.assignment(partition))

    def _reassign_or_log(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[bool]:
        try:
            yield from self._reassign(partition, assignment)
        except (ControllerMoved, SessionExpired):
            raise
        except Exception:
            _log.exception("Error while moving partition %s to %s", partition, assignment)
            return False
        return True

    def _reassign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[None]:
        self._deletion.mark_ineligible([partition.topic], "topic reassignment in progress")
        yield from self._adopt(partition, assignment)
        if (yield from self._is_complete(partition, assignment)):
            yield from self._complete(partition, assignment)
            return
        yield from self._begin_epoch(partition, assignment.replicas)
        added = [PartitionAndReplica(partition, replica) for replica in assignment.adding_replicas]
        yield from self._replica_states.handle_state_changes(
            [each for each in added if self._context.replica_state(each) is ReplicaStatus.NON_EXISTENT], ReplicaStatus.NEW
        )

    def _adopt(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[None]:
        """The tree knows it first. Replicas of a reassignment before this one that are not wanted any more go at once."""
        before = self._context.assignment(partition)
        if before != assignment:
            self._context.set_assignment(partition, assignment)
            try:
                yield from self._write_assignment(partition.topic)
            except BaseException:
                self._context.set_assignment(partition, before)
                raise
            yield from self._remove(partition, [replica for replica in before.replicas if replica not in assignment.replicas])
        self._context.partitions_being_reassigned.add(partition)

    def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[bool]:
        if not assignment.is_being_reassigned:
            return True
        state = (yield from steps.read_leadership([partition])).get(partition)
        return state is not None and set(assignment.target_replicas) <= set(state.isr)

    def _complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[None]:
        added = [PartitionAndReplica(partition, replica) for replica in assignment.adding_replicas]
        yield from self._replica_states.handle_state_changes(added, ReplicaStatus.ONLINE)
        self._context.set_assignment(partition, ReplicaAssignment(assignment.target_replicas))
        yield from self._move_leader(partition, assignment.target_replicas)
        yield from self._remove(partition, assignment.removing_replicas)
        yield from self._write_assignment(partition.topic)
        target = assignment.target_replicas
        yield from self._remove_from_node(lambda each, replicas: each == partition and tuple(replicas) == target)
        self._context.partitions_being_reassigned.discard(partition)
        batch = self._new_batch()
        batch.add_update_metadata(self._context.live_brokers, [partition])
        batch.send()
        yield from self._deletion.resume_deletion_for([partition.topic])

    def _move_leader(self, partition: TopicPartition, target: Sequence[int]) -> Steps[None]:
        state = self._context.leadership.get(partition)
        if state is not None and state.leader in target and self._context.is_replica_online(state.leader, partition):
            yield from self._begin_epoch(partition, target)
            return
        yield from self._partition_states.handle_state_changes([partition], PartitionStatus.ONLINE, ElectionStrategy.REASSIGN)

    def _begin_epoch(self, partition: TopicPartition, recipients: Sequence[int]) -> Steps[None]:
        """The same leader with a greater epoch, so that every replica takes notice of its new companions."""
        state = yield from self._next_epoch(partition)
        self._context.leadership[partition] = state
        batch = self._new_batch()
        batch.add_leader_and_isr(recipients, partition, state, is_new=False)
        batch.send()

    def _next_epoch(self, partition: TopicPartition) -> Steps[LeaderAndIsr]:
        context = self._context
        while True:
            found = (yield from steps.read_states([partition]))[partition]
            if not isinstance(found, LeaderAndIsr):
                raise StateChangeFailed(f"The state of {partition} cannot be read: {found}")
            if found.controller_epoch > context.epoch:
                raise StateChangeFailed(f"A controller with epoch {found.controller_epoch} wrote the state of {partition}")
            wanted = {partition: found.elected(found.leader, found.isr)}
            written, again = yield from steps.update_states(wanted, context.epoch, context.epoch_version)
            if not again:
                outcome = written[partition]
                if isinstance(outcome, LeaderAndIsr):
                    return outcome
                raise outcome

    def _remove(self, partition: TopicPartition, replicas: Iterable[int]) -> Steps[None]:
        removed = [PartitionAndReplica(partition, replica) for replica in replicas]
        for status in _REMOVAL:
            yield from self._replica_states.handle_state_changes(removed, status)

    # --- the tree

    def _write_assignment(self, topic: str) -> Steps[None]:
        context = self._context
        assigned = TopicAssignment(dict(context.assignments[topic]), context.topic_ids.get(topic))
        yield from steps.set_topic(topic, assigned, context.epoch_version)

    def _remove_from_node(self, is_done: Callable[[TopicPartition, Sequence[int]], bool]) -> Steps[None]:
        """Who wrote /admin/reassign_partitions sees by its partitions how far it is; with the last of them the node goes."""
        asked = yield from steps.read_reassignments()
        if asked is None:
            return
        left = {partition: replicas for partition, replicas in asked.items() if not is_done(partition, replicas)}
        if left != asked or not left:
            yield from steps.write_reassignments(left, self._context.epoch_version)
            if not left:
                self._put_event(ReassignmentNodeChange())  # reads it again, and so hears of the next one
