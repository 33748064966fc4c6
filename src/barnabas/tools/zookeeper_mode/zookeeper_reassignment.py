"""kafka-reassign-partitions --zookeeper: the plan is written to /admin/reassign_partitions for the controller, and its throttles to the
configs of topics and brokers.

Messages and output are those of Kafka 2.8. Moves between log directories, --cancel and --list need a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import SystemRandom
from typing import Final

from barnabas.administration import replica_moves
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import BROKER, TOPIC
from barnabas.metadata.znodes.admin import decode_reassignment, encode_reassignment
from barnabas.tools.administration import reassignment_plan as plans
from barnabas.tools.command_line.failures import AdminCommandFailed, Terse, ToolError
from barnabas.tools.command_line.options import Options
from barnabas.tools.connecting.connect import read_text
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster
from barnabas.topic_partition import TopicPartition

_NEED_BROKERS: Final = ("additional", "command-config", "replica-alter-log-dirs-throttle", "timeout", "disallow-replication-factor-change")


def check(options: Options) -> None:
    for name in _NEED_BROKERS:
        if options.has(name):
            raise ToolError(f'You must specify --bootstrap-server when using "[{name}]"')


async def run(cluster: ZooKeeperCluster, options: Options, action: str) -> None:
    await {"generate": _generate, "execute": _execute, "verify": _verify}[action](cluster, options)


async def _generate(cluster: ZooKeeperCluster, options: Options) -> None:
    brokers = plans.parse_brokers(options.text("broker-list"))
    topics = plans.parse_topics(read_text(options.text("topics-to-move-json-file")))
    current = await cluster.replicas(topics)
    places = await cluster.places(rack_aware=not options.has("disable-rack-aware"), among=brokers)
    proposed = replica_moves.spread(current, places, SystemRandom())
    print(f"Current partition replica assignment\n{plans.plan_json(current, {})}\n")
    print(f"Proposed partition reassignment configuration\n{plans.plan_json(proposed, {})}")


async def _execute(cluster: ZooKeeperCluster, options: Options) -> None:
    plan = plans.parse_plan(read_text(options.text("reassignment-json-file")))
    throttle = options.integer("throttle")
    targets = plans.check_plan(plan)
    _refuse_log_dirs(plan)
    current = await cluster.replicas(partition.topic for partition in targets)
    await _check_places(cluster, targets, current)
    if await cluster.tree.exists(paths.REASSIGN_PARTITIONS) is not None:
        raise Terse(plans.EXISTING)
    shown = plans.plan_json({partition: current[partition] for partition in targets}, {})
    print(f"Current partition replica assignment\n\n{shown}\n\nSave this to use as the --reassignment-json-file option during rollback")
    if throttle >= 0:
        print(plans.VERIFY_PERIODICALLY)
        await _throttle(cluster, replica_moves.moves({}, targets, current), throttle)
        print(f"The inter-broker throttle limit was set to {throttle} B/s")
    await cluster.tree.create_recursive(
        paths.REASSIGN_PARTITIONS, encode_reassignment({partition: tuple(replicas) for partition, replicas in targets.items()})
    )
    print(f"Successfully started partition reassignment{plans.plural(targets)} for {','.join(map(str, sorted(targets)))}")


def _refuse_log_dirs(plan: plans.ReassignmentPlan) -> None:
    if plan.log_dirs:
        raise AdminCommandFailed("bootstrap-server needs to be provided when replica reassignments are present.")


async def _check_places(cluster: ZooKeeperCluster, targets: replica_moves.Assignment, current: replica_moves.Assignment) -> None:
    missing = [partition for partition in targets if partition not in current]
    if missing:
        raise AdminCommandFailed(f"The proposed assignment contains non-existent partitions: List({', '.join(map(str, missing))})")
    alive = await cluster.brokers()
    absent = dict.fromkeys(broker for replicas in targets.values() for broker in replicas if broker not in alive)
    if absent:
        raise AdminCommandFailed(f"The proposed assignment contains non-existent brokerIDs: {','.join(map(str, absent))}")


async def _throttle(cluster: ZooKeeperCluster, moves: replica_moves.Moves, throttle: int) -> None:
    leaders, followers = replica_moves.leader_throttles(moves), replica_moves.follower_throttles(moves)
    for topic in sorted(leaders):
        values = dict(zip(replica_moves.TOPIC_THROTTLES, (leaders[topic], followers[topic]), strict=True))
        await cluster.admin.change_topic_config(topic, await cluster.admin.fetch_config(TOPIC, topic) | values)
    rates = dict.fromkeys(replica_moves.REPLICATION_THROTTLES, str(throttle))
    for broker in replica_moves.moving_brokers(moves):
        await cluster.admin.change_broker_config(broker, await cluster.admin.fetch_config(BROKER, str(broker)) | rates)


async def _verify(cluster: ZooKeeperCluster, options: Options) -> None:
    plan = plans.parse_plan(read_text(options.text("reassignment-json-file")))
    _refuse_log_dirs(plan)
    print(
        "Warning: because you are using the deprecated --zookeeper option, the results may be incomplete.  "
        "Use --bootstrap-server instead for more accurate results."
    )
    node = await cluster.tree.get(paths.REASSIGN_PARTITIONS)
    under_way = {} if node is None else decode_reassignment(node.data)
    current = await cluster.replicas(plan.topics)
    print("Status of partition reassignment:")
    for partition, target in sorted(dict(plan.partitions).items()):
        print(_state(partition, target, current.get(partition, []), partition in under_way))
    if not under_way and not options.has("preserve-throttles"):
        await _clear_throttles(cluster, plan)


def _state(partition: TopicPartition, target: Sequence[int], current: Sequence[int], under_way: bool) -> str:
    if under_way:
        return f"Reassignment of partition {partition} is still in progress."
    if list(current) == list(target):
        return f"Reassignment of partition {partition} is complete."
    return plans.not_moved(partition, current, target)


async def _clear_throttles(cluster: ZooKeeperCluster, plan: plans.ReassignmentPlan) -> None:
    brokers = sorted(set(await cluster.brokers()) | {broker for _, replicas in plan.partitions for broker in replicas})
    print(f"Clearing broker-level throttles on broker{plans.plural(brokers)} {','.join(map(str, brokers))}")
    for broker in brokers:
        before = await cluster.admin.fetch_config(BROKER, str(broker))
        after = _without(before, replica_moves.BROKER_THROTTLES)
        if after != before:
            await cluster.admin.change_broker_config(broker, after)
    print(f"Clearing topic-level throttles on topic{plans.plural(plan.topics)} {','.join(plan.topics)}")
    for topic in plan.topics:
        before = await cluster.admin.fetch_config(TOPIC, topic)
        after = _without(before, replica_moves.TOPIC_THROTTLES)
        if after != before:
            await cluster.admin.change_topic_config(topic, after)


def _without(config: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: value for name, value in config.items() if name not in names}
