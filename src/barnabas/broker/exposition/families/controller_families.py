"""The metrics of the controller. Those of the cluster are 0 on a broker that is not the active controller, as in Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.observed import Observed
from barnabas.controller.context import ReplicaStatus
from barnabas.metrics.registry import Family, Kind, single

if TYPE_CHECKING:
    from barnabas.controller.context import ControllerContext

_Count = Callable[["ControllerContext"], float]


def controller_families(observed: Observed) -> list[Family]:
    def of_context(count: _Count) -> Callable[[], float]:
        def read() -> float:
            context = observed.broker.controller.context
            return 0 if context is None or not observed.broker.controller.is_active else count(context)

        return read

    return [
        Family(
            "kafka.controller",
            "KafkaController",
            "ActiveControllerCount",
            Kind.GAUGE,
            "1 on the active controller, 0 on other brokers.",
            single(lambda: observed.broker.controller.is_active),
        ),
        *(
            Family("kafka.controller", "KafkaController", name, Kind.GAUGE, meaning, single(of_context(count)))
            for name, count, meaning in _GAUGES
        ),
        Family(
            "kafka.controller",
            "ControllerStats",
            "UncleanLeaderElectionsPerSec",
            Kind.METER,
            "Leaders elected outside of the ISR, which may have lost records, by this broker as the controller.",
            single(lambda: observed.broker.controller.unclean_elections),
        ),
    ]


def _imbalance(context: ControllerContext) -> float:
    """Partitions with a leader that is not the first of their replicas; topics that are being deleted do not count."""
    count = 0
    for partition, leadership in context.leadership.items():
        if partition.topic in context.topics_to_be_deleted:
            continue
        assignment = context.assignments.get(partition.topic, {}).get(partition.partition)
        if assignment is not None and assignment.replicas and leadership.leader != assignment.replicas[0]:
            count += 1
    return count


def _replicas_to_delete(context: ControllerContext) -> float:
    states = (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_INELIGIBLE, ReplicaStatus.OFFLINE, ReplicaStatus.ONLINE)
    return sum(
        state in states for replica, state in context.replica_states.items() if replica.partition.topic in context.topics_to_be_deleted
    )


def _replicas_ineligible(context: ControllerContext) -> float:
    return sum(
        state is ReplicaStatus.DELETION_INELIGIBLE
        for replica, state in context.replica_states.items()
        if replica.partition.topic in context.topics_to_be_deleted
    )


_GAUGES: Final[tuple[tuple[str, _Count, str], ...]] = (
    ("ActiveBrokerCount", lambda context: len(context.live_brokers), "Registered brokers."),
    ("GlobalTopicCount", lambda context: len(context.all_topics), "Topics of the cluster."),
    ("GlobalPartitionCount", lambda context: sum(map(len, context.assignments.values())), "Partitions of the cluster."),
    ("OfflinePartitionsCount", lambda context: context.offline_partition_count, "Partitions without a leader."),
    ("PreferredReplicaImbalanceCount", _imbalance, "Partitions whose leader is not their first replica."),
    ("TopicsToDeleteCount", lambda context: len(context.topics_to_be_deleted), "Topics that are being deleted."),
    (
        "TopicsIneligibleToDeleteCount",
        lambda context: len(context.topics_ineligible_for_deletion),
        "Topics whose deletion waits: a replica is not reachable, or is being moved.",
    ),
    ("ReplicasToDeleteCount", _replicas_to_delete, "Replicas of these topics that are not deleted yet."),
    ("ReplicasIneligibleToDeleteCount", _replicas_ineligible, "Replicas of these topics whose deletion failed."),
)
