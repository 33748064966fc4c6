"""The controller context: the brokers, topics, replicas, leaders and states that the controller knows.

The controller reads it from the metadata store at a failover, keeps it current, and drops it when it resigns. The context only stores and
looks up; the state machines and event handlers decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.metadata.znodes.topics import LEADER_DURING_DELETE, RECOVERED, RECOVERING, PartitionState, ReplicaAssignment
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2  # overrides every leader epoch: a broker always stops a replica of a topic that is being deleted
INITIAL_CONTROLLER_EPOCH: Final = 0


class PartitionStatus(IntEnum):
    """Kafka's PartitionState, with its numbers. Here `PartitionState` is the name of the znode."""

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3

    def __str__(self) -> str:
        """Kafka's name: `NewPartition`, `OnlinePartition` …"""
        return f"{self.name.title().replace('_', '')}Partition"


class ReplicaStatus(IntEnum):
    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7

    def __str__(self) -> str:
        """Kafka's name: `NewReplica`, `ReplicaDeletionStarted` …"""
        name = self.name.title().replace("_", "")
        return f"Replica{name}" if name.startswith("Deletion") else f"{name}Replica"


class PartitionAndReplica(NamedTuple):
    partition: TopicPartition
    replica: int

    def __str__(self) -> str:
        return f"[Topic={self.partition.topic},Partition={self.partition.partition},Replica={self.replica}]"


