"""Elections that an administrator asks for: back to the preferred leaders, or leaders at any price where there are none.

The controller's term gives it the partitions of a request. It sorts out those that need no election or can have none, lets the state
machine of partitions elect the others, and says of each what came of it. It never moves a leader that is where it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.controller import steps
from barnabas.controller.context import ControllerContext, LeaderAndIsr, PartitionStatus
from barnabas.controller.elections import ElectionStrategy
from barnabas.controller.partition_states import PartitionStateMachine
from barnabas.controller.steps import StateChangeFailed, Steps
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidTopic,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.topic_partition import TopicPartition

# For each partition: who leads it now, or why it was not elected anew.
Outcomes = dict[TopicPartition, "int | KafkaError"]

NOT_NEEDED: Final = "Leader election not needed for topic partition."
NO_PREFERRED_LEADER: Final = "The preferred leader was not available."
NO_ELIGIBLE_LEADER: Final = "Eligible topic partition leaders are not available."


class ElectionRequests:
    def __init__(self, context: ControllerContext, partition_states: PartitionStateMachine) -> None:
        self._context = context
        self._partition_states = partition_states

    def elect(self, partitions: Sequence[TopicPartition], strategy: ElectionStrategy) -> Steps[Outcomes]:
        """`strategy` is PREFERRED or OFFLINE_UNCLEAN; a partition may be given twice."""
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
        if elected is None:  # it was never led before: the first leader of a partition is found without an election
            elected = self._context.leadership.get(partition) or StateChangeFailed("No replica is alive")
        if isinstance(elected, LeaderAndIsr):
            return elected.leader
        if not isinstance(elected, StateChangeFailed):
            return KafkaError(str(elected))
        if strategy is ElectionStrategy.PREFERRED:
            return PreferredLeaderNotAvailable(NO_PREFERRED_LEADER)
        return EligibleLeadersNotAvailable(NO_ELIGIBLE_LEADER)
