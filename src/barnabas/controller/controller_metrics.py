"""What a controller measures: the time of its events by its state while it processes them, and the time that events wait in its queue.

The counts are those of this broker since its start; they outlive a term. The states and their numbers are those of Apache Kafka.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

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
from barnabas.metrics.histogram import Histogram


class ControllerState(IntEnum):
    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    ALTER_PARTITION_REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    LEADER_AND_ISR_RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    CONTROLLER_SHUTDOWN = 12
    UNCLEAN_LEADER_ELECTION_ENABLE = 13
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = 14
    LIST_PARTITION_REASSIGNMENT = 15
    UPDATE_METADATA_RESPONSE_RECEIVED = 16


# The states with a metric `<name>RateAndTimeMs`. That of BROKER_CHANGE is named after the elections that follow.
STATE_NAMES: Final = {
    ControllerState.CONTROLLER_CHANGE: "ControllerChange",
    ControllerState.BROKER_CHANGE: "LeaderElection",
    ControllerState.TOPIC_CHANGE: "TopicChange",
    ControllerState.TOPIC_DELETION: "TopicDeletion",
    ControllerState.ALTER_PARTITION_REASSIGNMENT: "PartitionReassignment",
    ControllerState.AUTO_LEADER_BALANCE: "AutoLeaderBalance",
    ControllerState.MANUAL_LEADER_BALANCE: "ManualLeaderBalance",
    ControllerState.CONTROLLED_SHUTDOWN: "ControlledShutdown",
    ControllerState.ISR_CHANGE: "IsrChange",
    ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED: "LeaderAndIsrResponseReceived",
    ControllerState.LOG_DIR_CHANGE: "LogDirChange",
    ControllerState.CONTROLLER_SHUTDOWN: "ControllerShutdown",
    ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE: "UncleanLeaderElectionEnable",
    ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE: "TopicUncleanLeaderElectionEnable",
    ControllerState.LIST_PARTITION_REASSIGNMENT: "ListPartitionReassignment",
}
_STATES: Final[dict[type[ControllerEvent], ControllerState]] = {
    BrokerChange: ControllerState.BROKER_CHANGE,
    BrokerModifications: ControllerState.BROKER_CHANGE,
    TopicChange: ControllerState.TOPIC_CHANGE,
    PartitionModifications: ControllerState.TOPIC_CHANGE,
    TopicDeletion: ControllerState.TOPIC_DELETION,
    TopicDeletionStopReplicaResponseReceived: ControllerState.TOPIC_DELETION,
    AlterReassignments: ControllerState.ALTER_PARTITION_REASSIGNMENT,
    ReassignmentNodeChange: ControllerState.ALTER_PARTITION_REASSIGNMENT,
    AutoPreferredReplicaLeaderElection: ControllerState.AUTO_LEADER_BALANCE,
    ElectLeaders: ControllerState.MANUAL_LEADER_BALANCE,
    PreferredElectionNodeChange: ControllerState.MANUAL_LEADER_BALANCE,
    ControlledShutdown: ControllerState.CONTROLLED_SHUTDOWN,
    IsrChangeNotification: ControllerState.ISR_CHANGE,
    AlterPartitionReceived: ControllerState.ISR_CHANGE,
    LeaderAndIsrResponseReceived: ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED,
    LogDirEventNotification: ControllerState.LOG_DIR_CHANGE,
    UpdateMetadataResponseReceived: ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED,
}


def state_of(event: ControllerEvent) -> ControllerState:
    """The state of a controller that processes this event. All events about the election of a controller have the same state."""
    if isinstance(event, UncleanLeaderElectionEnable):
        if event.topic is None:
            return ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE
        return ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE
    return _STATES.get(type(event), ControllerState.CONTROLLER_CHANGE)


class ControllerMetrics:
    """Times are in microseconds."""

    def __init__(self) -> None:
        self.state = ControllerState.IDLE
        self.queue_us = Histogram()  # from putting an event into the queue to the begin of its processing
        self.event_us = {state: Histogram() for state in STATE_NAMES}
        self.past_unclean_elections = 0  # of the terms that have ended

    def event_begins(self, event: ControllerEvent, waited_ns: int) -> None:
        self.state = state_of(event)
        self.queue_us.record(waited_ns // 1000)

    def event_ends(self, event: ControllerEvent, took_ns: int) -> None:
        self.record(state_of(event), took_ns)
        self.state = ControllerState.IDLE

    def record(self, state: ControllerState, took_ns: int) -> None:
        times = self.event_us.get(state)
        if times is not None:
            times.record(took_ns // 1000)

    def rotate(self) -> None:
        """Begins a new window of all histograms."""
        for histogram in (self.queue_us, *self.event_us.values()):
            histogram.rotate()
