"""Elections that an administrator requests: preferred leaders, or unclean leaders for partitions without one.

It rejects the partitions that need no election or cannot have one, elects the others through the partition state machine, and returns the
outcome of each. It never moves a leader that is already the right one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr, PartitionStatus
from barnabas.controller.elections import ElectionStrategy
from barnabas.controller.states.partition_states import PartitionStateMachine
from barnabas.controller.steps import StateChangeFailed, Steps
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidTopic,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.metadata import paths
from barnabas.topic_partition import TopicPartition

# The new leader of each partition, or the error.
Outcomes = dict[TopicPartition, "int | KafkaError"]

NOT_NEEDED: Final = "Leader election not needed for topic partition."
NO_PREFERRED_LEADER: Final = "The preferred leader was not available."
NO_ELIGIBLE_LEADER: Final = "Eligible topic partition leaders are not available."

_log = logging.getLogger(__name__)


class ElectionRequests:
    def __init__(self, context: ControllerContext, partition_states: PartitionStateMachine) -> None:
        self._context = context
        self._partition_states = partition_states

    def elect(self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy) -> Steps[Outcomes]:
        """`strategy` is PREFERRED or OFFLINE_UNCLEAN. `partitions` may have duplicates."""
        outcomes: Outcomes = {}
        electable: dict[TopicPartition, None] = {}

        def sort_out(partition: TopicPartition) -> None:
            refusal = self._refusal(partition, strategy)
            if refusal is None:
                electable[partition] = None
            else:
                outcomes[partition] = refusal

        yield from steps.in_turns(partitions, sort_out)
        elected = yield from self._partition_states.handle_state_changes(list(electable), PartitionStatus.ONLINE, strategy)
        for partition in electable:
            outcomes[partition] = self._outcome(partition, elected.get(partition), strategy)
        return outcomes

    def process_node(self) -> Steps[bool]:
        """Elects the partitions in /admin/preferred_replica_election and deletes it. Returns whether it existed."""
        requested = yield from steps.read_preferred_elections()
        if requested is None:
            return False
        deleted = [partition for partition in requested if self._context.is_topic_queued_for_deletion(partition.topic)]
        if deleted:
            names = ",".join(map(str, deleted))
            _log.error("Skipping preferred replica election for partitions %s since the respective topics are being deleted", names)
        outcomes = yield from self.elect([one for one in requested if one not in deleted], ElectionStrategy.PREFERRED)
        for partition, outcome in outcomes.items():
            if isinstance(outcome, KafkaError) and not isinstance(outcome, ElectionNotNeeded):
                _log.warning("No preferred leader was elected for %s: %s", partition, outcome)
        yield from steps.delete_paths([paths.PREFERRED_REPLICA_ELECTION], self._context.epoch_version)
        return True

    def rebalance(self, percentage: int) -> Steps[None]:
        """Elects preferred leaders for each broker where more than `percentage` percent of its preferred partitions have another leader."""
        context = self._context
        preferred: dict[int, list[TopicPartition]] = {}

        def note(partition: TopicPartition) -> None:
            assigned = context.replicas(partition)
            if assigned and not context.is_topic_queued_for_deletion(partition.topic):
                preferred.setdefault(assigned[0], []).append(partition)

        yield from steps.in_turns(list(context.all_partitions()), note)
        for broker_id, partitions in preferred.items():
            led_elsewhere = [
                partition
                for partition in partitions
                if (state := context.leadership.get(partition)) is not None and state.leader != broker_id
            ]
            if len(led_elsewhere) * 100 <= percentage * len(partitions) or broker_id not in context.live_brokers:
                continue
            candidates = [partition for partition in led_elsewhere if self._may_return(partition, broker_id)]
            yield from self._partition_states.handle_state_changes(candidates, PartitionStatus.ONLINE, ElectionStrategy.PREFERRED)

    def _may_return(self, partition: TopicPartition, broker_id: int) -> bool:
        context = self._context
        is_in_sync = broker_id in context.leadership[partition].isr and context.is_replica_online(broker_id, partition)
        return is_in_sync and not context.partitions_being_reassigned

    def _refusal(self, partition: TopicPartition, strategy: ElectionStrategy) -> KafkaError | None:
        context = self._context
        topic = context.assignments.get(partition.topic)
        if topic is None:
            return UnknownTopicOrPartition(f"No such topic as {partition.topic}")
        if partition.partition not in topic:
            return UnknownTopicOrPartition(f"No such partition as {partition}")
        if context.is_topic_queued_for_deletion(partition.topic):
            return InvalidTopic("The topic is being deleted")
        return ElectionNotNeeded(NOT_NEEDED) if self._is_well_led(partition, strategy) else None

    def _is_well_led(self, partition: TopicPartition, strategy: ElectionStrategy) -> bool:
        state = self._context.leadership.get(partition)
        if state is None:
            return False
        if strategy is ElectionStrategy.PREFERRED:
            return state.leader == self._context.replicas(partition)[0]
        return self._context.is_replica_online(state.leader, partition)

    def _outcome(self, partition: TopicPartition, elected: LeaderAndIsr | Exception | None, strategy: ElectionStrategy) -> int | KafkaError:
        if elected is None:  # the partition was NEW: its first leader is set without an election
            elected = self._context.leadership.get(partition) or StateChangeFailed("No replica is alive")
        if isinstance(elected, LeaderAndIsr):
            return elected.leader
        if not isinstance(elected, StateChangeFailed):
            return KafkaError(str(elected))
        if strategy is ElectionStrategy.PREFERRED:
            return PreferredLeaderNotAvailable(NO_PREFERRED_LEADER)
        return EligibleLeadersNotAvailable(NO_ELIGIBLE_LEADER)
