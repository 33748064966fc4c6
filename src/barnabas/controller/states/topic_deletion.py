"""The deletion of topics, from the mark in /admin/delete_topics until nothing of a topic is left.

A topic is deleted when every broker with a replica has confirmed its deletion. A broker that is down, a replica that could not be deleted,
or a reassignment can block the deletion. The topic is then *ineligible* and waits for `resume_deletion_for`.
The steps, for all eligible topics at once:

    metadata with leader -2 to all brokers  ──▶  replicas Offline (StopReplica)  ──▶  DeletionStarted (StopReplica with deletion)
    each response: DeletionSuccessful or DeletionIneligible  ──▶  all successful: delete znodes, configs and, last, the mark
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.controller import steps
from barnabas.controller.config import ControllerConfig
from barnabas.controller.context import ControllerContext, PartitionAndReplica, PartitionStatus, ReplicaStatus
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.states.replica_states import ReplicaStateMachine
from barnabas.controller.states.request_batch import RequestBatch
from barnabas.controller.steps import Steps
from barnabas.loggers import Prefixed
from barnabas.metadata import paths

_log = logging.getLogger(__name__)


class TopicDeletionManager:
    """Calls `forget_topics` with topics whose assignment need not be watched any more."""

    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        config: ControllerConfig,
        replica_states: ReplicaStateMachine,
        partition_states: PartitionStateMachine,
        new_batch: Callable[[], RequestBatch],
        forget_topics: Callable[[Iterable[str]], None],
    ) -> None:
        self._log = Prefixed(_log, f"[Topic Deletion Manager {controller_id}] ")
        self._context = context
        self._config = config
        self._replica_states = replica_states
        self._partition_states = partition_states
        self._new_batch = new_batch
        self._forget_topics = forget_topics

    @property
    def is_enabled(self) -> bool:
        return self._config.delete_topic_enable

    def initialize(self, marked: Sequence[str], ineligible: Iterable[str]) -> Steps[None]:
        """At a failover. With delete.topic.enable=false the marks are removed, and the topics stay."""
        blocked = sorted(ineligible)
        self._log.info("Initializing manager with initial deletions: %s, initial ineligible deletions: %s", _set(marked), _set(blocked))
        if self.is_enabled:
            self._context.topics_to_be_deleted |= dict.fromkeys(marked)
            self._context.topics_ineligible_for_deletion |= set(blocked) & self._context.topics_to_be_deleted.keys()
        else:
            self._log.info("Removing %s since delete topic is disabled", _set(marked))
            yield from self.remove_marks(marked)

    def remove_marks(self, topics: Iterable[str]) -> Steps[None]:
        yield from steps.delete_children(paths.DELETE_TOPICS, topics, self._context.epoch_version)

    def enqueue(self, topics: Iterable[str], halted: Iterable[str] = ()) -> Steps[None]:
        """`halted` are the topics that must wait for their reassignment."""
        if self.is_enabled:
            self._context.topics_to_be_deleted |= dict.fromkeys(topics)
            self.mark_ineligible(halted, "topic reassignment in progress")
            yield from self.resume_deletions()

    def resume_deletion_for(self, topics: Iterable[str]) -> Steps[None]:
        """Resumes the deletion of topics that may no longer be blocked: a broker is back, or a reassignment has completed."""
        waiting = set(topics) & self._context.topics_to_be_deleted.keys()
        if self.is_enabled and waiting:
            self._context.topics_ineligible_for_deletion -= waiting
            yield from self.resume_deletions()

    def mark_ineligible(self, topics: Iterable[str], reason: str) -> None:
        halted = set(topics) & self._context.topics_to_be_deleted.keys()
        if self.is_enabled and halted:
            self._context.topics_ineligible_for_deletion |= halted
            self._log.info("Halted deletion of topics %s due to %s", ",".join(sorted(halted)), reason)

    def fail_replica_deletion(self, replicas: Iterable[PartitionAndReplica]) -> Steps[None]:
        """Called for replicas on brokers that failed, or that responded with an error."""
        failed = [replica for replica in replicas if self._context.is_topic_queued_for_deletion(replica.partition.topic)]
        if self.is_enabled and failed:
            self._log.debug("Deletion failed for replicas %s. Halting deletion for topics %s", _Listed(failed), _Topics(failed))
            yield from self._replica_states.handle_state_changes(failed, ReplicaStatus.DELETION_INELIGIBLE)
            self.mark_ineligible({replica.partition.topic for replica in failed}, "replica deletion failure")
            yield from self.resume_deletions()

    def complete_replica_deletion(self, replicas: Iterable[PartitionAndReplica]) -> Steps[None]:
        deleted = [replica for replica in replicas if self._context.is_topic_queued_for_deletion(replica.partition.topic)]
        self._log.debug("Deletion successfully completed for replicas %s", _Listed(deleted))
        yield from self._replica_states.handle_state_changes(deleted, ReplicaStatus.DELETION_SUCCESSFUL)
        yield from self.resume_deletions()

    def resume_deletions(self) -> Steps[None]:
        if not self.is_enabled:
            return
        if self._context.topics_to_be_deleted:
            self._log.info("Handling deletion for topics %s", ",".join(self._context.topics_to_be_deleted))
        finished, to_retry, to_start = [], [], []
        for topic in self._context.topics_to_be_deleted:
            states = {self._context.replica_state(replica) for replica in self._context.replicas_of_topic(topic)}
            if states <= {ReplicaStatus.DELETION_SUCCESSFUL}:
                finished.append(topic)
            elif ReplicaStatus.DELETION_STARTED not in states:
                if ReplicaStatus.DELETION_INELIGIBLE in states:
                    to_retry.append(topic)
                if topic not in self._context.topics_ineligible_for_deletion:
                    to_start.append(topic)
        if finished:
            yield from self._complete(finished)
        if to_retry:
            yield from self._make_failed_replicas_offline(to_retry)
        if to_start:
            yield from self._start(to_start)

    def _complete(self, topics: Sequence[str]) -> Steps[None]:
        # A topic of the same name may be created right after. Its assignment must count as a new topic, not as a change of this one.
        self._forget_topics(topics)
        deleted = [replica for topic in topics for replica in self._context.replicas_in(topic, ReplicaStatus.DELETION_SUCCESSFUL)]
        yield from self._replica_states.handle_state_changes(deleted, ReplicaStatus.NON_EXISTENT)
        yield from steps.delete_topics(topics, self._context.epoch_version)
        for topic in topics:
            self._context.remove_topic(topic)
            self._log.info("Deletion of topic %s successfully completed", topic)

    def _make_failed_replicas_offline(self, topics: Sequence[str]) -> Steps[None]:
        failed = [replica for topic in topics for replica in self._context.replicas_in(topic, ReplicaStatus.DELETION_INELIGIBLE)]
        names = ",".join(topics)
        self._log.debug("Retrying deletion of topics %s since replicas %s were not successfully deleted", names, _Listed(failed))
        yield from self._replica_states.handle_state_changes(failed, ReplicaStatus.OFFLINE)

    def _start(self, topics: Sequence[str]) -> Steps[None]:
        for topic in topics:
            self._log.info("Deletion of topic %s (re)started", topic)
        unseen = [topic for topic in topics if topic not in self._context.topics_with_deletion_started]
        partitions = [partition for topic in unseen for partition in self._context.partitions_of(topic)]
        yield from self._partition_states.handle_state_changes(partitions, PartitionStatus.OFFLINE)
        yield from self._partition_states.handle_state_changes(partitions, PartitionStatus.NON_EXISTENT)
        # Not earlier: a topic in this set is left out of the count of offline partitions.
        self._context.topics_with_deletion_started.update(unseen)
        batch = self._new_batch()
        batch.add_update_metadata(self._context.live_brokers, ())
        deleted = [partition for topic in topics for partition in self._context.partitions_of(topic)]
        yield from steps.in_turns(deleted, lambda partition: batch.add_update_metadata((), (partition,)))
        batch.send()
        yield from self._delete_replicas(topics)

    def _delete_replicas(self, topics: Sequence[str]) -> Steps[None]:
        """Stops and deletes the live replicas. Dead replicas make their topic ineligible."""
        context = self._context
        dead: list[PartitionAndReplica] = []
        living: list[PartitionAndReplica] = []

        def sort(replica: PartitionAndReplica) -> None:
            if not context.is_replica_online(replica.replica, replica.partition):
                dead.append(replica)
            elif context.replica_state(replica) is not ReplicaStatus.DELETION_SUCCESSFUL:
                living.append(replica)

        yield from steps.in_turns([replica for topic in topics for replica in context.replicas_of_topic(topic)], sort)
        if dead:
            self._log.debug("Dead Replicas (%s) found for topic %s", _Listed(dead), _Topics(dead))
        yield from self._replica_states.handle_state_changes(dead, ReplicaStatus.DELETION_INELIGIBLE)
        yield from self._replica_states.handle_state_changes(living, ReplicaStatus.OFFLINE)
        yield from self._replica_states.handle_state_changes(living, ReplicaStatus.DELETION_STARTED)
        self.mark_ineligible({replica.partition.topic for replica in dead}, "offline replicas")


def _set(topics: Iterable[str]) -> str:
    return f"Set({', '.join(topics)})"


class _Listed:
    """Replicas in a log line. The text is only made if the line is written."""

    def __init__(self, replicas: Sequence[PartitionAndReplica]) -> None:
        self._replicas = replicas

    def __str__(self) -> str:
        return ",".join(map(str, self._replicas))


class _Topics(_Listed):
    def __str__(self) -> str:
        return ",".join(sorted({replica.partition.topic for replica in self._replicas}))
