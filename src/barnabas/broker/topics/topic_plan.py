"""Plans new topics and partitions: validates names, configs and replica assignments, and fills in defaults.

The AdminManager calls it before it writes to the metadata store. It changes nothing: callers pass the live brokers, the existing topics,
the config and the random source. Errors have the codes and messages of Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from barnabas import topic_name
from barnabas.broker.config import DynamicBrokerConfig, validate_topic
from barnabas.broker.config.policies import CreateTopicMetadata, CreateTopicPolicy
from barnabas.config_def import InvalidConfig
from barnabas.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
    ReassignmentInProgress,
)
from barnabas.metadata.admin_tree import ExistingTopics, PlannedTopic
from barnabas.metadata.replica_assignment import BrokerMetadata, assign_replicas_to_brokers, without_partial_racks
from barnabas.metadata.znodes.topics import TopicAssignment
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsTopic
from barnabas.protocol.messages.create_topics_request import CreatableTopic

DEFAULT: Final = -1  # means num.partitions or default.replication.factor of the broker
PARTITIONS_PER_REQUEST_MAX: Final = 10_000

Assignment = dict[int, tuple[int, ...]]


class TopicPlanner:
    def __init__(self, config: DynamicBrokerConfig, policy: CreateTopicPolicy | None, random: Random) -> None:
        self._config = config
        self._policy = policy
        self._random = random

    def check_total(self, topics: Iterable[CreatableTopic]) -> None:
        """Raises PolicyViolation if one request creates more than PARTITIONS_PER_REQUEST_MAX partitions."""
        if sum(self._partition_count(topic) for topic in topics) > PARTITIONS_PER_REQUEST_MAX:
            raise PolicyViolation("Excessively large number of partitions per request.")

    def new_topic(self, topic: CreatableTopic, names: ExistingTopics, brokers: Sequence[BrokerMetadata]) -> PlannedTopic:
        """The topic to be created. Raises KafkaError if the request is invalid."""
        if topic.name == topic_name.CLUSTER_METADATA:
            raise InvalidRequest(f"Creation of internal topic {topic.name} is prohibited.")
        names.check_new(topic.name)
        config = self._topic_config(topic)
        if topic.assignments:
            assignment = _manual_assignment(topic, brokers)
        else:
            assignment = self._placed(topic, brokers)
        self._apply_policy(topic, assignment, config)
        return PlannedTopic(topic.name, assignment, config)

    def new_partitions(
        self, request: CreatePartitionsTopic, topic: TopicAssignment, brokers: Sequence[BrokerMetadata], partitions_max: int
    ) -> Assignment:
        """The partitions to be added to a topic, `partitions_max` at most. Raises KafkaError if the request is invalid."""
        present = topic.partitions
        if any(assignment.adding_replicas or assignment.removing_replicas for assignment in present.values()):
            raise ReassignmentInProgress(f"A partition reassignment is in progress for the topic '{request.name}'.")
        if request.count == len(present):
            raise InvalidPartitions(f"Topic already has {len(present)} partition(s).")
        if request.count < len(present):
            raise InvalidPartitions(
                f"The topic {request.name} currently has {len(present)} partition(s); {request.count} would not be an increase."
            )
        additional = request.count - len(present)
        if additional > partitions_max:
            raise PolicyViolation("Excessively large number of partitions per request.")
        first_replicas = present[min(present)].replicas
        if request.assignments is not None:
            return _manual_additions(request, len(present), len(first_replicas), additional, brokers)
        brokers = without_partial_racks(_open(brokers))
        start = next((index for index, broker in enumerate(brokers) if broker.id >= first_replicas[0]), 0)
        _check_replication_factor(len(first_replicas), brokers)
        return assign_replicas_to_brokers(
            brokers, additional, len(first_replicas), self._random, fixed_start_index=start, start_partition_id=len(present)
        )

    def _partition_count(self, topic: CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        return self._config.current.number("num.partitions") if topic.num_partitions == DEFAULT else max(0, topic.num_partitions)

    def _topic_config(self, topic: CreatableTopic) -> dict[str, str]:
        without_value = [config.name for config in topic.configs if config.value is None]
        if without_value:
            raise InvalidConfig(f"Null value not supported for topic configs: {','.join(without_value)}")
        config = {entry.name: entry.value for entry in topic.configs if entry.value is not None}
        if config:
            validate_topic(config, self._config.current)
        return config

    def _placed(self, topic: CreatableTopic, brokers: Sequence[BrokerMetadata]) -> Assignment:
        if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
            raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
        if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
            raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
        replication_factor = topic.replication_factor
        if replication_factor == DEFAULT:
            replication_factor = self._config.current.number("default.replication.factor")
        usable = _open(brokers)
        _check_replication_factor(replication_factor, usable)
        return assign_replicas_to_brokers(without_partial_racks(usable), self._partition_count(topic), replication_factor, self._random)

    def _apply_policy(self, topic: CreatableTopic, assignment: Assignment, config: Mapping[str, str]) -> None:
        if self._policy is None:
            return
        if topic.assignments:
            metadata = CreateTopicMetadata(topic.name, None, None, assignment, config)
        else:
            metadata = CreateTopicMetadata(topic.name, len(assignment), len(assignment[0]), None, config)
        self._policy.validate(metadata)


def _open(brokers: Sequence[BrokerMetadata]) -> list[BrokerMetadata]:
    """The brokers that get new replicas: not those whose log directories are all cordoned."""
    return [broker for broker in brokers if not broker.is_cordoned]


def _check_replication_factor(replication_factor: int, brokers: Sequence[BrokerMetadata]) -> None:
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of {replication_factor} "
            f"cannot be reached because only {len(brokers)} broker(s) are registered."
        )


def _manual_assignment(topic: CreatableTopic, brokers: Sequence[BrokerMetadata]) -> Assignment:
    if topic.replication_factor != DEFAULT:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != DEFAULT:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    assignment: Assignment = {}
    replication_factor: int | None = None
    for partition in topic.assignments:
        if partition.partition_index in assignment:
            raise InvalidReplicaAssignment(f"Found multiple manual partition assignments for partition {partition.partition_index}")
        _check_replicas(partition.broker_ids, replication_factor, brokers)
        replication_factor = len(partition.broker_ids)
        assignment[partition.partition_index] = tuple(partition.broker_ids)
    if any(number not in assignment for number in range(len(assignment))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    return {number: assignment[number] for number in range(len(assignment))}


def _manual_additions(
    request: CreatePartitionsTopic, present: int, replication_factor: int, additional: int, brokers: Sequence[BrokerMetadata]
) -> Assignment:
    assignments = request.assignments or []
    if len(assignments) != additional:
        raise InvalidReplicaAssignment(
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were specified."
        )
    for assignment in assignments:
        _check_replicas(assignment.broker_ids, replication_factor, brokers)
    return {present + index: tuple(assignment.broker_ids) for index, assignment in enumerate(assignments)}


def _check_replicas(replicas: Sequence[int], replication_factor: int | None, brokers: Sequence[BrokerMetadata]) -> None:
    """Kafka's checks: every broker is registered, none occurs twice, and the replication factor is that of the other partitions."""
    if not replicas:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    registered = {broker.id: broker for broker in brokers}
    seen: set[int] = set()
    for broker in sorted(replicas):
        if broker not in registered:
            raise InvalidReplicaAssignment(f"The manual partition assignment includes broker {broker}, but no such broker is registered.")
        if registered[broker].is_cordoned:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned."
            )
        if broker in seen:
            raise InvalidReplicaAssignment(f"The manual partition assignment includes the broker {broker} more than once.")
        seen.add(broker)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not consistent with "
            f"previous partitions, which have {replication_factor} replica(s)."
        )
