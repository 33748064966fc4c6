"""Partition reassignment, requested by AlterPartitionReassignments or, by older tools, through /admin/reassign_partitions.

The assignment of a topic records a reassignment in progress, as adding and removing replicas, so that the next controller can resume it. It
has two phases. First all replicas, old and new, get LeaderAndIsr, and the new ones begin to follow. When every target replica is in the
ISR, the targets become the assignment: one of them leads, and the other replicas leave the ISR, are stopped and deleted. A new request
replaces the one before; cancelling moves a partition back to its original replicas.
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

# The target replicas of each partition, or None to cancel its reassignment.
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

    # --- starting and resuming

    def alter(self, targets: Targets, allow_replication_factor_change: bool = True) -> Steps[Outcomes]:
        """Returns an error, or None, by partition. Requests for the same partitions in /admin/reassign_partitions are dropped."""
        planned, outcomes = self._plan(targets, allow_replication_factor_change)
        yield from self._remove_from_node(lambda partition, _: partition in planned)
        outcomes |= yield from self._begin(planned)
        return {partition: outcomes[partition] for partition in targets}

    def process_node(self) -> Steps[set[TopicPartition]]:
        """Starts the reassignments in /admin/reassign_partitions and returns their partitions. Removes those that fail from the znode."""
        requested = yield from steps.read_reassignments()
        planned, outcomes = self._plan(requested or {}, allow_replication_factor_change=True)
        outcomes |= yield from self._begin(planned)
        failed = {partition: error for partition, error in outcomes.items() if error is not None}
        if failed:
            _log.warning("Failed reassignment through zk with the following errors: %s", failed)
            yield from self._remove_from_node(lambda partition, _: partition in failed)
        return {partition for partition, error in outcomes.items() if error is None}

    def resume_at_failover(self) -> Steps[None]:
        begun = yield from self.process_node()
        yield from self._resume(partition for partition in sorted(self._context.partitions_being_reassigned) if partition not in begun)

    def resume_on(self, broker_ids: Iterable[int]) -> Steps[None]:
        """Resumes the reassignments that have a target on brokers that just started."""
        started = set(broker_ids)
        moving = self._context.partitions_being_reassigned
        yield from self._resume(
            partition for partition in moving if started.intersection(self._context.assignment(partition).target_replicas)
        )

    def isr_changed(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Completes reassignments whose last target replica may have joined the ISR, and logs the progress of the others."""
        for partition in partitions:
            if partition in self._context.partitions_being_reassigned:
                assignment = self._context.assignment(partition)
                lagging = yield from self._lagging(partition, assignment)
                self._log_progress(partition, assignment, lagging)
                if not lagging:
                    yield from self._reassign_or_log(partition, assignment)

    def _log_progress(self, partition: TopicPartition, assignment: ReplicaAssignment, lagging: Sequence[int]) -> None:
        total = len(assignment.target_replicas)
        _log.info(
            "%d/%d replicas have caught up with the leader for partition %s being reassigned. %s",
            total - len(lagging),
            total,
            partition,
            f"Replica(s) {','.join(map(str, lagging))} still need to catch up" if lagging else "Resuming partition reassignment",
        )

    # --- validation

    def _plan(self, targets: Targets, allow_replication_factor_change: bool) -> tuple[dict[TopicPartition, ReplicaAssignment], Outcomes]:
        """The new assignments of the valid requests, and the errors of the others."""
        planned: dict[TopicPartition, ReplicaAssignment] = {}
        refused: Outcomes = {}
        for partition, replicas in targets.items():
            try:
                self._check(partition, replicas, allow_replication_factor_change)
                planned[partition] = self._planned(partition, replicas)
            except KafkaError as error:
                refused[partition] = error
        return planned, refused

    def _check(self, partition: TopicPartition, replicas: Sequence[int] | None, allow_replication_factor_change: bool) -> None:
        """Raises KafkaError with the message of Kafka 4.2."""
        topic = self._context.assignments.get(partition.topic)
        if topic is None or self._context.is_topic_queued_for_deletion(partition.topic):
            raise UnknownTopicOrPartition(f"Unable to find a topic named {partition.topic}.")
        if partition.partition not in topic:
            raise UnknownTopicOrPartition(f"Unable to find partition {partition.topic}:{partition.partition}.")
        if replicas is None:
            return
        self._check_replicas(partition, replicas)
        before = self._context.assignment(partition).target_replicas
        if not allow_replication_factor_change and len(before) != len(replicas):
            raise InvalidReplicationFactor(f"The replication factor is changed from {len(before)} to {len(replicas)}")

    def _check_replicas(self, partition: TopicPartition, replicas: Sequence[int]) -> None:
        if not replicas:
            raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
        present = self._context.assignment(partition).replicas
        before: int | None = None
        for broker_id in sorted(replicas):
            if broker_id == before:
                raise InvalidReplicaAssignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
            if broker_id not in self._context.live_brokers:
                raise InvalidReplicaAssignment(
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
                )
            if self._context.live_brokers[broker_id].registration.is_cordoned and broker_id not in present:
                raise InvalidReplicaAssignment(
                    f"The manual partition assignment includes broker {broker_id}, but all its log directories are cordoned."
                )
            before = broker_id

    def _planned(self, partition: TopicPartition, replicas: Sequence[int] | None) -> ReplicaAssignment:
        assignment = self._context.assignment(partition)
        if replicas is None and not assignment.is_being_reassigned:
            raise NoReassignmentInProgress  # without a message, as in Kafka
        return assignment.reassigned_to(assignment.origin_replicas if replicas is None else replicas)

    # --- the two phases

    def _begin(self, planned: Mapping[TopicPartition, ReplicaAssignment]) -> Steps[Outcomes]:
        outcomes: Outcomes = {}
        for partition, assignment in planned.items():
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
        yield from self._set_assignment(partition, assignment)
        if (yield from self._is_complete(partition, assignment)):
            yield from self._complete(partition, assignment)
            return
        yield from self._begin_epoch(partition, assignment.replicas)
        added = [PartitionAndReplica(partition, replica) for replica in assignment.adding_replicas]
        yield from self._replica_states.handle_state_changes(
            [replica for replica in added if self._context.replica_state(replica) is ReplicaStatus.NON_EXISTENT], ReplicaStatus.NEW
        )

    def _set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[None]:
        """Writes the assignment first. Then removes replicas of an earlier reassignment that are not in the new one."""
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
        return not (yield from self._lagging(partition, assignment))

    def _lagging(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[list[int]]:
        """The target replicas that are not in the ISR yet."""
        if not assignment.is_being_reassigned:
            return []
        state = (yield from steps.read_leadership([partition])).get(partition)
        in_sync = () if state is None else state.isr
        return [replica for replica in assignment.target_replicas if replica not in in_sync]

    def _complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Steps[None]:
        added = [PartitionAndReplica(partition, replica) for replica in assignment.adding_replicas]
        yield from self._replica_states.handle_state_changes(added, ReplicaStatus.ONLINE)
        self._context.set_assignment(partition, ReplicaAssignment(assignment.target_replicas))
        yield from self._move_leader(partition, assignment.target_replicas)
        yield from self._remove(partition, assignment.removing_replicas)
        yield from self._write_assignment(partition.topic)
        target = assignment.target_replicas
        yield from self._remove_from_node(lambda requested, replicas: requested == partition and tuple(replicas) == target)
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
        """Increments the leader epoch with the same leader, so that every replica accepts the new replica list."""
        state = yield from self._next_epoch(partition)
        self._context.leadership[partition] = state
        batch = self._new_batch()
        batch.add_leader_and_isr(recipients, partition, state, is_new=False)
        batch.send()

    def _next_epoch(self, partition: TopicPartition) -> Steps[LeaderAndIsr]:
        context = self._context
        while True:
            state = (yield from steps.read_states([partition]))[partition]
            if not isinstance(state, LeaderAndIsr):
                raise StateChangeFailed(f"The state of {partition} cannot be read: {state}")
            if state.controller_epoch > context.epoch:
                raise StateChangeFailed(f"A controller with epoch {state.controller_epoch} wrote the state of {partition}")
            updated = {partition: state.elected(state.leader, state.isr)}
            written, again = yield from steps.update_states(updated, context.epoch, context.epoch_version)
            if not again:
                outcome = written[partition]
                if isinstance(outcome, LeaderAndIsr):
                    return outcome
                raise outcome

    def _remove(self, partition: TopicPartition, replicas: Iterable[int]) -> Steps[None]:
        removed = [PartitionAndReplica(partition, replica) for replica in replicas]
        for status in _REMOVAL:
            yield from self._replica_states.handle_state_changes(removed, status)

    # --- the metadata store

    def _write_assignment(self, topic: str) -> Steps[None]:
        context = self._context
        assigned = TopicAssignment(dict(context.assignments[topic]), context.topic_ids.get(topic))
        yield from steps.set_topic(topic, assigned, context.epoch_version)

    def _remove_from_node(self, is_done: Callable[[TopicPartition, Sequence[int]], bool]) -> Steps[None]:
        """Removes finished partitions from /admin/reassign_partitions, so that its author sees the progress, and deletes it when empty."""
        requested = yield from steps.read_reassignments()
        if requested is None:
            return
        left = {partition: replicas for partition, replicas in requested.items() if not is_done(partition, replicas)}
        if left != requested or not left:
            yield from steps.write_reassignments(left, self._context.epoch_version)
            if not left:
                self._put_event(ReassignmentNodeChange())  # reads the znode again, which sets the watch for the next request
