"""kafka-topics --zookeeper: topics made, changed, listed, described and marked for deletion in the tree itself.

Messages and output are those of Kafka 2.8. A topic is written without an id: the controller assigns one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import SystemRandom
from typing import Any, Final

from barnabas import topic_name
from barnabas.client.wire_errors import BrokerNotAvailable
from barnabas.errors import InvalidPartitions, InvalidReplicaAssignment, InvalidTopic, KafkaError, TopicExists
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import TOPIC, Assignment, PlannedTopic, validate_assignment
from barnabas.metadata.errors import NodeExists
from barnabas.metadata.replica_assignment import BrokerMetadata, assign_replicas_to_brokers
from barnabas.metadata.znodes import ordering
from barnabas.metadata.znodes.topics import NO_LEADER, PartitionState, TopicAssignment, decode_partition_state
from barnabas.tools.administration.topic_arguments import (
    ACTIONS,
    REPORTS,
    chosen_topics,
    given_assignment,
    parse_configs,
    refuse_missing,
    warn_collision,
)
from barnabas.tools.command_line.failures import AdminOperation, BadArgument
from barnabas.tools.command_line.options import Options
from barnabas.tools.command_line.text import coloured, print_json
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster, refuse_both
from barnabas.uuid import Uuid

_MIN_ISR_REPORTS: Final = ("under-min-isr-partitions", "at-min-isr-partitions")
_NEWER: Final = ("topic-id", "partition-size-limit-per-response")
_PARTITIONS_WARNING: Final = (
    "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages will be affected"
)


def check(options: Options) -> None:
    """The checks of Kafka 2.8 for a command line with --zookeeper."""
    refuse_both(options)
    if options.has("describe") and options.has("if-exists"):
        options.require("topic")
    if not options.has("list") and not options.has("describe"):
        options.require("topic")
    if options.has("create") and not options.has("replica-assignment"):
        options.require("partitions", "replication-factor")
    options.refuse_with("delete-config", [action for action in ACTIONS if action != "alter"])
    for report in REPORTS:
        options.refuse_with(report, [other for other in REPORTS if other != report])
    for name in (*_MIN_ISR_REPORTS, *_NEWER):
        options.refuse_with(name, ("zookeeper",))


async def run(cluster: ZooKeeperCluster, options: Options) -> None:
    await _RUN[next(action for action in ACTIONS if options.has(action))](cluster, options)


async def _create(cluster: ZooKeeperCluster, options: Options) -> None:
    name = options.text("topic")
    given = given_assignment(options)
    config = parse_configs(options.texts("config"))
    warn_collision(name)
    if given:
        assignment: Assignment = {partition: tuple(brokers) for partition, brokers in given.items()}
    else:
        places = await cluster.places(rack_aware=not options.has("disable-rack-aware"))
        counts = (options.integer("partitions"), options.integer("replication-factor"))
        assignment = assign_replicas_to_brokers(places, *counts, SystemRandom())
    try:
        await _check_new(cluster, name)
        validate_assignment(assignment)
        (created,) = await cluster.admin.create_topics([PlannedTopic(name, assignment, config)], with_ids=False)
        if isinstance(created, KafkaError):
            raise created
    except TopicExists:
        if options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


async def _check_new(cluster: ZooKeeperCluster, name: str) -> None:
    topic_name.validate(name)
    names = await cluster.topics()
    if name in names:
        raise TopicExists(f"Topic '{name}' already exists.")
    unified = topic_name.unify_collision_chars(name)
    colliding = [existing for existing in names if topic_name.unify_collision_chars(existing) == unified]
    if colliding:
        raise InvalidTopic(f"Topic '{name}' collides with existing topics: {', '.join(colliding)}")


async def _list(cluster: ZooKeeperCluster, options: Options) -> None:
    names = chosen_topics(await cluster.topics(), options)
    if options.has("json"):
        print_json(names)
        return
    for name in names:
        print(f"{name} - marked for deletion" if await cluster.admin.is_marked_for_deletion(name) else name)


async def _alter(cluster: ZooKeeperCluster, options: Options) -> None:
    names = chosen_topics(await cluster.topics(), options)
    given = given_assignment(options)
    added = parse_configs(options.texts("config"))
    deleted = [name.strip() for name in options.texts("delete-config")]
    _check_names(deleted)
    refuse_missing(names, options)
    for name in names:
        if options.has("config") or options.has("delete-config"):
            print(
                "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future releases.\n"
                "         Going forward, please use kafka-configs.sh for this functionality"
            )
            config = await cluster.admin.fetch_config(TOPIC, name) | added
            await cluster.admin.change_topic_config(name, {key: value for key, value in config.items() if key not in deleted})
            print(f"Updated config for topic {name}.")
        if options.has("partitions"):
            await _add_partitions(cluster, name, options.integer("partitions"), given)


def _check_names(names: Sequence[str]) -> None:
    from barnabas.storage.topic_configs import topic_config_key

    for name in names:
        topic_config_key(name)


async def _add_partitions(cluster: ZooKeeperCluster, name: str, count: int, given: Mapping[int, Sequence[int]]) -> None:
    if topic_name.is_internal(name):
        raise BadArgument(f"The number of partitions for the internal topic {name} cannot be changed.")
    print(_PARTITIONS_WARNING)
    brokers = await cluster.places(rack_aware=True)
    await cluster.admin.add_partitions(name, lambda topic: new_partitions(name, topic, brokers, count, given))
    print("Adding partitions succeeded!")


def new_partitions(
    name: str, topic: TopicAssignment, brokers: Sequence[BrokerMetadata], count: int, given: Mapping[int, Sequence[int]]
) -> Assignment:
    """The replicas of the partitions to add so that the topic has `count`; `given` has the brokers of all partitions, or is empty."""
    existing = len(topic.partitions)
    if 0 not in topic.partitions:
        raise AdminOperation(f"Unexpected existing replica assignment for topic '{name}', partition id 0 is missing.")
    if count <= existing:
        raise InvalidPartitions(
            f"The number of partitions for a topic can only be increased. Topic {name} currently has {existing} partitions, "
            f"{count} would not be an increase."
        )
    first = topic.partitions[0].replicas
    added = {partition: tuple(replicas) for partition, replicas in given.items() if partition >= existing}
    if added:
        _check_added(added, len(first), [broker.id for broker in brokers])
        return added
    start = next((index for index, broker in enumerate(brokers) if broker.id >= first[0]), 0)
    return assign_replicas_to_brokers(
        brokers, count - existing, len(first), SystemRandom(), fixed_start_index=start, start_partition_id=existing
    )


def _check_added(added: Assignment, factor: int, available: Sequence[int]) -> None:
    for partition, replicas in added.items():
        if not set(replicas) <= set(available):
            raise BrokerNotAvailable(
                f"Some brokers specified for partition id {partition} are not available. "
                f"Specified brokers: {_joined(replicas)}, available brokers: {_joined(available)}."
            )
    wrong = {partition: len(replicas) for partition, replicas in sorted(added.items()) if len(replicas) != factor}
    if wrong:
        raise InvalidReplicaAssignment(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions [{_joined(wrong)}] have "
            f"replication factors [{_joined(wrong.values())}], respectively."
        )


def _joined(values: Any) -> str:
    return ", ".join(map(str, values))


async def _delete(cluster: ZooKeeperCluster, options: Options) -> None:
    names = chosen_topics(await cluster.topics(), options)
    refuse_missing(names, options)
    for name in names:
        if topic_name.is_internal(name):
            raise AdminOperation(f"Topic {name} is a kafka internal topic and is not allowed to be marked for deletion.")
        try:
            await cluster.tree.create_recursive(paths.delete_topic(name))
        except NodeExists:
            print(f"Topic {name} is already marked for deletion.")
            continue
        print(f"Topic {name} is marked for deletion.")
        print("Note: This will have no impact if delete.topic.enable is not set to true.")


async def _describe(cluster: ZooKeeperCluster, options: Options) -> None:
    names = chosen_topics(await cluster.topics(), options)
    refuse_missing(names, options)
    live = set(await cluster.brokers())
    assignments = await cluster.admin.topic_assignments(names)
    described = []
    for name in names:
        if name not in assignments:
            print(f"Topic {name} doesn't exist!")
            continue
        config = await cluster.admin.fetch_config(TOPIC, name)
        states = {number: await _state(cluster, name, number) for number in sorted(assignments[name].partitions)}
        if options.has("json"):
            described.append(_as_json(name, assignments[name], config, states))
        else:
            marked = "\tMarkedForDeletion: true" if await cluster.admin.is_marked_for_deletion(name) else ""
            _print_topic(name, assignments[name], config, states, live, marked, options)
    if options.has("json"):
        print_json(described)


async def _state(cluster: ZooKeeperCluster, name: str, partition: int) -> PartitionState | None:
    node = await cluster.tree.get(paths.topic_partition_state(name, partition))
    return None if node is None else decode_partition_state(name, partition, node.data)


def _print_topic(
    name: str,
    topic: TopicAssignment,
    config: Mapping[str, str],
    states: Mapping[int, PartitionState | None],
    live: set[int],
    marked: str,
    options: Options,
) -> None:
    reports = [report for report in REPORTS if options.has(report)]
    if not reports and (config or not options.has("topics-with-overrides")):
        topic_id = "" if topic.topic_id in (None, Uuid.ZERO) else f"\tTopicId: {topic.topic_id}"
        settings = ",".join(f"{key}={config[key]}" for key in ordering.java_properties(config))
        factor = len(next(iter(topic.partitions.values())).replicas)
        print(
            f"Topic: {coloured(name, 'bold')}{topic_id}\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {factor}"
            f"\tConfigs: {settings}{marked}"
        )
    if options.has("topics-with-overrides"):
        return
    for number, state in states.items():
        replicas, isr, leader = topic.partitions[number].replicas, _isr(state), _leader(state)
        selected = {
            "under-replicated-partitions": len(replicas) > len(isr),
            "unavailable-partitions": leader is None or leader not in live,
        }
        if reports and not any(selected[report] for report in reports):
            continue
        shown = ",".join(map(str, isr))
        print(
            f"\tTopic: {name}\tPartition: {number}\tLeader: {coloured('none', 'red') if leader is None else leader}"
            f"\tReplicas: {','.join(map(str, replicas))}\tIsr: {shown if len(isr) >= len(replicas) else coloured(shown, 'yellow')}{marked}"
        )


def _as_json(name: str, topic: TopicAssignment, config: Mapping[str, str], states: Mapping[int, PartitionState | None]) -> dict[str, Any]:
    return {
        "topic": name,
        "topicId": None if topic.topic_id is None else str(topic.topic_id),
        "internal": topic_name.is_internal(name),
        "replicationFactor": len(next(iter(topic.partitions.values())).replicas),
        "configs": dict(config),
        "partitions": [
            {
                "partition": number,
                "leader": _leader(state),
                "replicas": list(topic.partitions[number].replicas),
                "isr": list(_isr(state)),
            }
            for number, state in states.items()
        ],
    }


def _leader(state: PartitionState | None) -> int | None:
    return None if state is None or state.leader == NO_LEADER else state.leader


def _isr(state: PartitionState | None) -> tuple[int, ...]:
    return () if state is None else state.isr


_RUN: Final = {"create": _create, "list": _list, "alter": _alter, "describe": _describe, "delete": _delete}
