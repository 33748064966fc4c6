"""Leader election: Kafka's four strategies, as pure functions of the controller context.

Each returns the new leader and ISR, or None if no replica can lead, and the replicas that get the LeaderAndIsr request.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.controller.context import ControllerContext, LeaderAndIsr
from barnabas.topic_partition import TopicPartition


class ElectionStrategy(Enum):
    OFFLINE = "Offline"  # the leader is offline: a live replica in the ISR or, if the topic allows it, any live replica
    OFFLINE_UNCLEAN = "OfflineAllowUnclean"  # as OFFLINE, and an administrator allows the loss of data
    REASSIGN = "Reassign"  # the leader is not among the target replicas
    PREFERRED = "PreferredReplica"  # the first replica of the assignment
    CONTROLLED_SHUTDOWN = "ControlledShutdown"  # a replica on a broker that is not shutting down


class ElectionResult(NamedTuple):
    partition: TopicPartition
    leader_and_isr: LeaderAndIsr | None
    recipients: list[int]


def offline_leader(context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr, allow_unclean: bool) -> ElectionResult:
    assignment = context.replicas(partition)
    live = [replica for replica in assignment if context.is_replica_online(replica, partition)]
    clean = next((replica for replica in live if replica in current.isr), None)
    if clean is not None:
        isr = tuple(replica for replica in current.isr if context.is_replica_online(replica, partition))
        return ElectionResult(partition, current.elected(clean, isr), live)
    if allow_unclean and live:
        return ElectionResult(partition, current.elected_unclean(live[0]), live)
    return ElectionResult(partition, None, live)


def reassigned_leader(context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr) -> ElectionResult:
    assignment = context.assignment(partition)
    target = [replica for replica in assignment.replicas if replica not in assignment.removing_replicas]
    leader = next((replica for replica in target if replica in current.isr and context.is_replica_online(replica, partition)), None)
    return ElectionResult(partition, None if leader is None else current.elected(leader, current.isr), target)


def preferred_leader(context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr) -> ElectionResult:
    assignment = context.replicas(partition)
    can_lead = bool(assignment) and assignment[0] in current.isr and context.is_replica_online(assignment[0], partition)
    return ElectionResult(partition, current.elected(assignment[0], current.isr) if can_lead else None, list(assignment))


def controlled_shutdown_leader(context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr) -> ElectionResult:
    """The brokers that shut down are recipients too: they become followers before they stop."""
    shutting_down = context.shutting_down_broker_ids
    assignment = context.replicas(partition)
    up = [replica for replica in assignment if context.is_replica_online(replica, partition, including_shutting_down=True)]
    leader = next((replica for replica in up if replica in current.isr and replica not in shutting_down), None)
    isr = tuple(replica for replica in current.isr if replica not in shutting_down)
    return ElectionResult(partition, None if leader is None else current.elected(leader, isr), up)


def has_live_isr(context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr) -> bool:
    return any(context.is_replica_online(replica, partition) for replica in current.isr)
