"""Move partitions to other brokers or log directories, as kafka-reassign-partitions does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. With --zookeeper it works on a tree itself, as Kafka 2.8's does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

from barnabas.administration import replica_moves
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.administration import reassignment_plan as plans
from barnabas.tools.administration.reassignment_plan import PartitionReplica
from barnabas.tools.command_line.failures import (
    AdminCommandFailed,
    Terse,
    described,
    execution,
    failed_with_message,
    finish,
    message_of,
    print_cause,
)
from barnabas.tools.command_line.options import Option, Options, ShowUsage
from barnabas.tools.command_line.progress import ProgressBar
from barnabas.tools.command_line.text import JSON, print_json
from barnabas.tools.connecting.connect import open_admin, read_text
from barnabas.tools.tree.zookeeper_tree import ZOOKEEPER, on_cluster
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.cluster import Node

ABOUT: Final = "This tool helps to move topic partitions between replicas."
_RATE: Final = (
    "In bytes a second, at least 1 KB/s. Goes with --execute; --execute --additional with the same file changes it while partitions move."
)
OPTIONS: Final = (
    Option("verify", "Tell how far the reassignment of a file is; where it is complete, remove its throttles."),
    Option("generate", "Propose a reassignment; nothing is moved."),
    Option("execute", "Begin the reassignment of a file."),
    Option("cancel", "Cancel the reassignment of a file."),
    Option("list", "List all reassignments that are under way."),
    Option("bootstrap-server", "The brokers to connect to.", "optional", described_as="Server(s) to use for bootstrapping"),
    Option(
        "bootstrap-controller",
        "The controllers to connect to; for --cancel and --list.",
        "optional",
        described_as="bootstrap controller to connect to",
    ),
    ZOOKEEPER,
    Option("command-config", "A properties file for the admin client.", "required", described_as="Admin client property file"),
    Option(
        "reassignment-json-file",
        'A JSON file with the replicas of each partition, as in\n{"partitions":\n\t[{"topic": "foo",\n\t  "partition": 1,\n'
        '\t  "replicas": [1,2,3],\n\t  "log_dirs": ["dir1","dir2","dir3"] }],\n"version":1\n}\n'
        'where "log_dirs" may be left out; it names for each replica an absolute path on its broker, or "any".',
        "required",
        described_as="manual assignment json file path",
    ),
    Option(
        "topics-to-move-json-file",
        'With --generate: a JSON file with the topics that are to move to --broker-list, as in\n{"topics":\n'
        '\t[{"topic": "foo"},{"topic": "foo1"}],\n"version":1\n}',
        "required",
        described_as="topics to reassign json file path",
    ),
    Option("broker-list", 'With --generate: the brokers to move to, as in "0,1,2".', "required", described_as="brokerlist"),
    Option("disable-rack-aware", "Do not spread replicas over racks."),
    Option("throttle", f"The limit for copies between brokers. {_RATE}", "required", "Long", "throttle", default="-1"),
    Option(
        "replica-alter-log-dirs-throttle",
        f"The limit for copies between the log directories of a broker. {_RATE}",
        "required",
        "Long",
        "replicaAlterLogDirsThrottle",
        default="-1",
    ),
    Option("timeout", "How long to wait for moves between log directories to begin, in ms.", "required", "Long", "timeout", "10000"),
    Option("additional", "Go on though other reassignments are under way; also to change their throttle."),
    Option("preserve-throttles", "Leave the throttles of brokers and topics as they are."),
    Option("disallow-replication-factor-change", "Refuse a plan that changes how many replicas a partition has."),
    JSON,
)
_REQUIRED: Final = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_PERMITTED: Final = {
    "verify": ("bootstrap-server", "zookeeper", "command-config", "preserve-throttles"),
    "generate": ("bootstrap-server", "zookeeper", "command-config", "disable-rack-aware"),
    "execute": (
        "additional", "bootstrap-server", "zookeeper", "command-config", "throttle", "replica-alter-log-dirs-throttle", "timeout",
        "disallow-replication-factor-change",
    ),
    "cancel": ("bootstrap-server", "bootstrap-controller", "command-config", "preserve-throttles", "timeout"),
    "list": ("bootstrap-server", "bootstrap-controller", "command-config", "json"),
}  # fmt: skip
_RETRY_S: Final = 0.1


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    action = _check(options)
    try:
        if options.has("zookeeper") and not options.has("bootstrap-server"):
            _with_zookeeper(options, action)
        else:
            _with_brokers(options, action)
    except (ShowUsage, BrokenPipeError):
        raise
    except Terse as error:
        print(message_of(error))
        return 1
    except Exception as error:
        print(f"Error: {message_of(error)}")
        if isinstance(error, AdminCommandFailed) and isinstance(error.__cause__, KafkaError):
            print(f"Caused by: {described(error.__cause__)}")
        print_cause(error)
        return 1
    return 0


def _with_brokers(options: Options, action: str) -> None:
    if options.has("zookeeper"):
        print(
            "Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.  "
            "The --zookeeper option will be removed in a future version of Kafka."
        )
    controllers = options.optional("bootstrap-controller")
    client_id = {"client.id": "reassign-partitions-tool"}
    with open_admin(
        options.optional("bootstrap-server"), options.optional("command-config"), client_id, bootstrap_controllers=controllers
    ) as admin:
        _ACTIONS[action](admin, options)


def _with_zookeeper(options: Options, action: str) -> None:
    from barnabas.tools.zookeeper_mode import zookeeper_reassignment

    print("Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka.")
    on_cluster(options.text("zookeeper"), lambda cluster: zookeeper_reassignment.run(cluster, options, action))


def _check(options: Options) -> str:
    actions = [action for action in _REQUIRED if options.has(action)]
    if len(actions) != 1:
        options.usage(f"Command must include exactly one action: {', '.join(f'--{action}' for action in _REQUIRED)}")
    action = actions[0]
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        options.usage("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not any(map(options.has, ("bootstrap-server", "bootstrap-controller", "zookeeper"))):
        options.usage("Please specify either --bootstrap-server or --bootstrap-controller")
    options.require(*_REQUIRED[action])
    for given in options.order:
        if given not in (action, *_REQUIRED[action], *_PERMITTED[action]):
            options.usage(f'Option "[{given}]" can\'t be used with action "[{action}]"')
    if options.has("zookeeper") and not options.has("bootstrap-server"):
        from barnabas.tools.zookeeper_mode.zookeeper_reassignment import check

        check(options)
    return action


# --generate


def _generate(admin: Admin, options: Options) -> None:
    brokers = plans.parse_brokers(options.text("broker-list"))
    topics = plans.parse_topics(read_text(options.text("topics-to-move-json-file")))
    with execution():
        current = {
            TopicPartition(name, info.partition): info.replicas
            for name, topic in _described(admin, topics).items()
            for info in topic.partitions
        }
        log_dirs = _log_dirs(admin, current)
        aware = not options.has("disable-rack-aware")
        nodes = [node for node in admin.describe_cluster().nodes if node.id in brokers]
    places = [BrokerMetadata(node.id, node.rack if aware else None) for node in nodes]
    plans.check_racks(places)
    ids = _ids(current)
    proposed = plans.propose(ids, places, SystemRandom())
    print(f"Current partition replica assignment\n{plans.plan_json(ids, log_dirs)}\n")
    print(f"Proposed partition reassignment configuration\n{plans.plan_json(proposed, {})}")


def _described(admin: Admin, topics: Iterable[str]) -> dict[str, Any]:
    outcomes = admin.describe_topics(topics)
    for topic, error in outcomes.errors.items():
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopicOrPartition(f"Topic {topic} not found.") from error
        raise error
    return outcomes.all()


def _ids(replicas: Mapping[TopicPartition, Sequence[Node]]) -> dict[TopicPartition, list[int]]:
    return {partition: [node.id for node in nodes] for partition, nodes in replicas.items()}


def _log_dirs(admin: Admin, replicas: Mapping[TopicPartition, Sequence[Node]]) -> dict[PartitionReplica, str]:
    """The log directories of the replicas on brokers that can be reached."""
    known = [PartitionReplica(*partition, node.id) for partition, nodes in replicas.items() for node in nodes if not node.is_empty]
    infos = _described_dirs(admin, known)
    return {replica: info.current_replica_log_dir for replica, info in infos.items() if info.current_replica_log_dir is not None}


def _described_dirs(admin: Admin, replicas: Iterable[PartitionReplica]) -> dict[PartitionReplica, Any]:
    from barnabas.client.admin.cluster.log_dirs import TopicPartitionReplica

    outcomes = admin.describe_replica_log_dirs([TopicPartitionReplica(*replica) for replica in replicas])
    return {PartitionReplica(*replica): info for replica, info in outcomes.all().items()}


# --execute


def _start(admin: Admin, options: Options) -> None:
    plan = plans.parse_plan(read_text(options.text("reassignment-json-file")))
    throttle, dir_throttle, timeout_ms = map(options.integer, ("throttle", "replica-alter-log-dirs-throttle", "timeout"))
    for name, rate in (("throttle", throttle), ("replica-alter-log-dirs-throttle", dir_throttle)):
        if rate == 0:  # Kafka's tool accepts it, and no replica moves until the throttle is removed
            raise Terse(f"--{name} takes bytes a second, at least 1024, not 0: no replica would ever catch up; leave it out for no limit")
    targets = plans.check_plan(plan)
    with execution():
        under_way = admin.list_partition_reassignments()
        if under_way and not options.has("additional"):
            raise Terse(plans.EXISTING)
        alive = {node.id for node in admin.describe_cluster().nodes}
        for broker in sorted({broker for replicas in targets.values() for broker in replicas}):
            if broker not in alive:
                raise AdminCommandFailed(f"Unknown broker id {broker}")
        current = _current(admin, targets)
        text = plans.plan_json(_ids(current), _log_dirs(admin, current))
        print(f"Current partition replica assignment\n\n{text}\n\nSave this to use as the --reassignment-json-file option during rollback")
        dir_brokers = sorted({replica.broker_id for replica in plan.log_dirs})
        _throttle(admin, replica_moves.moves(under_way, targets, _ids(current)), dir_brokers, throttle, dir_throttle)
        allowed = not options.has("disallow-replication-factor-change")
        outcomes = admin.alter_partition_reassignments(targets, allow_replication_factor_change=allowed)
    _refuse_errors("Error reassigning partition(s):", outcomes.errors)
    print(f"Successfully started partition reassignment{plans.plural(targets)} for {_joined(targets)}")
    if plan.log_dirs:
        _move_dirs(admin, plan.log_dirs, timeout_ms)


def _current(admin: Admin, targets: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, Sequence[Node]]:
    current = {
        TopicPartition(name, info.partition): info.replicas
        for name, topic in _described(admin, {partition.topic for partition in targets}).items()
        for info in topic.partitions
        if TopicPartition(name, info.partition) in targets
    }
    missing = sorted(set(targets) - set(current))
    if missing:
        raise UnknownTopicOrPartition(f"Unable to find partition: {', '.join(map(str, missing))}")
    return current


def _throttle(admin: Admin, moves: replica_moves.Moves, dir_brokers: Sequence[int], throttle: int, dir_throttle: int) -> None:
    if throttle < 0 and dir_throttle < 0:
        return
    print(plans.VERIFY_PERIODICALLY)
    if throttle >= 0:
        _alter(admin, "TOPIC", replica_moves.topic_throttles(moves))
        _alter(admin, "BROKER", replica_moves.broker_throttles(replica_moves.moving_brokers(moves), throttle))
        print(f"The inter-broker throttle limit was set to {throttle} B/s")
    if dir_throttle >= 0:
        _alter(admin, "BROKER", {str(broker): {replica_moves.BROKER_THROTTLES[2]: str(dir_throttle)} for broker in dir_brokers})
        print(f"The replica-alter-dir throttle limit was set to {dir_throttle} B/s")


def _alter(admin: Admin, kind: str, settings: Mapping[str, Mapping[str, str | None]]) -> None:
    """Sets settings of topics or brokers; None removes one."""
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType
    from barnabas.client.admin.cluster.configs import AlterConfigOp, OpType

    changes = {
        ConfigResource(ConfigResourceType[kind], name): [
            AlterConfigOp(key, value, OpType.DELETE if value is None else OpType.SET) for key, value in values.items()
        ]
        for name, values in settings.items()
    }
    admin.incremental_alter_configs(changes).all()


def _move_dirs(admin: Admin, targets: Mapping[PartitionReplica, str], timeout_ms: int) -> None:
    """Retries until all moves have started: a replica can be moved only after it was created."""
    from barnabas.client.admin.cluster.log_dirs import TopicPartitionReplica

    pending = dict(targets)
    deadline = time.monotonic() + timeout_ms / 1000
    progress = ProgressBar("Starting moves", len(pending), "replicas", after_s=2)
    while True:
        outcomes = admin.alter_replica_log_dirs({TopicPartitionReplica(*replica): path for replica, path in pending.items()})
        for replica, error in outcomes.errors.items():
            if error.code != ErrorCode.REPLICA_NOT_AVAILABLE:
                progress.end()
                raise AdminCommandFailed(f"Failed to alter dir for {PartitionReplica(*replica)}") from error
        begun = sorted((PartitionReplica(*replica) for replica in outcomes.successes), key=lambda moved: moved.order)
        for moved in begun:
            print(
                f"Successfully started moving log directory to {pending.pop(moved)} for replica {moved.topic}-{moved.partition} "
                f"with broker {moved.broker_id} "
            )
        progress.at(len(targets) - len(pending))
        if not pending:
            progress.end()
            return
        if time.monotonic() >= deadline:
            progress.end()
            late = ",".join(map(str, sorted(pending, key=lambda moved: moved.order)))
            raise Terse(f"Timed out before log directory move{plans.plural(pending)} could be started for: {late}")
        time.sleep(_RETRY_S)


# --verify


def _verify(admin: Admin, options: Options) -> None:
    plan = plans.parse_plan(read_text(options.text("reassignment-json-file")))
    with execution():
        under_way = admin.list_partition_reassignments()
        print("\n".join(["Status of partition reassignment:", *_partition_states(admin, plan, under_way)]))
        infos = _described_dirs(admin, plan.log_dirs) if plan.log_dirs else {}
        print(
            "\n".join(
                move_state(replica, plan.log_dirs[replica], infos.get(replica))
                for replica in sorted(plan.log_dirs, key=lambda one: one.order)
            )
        )
        dirs_moving = any(info.future_replica_log_dir is not None for info in infos.values())
        if not under_way and not dirs_moving and not options.has("preserve-throttles"):
            _clear_throttles(admin, plan)


def _partition_states(admin: Admin, plan: plans.ReassignmentPlan, under_way: Mapping[TopicPartition, Any]) -> list[str]:
    settled = {partition.topic for partition, _ in plan.partitions if partition not in under_way}
    outcomes = admin.describe_topics(settled)
    lines = []
    for partition, target in sorted(dict(plan.partitions).items()):
        if partition in under_way:
            lines.append(f"Reassignment of partition {partition} is still in progress.")
            continue
        current = _replicas(outcomes, partition)
        if current == target:
            lines.append(f"Reassignment of partition {partition} is completed.")
        else:
            lines.append(plans.not_moved(partition, current, target))
    return lines


def _replicas(outcomes: Any, partition: TopicPartition) -> list[int]:
    try:
        described = outcomes[partition.topic].partitions
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return []
        raise
    return next(([node.id for node in info.replicas] for info in described if info.partition == partition.partition), [])


def move_state(replica: PartitionReplica, target: str, info: Any | None) -> str:
    """The state of the move of a replica to a log directory."""
    partition = f"Partition {replica.topic}-{replica.partition}"
    if info is None:
        return f"{partition} cannot be found in any live log directory on broker {replica.broker_id}."
    current, future = info.current_replica_log_dir, info.future_replica_log_dir
    if current is None:
        return (
            f"{partition} is not found in any live log dir on broker {replica.broker_id}. "
            "There is likely an offline log directory on the broker."
        )
    if future is None and current == target:
        return f"Reassignment of replica {replica} completed successfully."
    if future is None:
        return f"{partition} on broker {replica.broker_id} is not being moved from log dir {current} to {target}."
    if future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return f"{partition} on broker {replica.broker_id} is being moved to log dir {future} instead of {target}."


def _clear_throttles(admin: Admin, plan: plans.ReassignmentPlan) -> None:
    """Clears all throttles: the source brokers of a completed move are not known any more."""
    brokers = {node.id for node in admin.describe_cluster().nodes} | {broker for _, replicas in plan.partitions for broker in replicas}
    print(f"Clearing broker-level throttles on broker{plans.plural(brokers)} {','.join(map(str, sorted(brokers)))}")
    _alter(admin, "BROKER", {str(broker): dict.fromkeys(replica_moves.BROKER_THROTTLES) for broker in brokers})
    print(f"Clearing topic-level throttles on topic{plans.plural(plan.topics)} {','.join(plan.topics)}")
    _alter(admin, "TOPIC", {topic: dict.fromkeys(replica_moves.TOPIC_THROTTLES) for topic in plan.topics})


# --cancel and --list


def _cancel(admin: Admin, options: Options) -> None:
    plan = plans.parse_plan(read_text(options.text("reassignment-json-file")))
    timeout_ms = options.integer("timeout")
    with execution():
        reassignments = admin.list_partition_reassignments({partition for partition, _ in plan.partitions})
        active = [
            partition for partition, reassignment in reassignments.items() if reassignment.adding_replicas or reassignment.removing_replicas
        ]
        outcomes = admin.alter_partition_reassignments(dict.fromkeys(active)) if active else None
    if outcomes is None:
        print("None of the specified partition reassignments are active.")
    else:
        _refuse_errors(f"Error cancelling partition reassignment{plans.plural(outcomes.errors)} for:", outcomes.errors)
        print(f"Successfully cancelled partition reassignment{plans.plural(active)} for: {_joined(active)}")
    with execution():
        infos = _described_dirs(admin, plan.log_dirs) if plan.log_dirs else {}
        moving = {replica: info.current_replica_log_dir for replica, info in infos.items() if info.future_replica_log_dir is not None}
        if moving:
            _move_dirs(admin, {replica: path for replica, path in moving.items() if path is not None}, timeout_ms)
        else:
            print("None of the specified partition moves are active.", end="")
        if not options.has("preserve-throttles"):
            _clear_throttles(admin, plan)


def _list(admin: Admin, options: Options) -> None:
    with execution():
        reassignments = admin.list_partition_reassignments()
    if options.has("json"):
        print_json(
            [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "replicas": list(reassignment.replicas),
                    "adding": list(reassignment.adding_replicas),
                    "removing": list(reassignment.removing_replicas),
                }
                for partition, reassignment in sorted(reassignments.items())
            ]
        )
        return
    lines = [_reassignment_text(partition, reassignment) for partition, reassignment in sorted(reassignments.items())]
    print("\n".join(["Current partition reassignments:", *lines]) if lines else "No partition reassignments found.")


def _reassignment_text(partition: TopicPartition, reassignment: Any) -> str:
    adding = f" adding: {','.join(map(str, reassignment.adding_replicas))}." if reassignment.adding_replicas else ""
    removing = f" removing: {','.join(map(str, reassignment.removing_replicas))}." if reassignment.removing_replicas else ""
    return f"{partition}: replicas: {','.join(map(str, reassignment.replicas))}.{adding}{removing}"


def _refuse_errors(sentence: str, errors: Mapping[TopicPartition, KafkaError]) -> None:
    if errors:
        raise Terse("\n".join([sentence, *(f"{partition}: {message_of(errors[partition])}" for partition in sorted(errors))]))


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))


_ACTIONS: Final[Mapping[str, Callable[[Admin, Options], None]]] = {
    "generate": _generate,
    "execute": _start,
    "verify": _verify,
    "cancel": _cancel,
    "list": _list,
}