class LiveBroker(NamedTuple):
    """A registered broker. Its epoch is the zxid of the creation of its registration, so it grows with every start."""

    broker_id: int
    epoch: int
    registration: BrokerRegistration


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The leader and ISR of a partition: the data of its state znode, and the znode's version as `partition_epoch`."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    controller_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    partition_epoch: int = 0
    zxid: int = field(default=0, compare=False)  # of the last write of the znode; 0 if this controller wrote it

    @classmethod
    def from_znode(cls, state: PartitionState, version: int, zxid: int = 0) -> LeaderAndIsr:
        return cls(state.leader, state.isr, state.leader_epoch, state.controller_epoch, state.leader_recovery_state, version, zxid)

    def to_znode(self) -> PartitionState:
        return PartitionState(self.leader, self.leader_epoch, self.isr, self.controller_epoch, self.leader_recovery_state)

    def elected(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """The state with another leader or ISR: the leader epoch is incremented, the recovery state stays."""
        return replace(self, leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1)

    def elected_unclean(self, leader: int) -> LeaderAndIsr:
        return replace(self.elected(leader, (leader,)), leader_recovery_state=RECOVERING)

    def __str__(self) -> str:
        """The text of Kafka's LeaderAndIsr in log lines."""
        isr = ", ".join(f"BrokerState(brokerId={replica}, brokerEpoch=-1)" for replica in self.isr)
        return (
            f"LeaderAndIsr(leader={self.leader}, leaderEpoch={self.leader_epoch}, isrWithBrokerEpoch=List({isr}), "
            f"leaderRecoveryState={self._recovery_state}, partitionEpoch={self.partition_epoch})"
        )

    def with_controller_epoch(self) -> str:
        """The text of Kafka's LeaderIsrAndControllerEpoch in log lines."""
        return (
            f"(Leader:{self.leader},ISR:{','.join(map(str, self.isr))},LeaderRecoveryState:{self._recovery_state},"
            f"LeaderEpoch:{self.leader_epoch},ZkVersion:{self.partition_epoch},ControllerEpoch:{self.controller_epoch})"
        )

    @property
    def _recovery_state(self) -> str:
        return "RECOVERED" if self.leader_recovery_state == RECOVERED else "RECOVERING"

    def during_delete(self) -> LeaderAndIsr:
        """The state that brokers receive for a partition that is being deleted, so that they stop serving it."""
        return LeaderAndIsr(LEADER_DURING_DELETE, self.isr, controller_epoch=self.controller_epoch)


_NO_REPLICAS: Final = ReplicaAssignment(())


@dataclass
class ControllerContext:
    epoch: int = INITIAL_CONTROLLER_EPOCH
    epoch_version: int = 0  # the version of /controller_epoch, which every write checks
    live_brokers: dict[int, LiveBroker] = field(default_factory=dict)  # including those that shut down
    shutting_down_broker_ids: set[int] = field(default_factory=set)
    all_topics: set[str] = field(default_factory=set)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    topic_names: dict[Uuid, str] = field(default_factory=dict)
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partitions_being_reassigned: set[TopicPartition] = field(default_factory=set)
    partition_states: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    replica_states: dict[PartitionAndReplica, ReplicaStatus] = field(default_factory=dict)
    replicas_on_offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    topics_to_be_deleted: dict[str, None] = field(default_factory=dict)  # in the order in which they were queued
    topics_with_deletion_started: set[str] = field(default_factory=set)
    topics_ineligible_for_deletion: set[str] = field(default_factory=set)
    offline_partition_count: int = 0
    unclean_leader_elections: int = 0

    # --- brokers

    def set_live_brokers(self, brokers: Iterable[LiveBroker]) -> None:
        self.live_brokers = {broker.broker_id: broker for broker in brokers}

    def add_live_broker(self, broker: LiveBroker) -> None:
        self.live_brokers[broker.broker_id] = broker

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            self.live_brokers.pop(broker_id, None)

    def is_replica_online(self, broker_id: int, partition: TopicPartition, including_shutting_down: bool = False) -> bool:
        if broker_id not in self.live_brokers:
            return False
        if not including_shutting_down and broker_id in self.shutting_down_broker_ids:
            return False
        offline = self.replicas_on_offline_dirs.get(broker_id)
        return not offline or partition not in offline

    # --- topics and their replicas

    def add_topic_id(self, topic: str, topic_id: Uuid) -> None:
        """Raises ValueError if the metadata store gives one id to two topics, or two ids to one topic."""
        if self.topic_ids.get(topic, topic_id) != topic_id:
            raise ValueError(f"Topic {topic} has the id {self.topic_ids[topic]} and cannot get another, {topic_id}")
        if self.topic_names.get(topic_id, topic) != topic:
            raise ValueError(f"The topic id {topic_id} of {topic} already belongs to {self.topic_names[topic_id]}")
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    def remove_topic(self, topic: str) -> None:
        self.topics_to_be_deleted.pop(topic, None)
        self.topics_with_deletion_started.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)
        self.all_topics.discard(topic)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for number, assignment in self.assignments.pop(topic, {}).items():
            partition = TopicPartition(topic, number)
            self.leadership.pop(partition, None)
            self.partitions_being_reassigned.discard(partition)
            self._count_offline(partition, self.partition_states.pop(partition, PartitionStatus.NON_EXISTENT), PartitionStatus.NON_EXISTENT)
            for replica in assignment.replicas:
                self.replica_states.pop(PartitionAndReplica(partition, replica), None)
                self.replicas_on_offline_dirs.get(replica, set()).discard(partition)

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self.assignments.get(partition.topic, {}).get(partition.partition, _NO_REPLICAS)

    def set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        self.assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.assignment(partition).replicas

    def all_partitions(self) -> Iterator[TopicPartition]:
        for topic, assignments in self.assignments.items():
            for number in assignments:
                yield TopicPartition(topic, number)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in self.assignments.get(topic, ())]

    def replicas_of_topic(self, topic: str) -> list[PartitionAndReplica]:
        return self.replicas_of_partitions(self.partitions_of(topic))

    def replicas_of_partitions(self, partitions: Iterable[TopicPartition]) -> list[PartitionAndReplica]:
        return [PartitionAndReplica(partition, replica) for partition in partitions for replica in self.replicas(partition)]

    def replicas_on_brokers(self, broker_ids: Iterable[int]) -> list[PartitionAndReplica]:
        selected = frozenset(broker_ids)
        return [replica for replica in self.replicas_of_partitions(self.all_partitions()) if replica.replica in selected]

    # --- leaders

    @property
    def partitions_with_leaders(self) -> list[TopicPartition]:
        return [partition for partition in self.leadership if partition.topic not in self.topics_to_be_deleted]

    @property
    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        return [
            partition
            for partition, state in self.leadership.items()
            if not self.is_replica_online(state.leader, partition) and partition.topic not in self.topics_to_be_deleted
        ]

    def leader_epoch_to_stop(self, partition: TopicPartition) -> int:
        """The leader epoch of a StopReplica. EPOCH_DURING_DELETE, which overrides every other, if the topic is queued for deletion."""
        if partition.topic in self.topics_to_be_deleted:
            return EPOCH_DURING_DELETE
        state = self.leadership.get(partition)
        return NO_EPOCH if state is None else state.leader_epoch

    # --- states

    def partition_state(self, partition: TopicPartition) -> PartitionStatus:
        return self.partition_states.get(partition, PartitionStatus.NON_EXISTENT)

    def put_partition_state(self, partition: TopicPartition, state: PartitionStatus) -> None:
        before = self.partition_states.get(partition, PartitionStatus.NON_EXISTENT)
        self.partition_states[partition] = state
        self._count_offline(partition, before, state)

    def partitions_in(self, *states: PartitionStatus) -> list[TopicPartition]:
        return [partition for partition, state in self.partition_states.items() if state in states]

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaStatus:
        return self.replica_states.get(replica, ReplicaStatus.NON_EXISTENT)

    def replicas_in(self, topic: str, state: ReplicaStatus) -> list[PartitionAndReplica]:
        return [replica for replica in self.replicas_of_topic(topic) if self.replica_state(replica) is state]

    # --- deletion

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        return topic in self.topics_with_deletion_started

    def _count_offline(self, partition: TopicPartition, before: PartitionStatus, after: PartitionStatus) -> None:
        """Updates the count of offline partitions. A topic whose deletion has started does not count: its partitions are NON_EXISTENT."""
        if partition.topic not in self.topics_with_deletion_started:
            self.offline_partition_count += (after is PartitionStatus.OFFLINE) - (before is PartitionStatus.OFFLINE)
