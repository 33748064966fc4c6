"""The state machine of replicas: the valid transitions, and the work of each.

    NonExistent ──▶ New ──▶ Online ◀──▶ Offline ──▶ DeletionStarted ──▶ DeletionSuccessful ──▶ NonExistent
                             ▲            ▲│               │
                             └────────────┴┴▶ DeletionIneligible ◀┘

Online: the broker is live and has the replica. Offline: the broker is down or got StopReplica, and the replica is removed from the ISR in
the metadata store. DeletionStarted: the broker got StopReplica with deletion; its response makes the replica DeletionSuccessful or
DeletionIneligible. An ineligible replica waits until the deletion is tried again. A replica whose transition fails is logged and keeps its
state; the others are not affected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from barnabas import loggers
from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr, PartitionAndReplica, ReplicaStatus
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.steps import ControllerMoved, Steps
from barnabas.loggers import TRACE, Prefixed
from barnabas.metadata.errors import NoNode, SessionExpired
from barnabas.metadata.znodes.topics import NO_LEADER, ReplicaAssignment
from barnabas.topic_partition import TopicPartition

_LIVING: Final = frozenset({ReplicaStatus.NEW, ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE})

VALID_PREVIOUS_STATES: Final[Mapping[ReplicaStatus, frozenset[ReplicaStatus]]] = {
    ReplicaStatus.NEW: frozenset({ReplicaStatus.NON_EXISTENT}),
    ReplicaStatus.ONLINE: _LIVING,
    ReplicaStatus.OFFLINE: _LIVING,
    ReplicaStatus.DELETION_STARTED: frozenset({ReplicaStatus.OFFLINE}),
    ReplicaStatus.DELETION_SUCCESSFUL: frozenset({ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.DELETION_INELIGIBLE: frozenset({ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.NON_EXISTENT: frozenset({ReplicaStatus.DELETION_SUCCESSFUL}),
}

_log = logging.getLogger(__name__)
_state_changes = logging.getLogger(loggers.STATE_CHANGE)


class ReplicaStateMachine:
    def __init__(self, controller_id: int, context: ControllerContext, new_batch: Callable[[], RequestBatch]) -> None:
        self._controller_id = controller_id
        self._log = Prefixed(_log, f"[ReplicaStateMachine controllerId={controller_id}] ")
        self._context = context
        self._new_batch = new_batch

    def startup(self) -> Steps[None]:
        """At a failover: sends every live broker the states of its replicas, and removes the replicas of dead brokers from their ISRs."""
        online, offline = [], []
        for replica in self._context.replicas_of_partitions(self._context.all_partitions()):
            if self._context.is_replica_online(replica.replica, replica.partition):
                self._context.replica_states[replica] = ReplicaStatus.ONLINE
                online.append(replica)
            else:
                # A dead broker does not respond, so the deletion of its topics must wait for it.
                self._context.replica_states[replica] = ReplicaStatus.DELETION_INELIGIBLE
                offline.append(replica)
        self._log.info("Triggering online replica state changes")
        yield from self.handle_state_changes(online, ReplicaStatus.ONLINE)
        self._log.info("Triggering offline replica state changes")
        yield from self.handle_state_changes(offline, ReplicaStatus.OFFLINE)

    def handle_state_changes(self, replicas: Sequence[PartitionAndReplica], target: ReplicaStatus) -> Steps[None]:
        if not replicas:
            return
        try:
            batch = self._new_batch()
            valid = yield from self._valid(replicas, target)
            if target is ReplicaStatus.OFFLINE:
                yield from self._to_offline(valid, batch)
            else:
                yield from steps.in_turns(valid, lambda replica: self._change(replica, target, batch))
            batch.send()
        except ControllerMoved:
            self._log.error("Controller moved to another broker when moving some replicas to %s state", target)
            raise
        except SessionExpired:
            raise
        except Exception:
            self._log.exception("Error while moving some replicas to %s state", target)

    def _valid(self, replicas: Sequence[PartitionAndReplica], target: ReplicaStatus) -> Steps[list[PartitionAndReplica]]:
        allowed = VALID_PREVIOUS_STATES[target]
        valid: list[PartitionAndReplica] = []

        def check(replica: PartitionAndReplica) -> None:
            if self._context.replica_state(replica) in allowed:
                valid.append(replica)
            else:
                self._log_failure(replica, target, self._invalid_transition(replica, target))

        yield from steps.in_turns(replicas, check)
        return valid

    def _change(self, replica: PartitionAndReplica, target: ReplicaStatus, batch: RequestBatch) -> None:
        if target is ReplicaStatus.NEW:
            if not self._announce_new(replica, batch):
                return
        elif target is ReplicaStatus.ONLINE:
            self._announce_online(replica, batch)
        elif target is ReplicaStatus.DELETION_STARTED:
            batch.add_stop_replica(replica.replica, replica.partition, delete=True)
        elif target is ReplicaStatus.NON_EXISTENT:
            self._log_transition(replica, target)
            self._forget(replica)
            return
        self._put_state(replica, target)

    def _put_state(self, replica: PartitionAndReplica, target: ReplicaStatus) -> None:
        self._log_transition(replica, target)
        self._context.replica_states[replica] = target

    def _log_transition(self, replica: PartitionAndReplica, target: ReplicaStatus) -> None:
        if _state_changes.isEnabledFor(TRACE):
            _state_changes.log(
                TRACE,
                "[Controller id=%d epoch=%d] Changed state of replica %d for partition %s from %s to %s",
                self._controller_id,
                self._context.epoch,
                replica.replica,
                replica.partition,
                self._context.replica_state(replica),
                target,
            )

    def _announce_new(self, replica: PartitionAndReplica, batch: RequestBatch) -> bool:
        """Sends LeaderAndIsr for a replica added to an existing partition. A new partition is sent when it gets its leader."""
        state = self._context.leadership.get(replica.partition)
        if state is None:
            return True
        if state.leader == replica.replica:
            reason = (
                f"Replica {replica.replica} for partition {replica.partition} cannot be moved to NewReplica state as it is being requested "
                "to become leader"
            )
            self._log_failure(replica, ReplicaStatus.OFFLINE, reason)  # Kafka names this target
            return False
        batch.add_leader_and_isr((replica.replica,), replica.partition, state, is_new=True)
        return True

    def _announce_online(self, replica: PartitionAndReplica, batch: RequestBatch) -> None:
        if self._context.replica_state(replica) is ReplicaStatus.NEW:
            assignment = self._context.assignment(replica.partition)
            if replica.replica not in assignment.replicas:
                self._log.error("Adding replica (%d) that is not part of the assignment %s", replica.replica, assignment)
                self._context.set_assignment(replica.partition, replace(assignment, replicas=(*assignment.replicas, replica.replica)))
            return
        state = self._context.leadership.get(replica.partition)
        if state is not None:
            batch.add_leader_and_isr((replica.replica,), replica.partition, state, is_new=False)

    def _forget(self, replica: PartitionAndReplica) -> None:
        assignment = self._context.assignment(replica.partition)
        kept = ReplicaAssignment(
            tuple(broker_id for broker_id in assignment.replicas if broker_id != replica.replica),
            tuple(broker_id for broker_id in assignment.adding_replicas if broker_id != replica.replica),
            tuple(broker_id for broker_id in assignment.removing_replicas if broker_id != replica.replica),
        )
        self._context.set_assignment(replica.partition, kept)
        self._context.replica_states.pop(replica, None)

    def _to_offline(self, replicas: Sequence[PartitionAndReplica], batch: RequestBatch) -> Steps[None]:
        """Goes broker by broker, so that two replicas of one partition leave its ISR in separate writes."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in replicas:
            by_broker.setdefault(replica.replica, []).append(replica.partition)
        for broker_id, partitions in by_broker.items():
            yield from self._take_offline(broker_id, partitions, batch)

    def _take_offline(self, broker_id: int, partitions: Sequence[TopicPartition], batch: RequestBatch) -> Steps[None]:
        context = self._context
        yield from steps.in_turns(partitions, lambda partition: batch.add_stop_replica(broker_id, partition, delete=False))
        led = [partition for partition in partitions if partition in context.leadership]
        never_led = [partition for partition in partitions if partition not in context.leadership]
        while led:
            shrunk, led = yield from self._remove_from_isr(broker_id, led)
            yield from steps.in_turns(shrunk.items(), lambda item: self._set_offline(broker_id, *item, batch))
        batch.add_update_metadata(context.live_brokers if never_led else (), never_led)
        for partition in never_led:
            self._put_state(PartitionAndReplica(partition, broker_id), ReplicaStatus.OFFLINE)

    def _set_offline(self, broker_id: int, partition: TopicPartition, state: LeaderAndIsr, batch: RequestBatch) -> None:
        context = self._context
        context.leadership[partition] = state
        if _state_changes.isEnabledFor(logging.INFO):
            _state_changes.info(
                "[Controller id=%d epoch=%d] Partition %s state changed to %s after removing replica %d from the ISR as part of transition "
                "to %s",
                self._controller_id,
                context.epoch,
                partition,
                state.with_controller_epoch(),
                broker_id,
                ReplicaStatus.OFFLINE,
            )
        if not context.is_topic_queued_for_deletion(partition.topic):
            others = [replica for replica in context.replicas(partition) if replica != broker_id]
            batch.add_leader_and_isr(others, partition, state, is_new=False)
        self._put_state(PartitionAndReplica(partition, broker_id), ReplicaStatus.OFFLINE)

    def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> Steps[tuple[dict[TopicPartition, LeaderAndIsr], list[TopicPartition]]]:
        """Returns the states without the replica, also where it was not in the ISR, and the partitions whose znode changed in the meantime,
        which must be tried again."""
        context = self._context
        done: dict[TopicPartition, LeaderAndIsr] = {}
        to_write: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, state in (yield from steps.read_states(partitions)).items():
            if not isinstance(state, LeaderAndIsr):
                if not isinstance(state, NoNode) or not context.is_topic_queued_for_deletion(partition.topic):
                    self._log_failure(PartitionAndReplica(partition, broker_id), ReplicaStatus.OFFLINE, state)
            elif state.controller_epoch > context.epoch:
                reason = f"a controller with epoch {state.controller_epoch} wrote its state"
                self._log_failure(PartitionAndReplica(partition, broker_id), ReplicaStatus.OFFLINE, reason)
            elif broker_id in state.isr:
                to_write[partition] = _without(broker_id, state)
            else:
                done[partition] = replace(state, controller_epoch=context.epoch)
        written, again = yield from steps.update_states(to_write, context.epoch, context.epoch_version)
        for partition, outcome in written.items():
            if isinstance(outcome, LeaderAndIsr):
                done[partition] = outcome
            else:
                self._log_failure(PartitionAndReplica(partition, broker_id), ReplicaStatus.OFFLINE, outcome)
        return done, again

    def _invalid_transition(self, replica: PartitionAndReplica, target: ReplicaStatus) -> str:
        allowed = ",".join(str(state) for state in sorted(VALID_PREVIOUS_STATES[target]))
        return (
            f"Replica {replica} should be in the {allowed} states before moving to {target} state. "
            f"Instead it is in {self._context.replica_state(replica)} state"
        )

    def _log_failure(self, replica: PartitionAndReplica, target: ReplicaStatus, reason: object) -> None:
        epoch = self._context.epoch
        _state_changes.error(
            "[Controller id=%d epoch=%d] Controller %d epoch %d initiated state change of replica %d for partition %s from %s to %s "
            "failed: %s",
            self._controller_id,
            epoch,
            self._controller_id,
            epoch,
            replica.replica,
            replica.partition,
            self._context.replica_state(replica),
            target,
            reason,
        )


def _without(broker_id: int, state: LeaderAndIsr) -> LeaderAndIsr:
    """The state without a replica. The last replica stays in the ISR, without a leader, because it has all records."""
    leader = NO_LEADER if state.leader == broker_id else state.leader
    isr = state.isr if len(state.isr) == 1 else tuple(replica for replica in state.isr if replica != broker_id)
    return state.elected(leader, isr)
