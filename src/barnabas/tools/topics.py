"""Create, delete, describe, list or alter topics, as kafka-topics does.

Options, messages, output and exit codes are those of Apache Kafka 4.2; `--json` prints what --list and --describe find for programs. With
--zookeeper it works on a tree itself, as Kafka 2.8's tool does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.administration.topic_arguments import (
    ACTIONS,
    REPORTS,
    chosen_topics,
    given_assignment,
    parse_configs,
    refuse_missing,
    warn_collision,
)
from barnabas.tools.command_line.failures import BadArgument, failed_with_message, finish, message_of
from barnabas.tools.command_line.options import Option, Options, ShowUsage
from barnabas.tools.command_line.text import JSON, coloured, print_json
from barnabas.tools.connecting.connect import bootstrap_option, command_config_option, open_admin
from barnabas.tools.tree.zookeeper_tree import ZOOKEEPER, NotConnected, on_cluster
from barnabas.topic_name import is_internal
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "This tool helps to create, delete, describe, or change a topic."
_CONFIGS_TOOL: Final = " (To alter topic configurations, the kafka-configs tool can be used.)"
_SHORT_MAX: Final = 2**15 - 1
OPTIONS: Final = (
    bootstrap_option(),
    ZOOKEEPER,
    command_config_option(),
    Option("list", "List the topics."),
    Option("create", "Create a topic."),
    Option("delete", "Delete topics."),
    Option("alter", "Add partitions to topics." + _CONFIGS_TOOL),
    Option("describe", "Show the partitions, replicas and settings of topics."),
    Option("topic", "The topic; for all actions but --create a regular expression, too.", "required", described_as="topic"),
    Option("topic-id", "The id of the topic to describe.", "required", described_as="topic-id"),
    Option(
        "config",
        "A setting of the topic to create; may be repeated. With --zookeeper also with --alter." + _CONFIGS_TOOL,
        "required",
        described_as="name=value",
    ),
    Option(
        "delete-config",
        "With --zookeeper and --alter: a setting to remove. No longer supported otherwise, since 4.0.",
        "required",
        described_as="name",
    ),
    Option(
        "partitions",
        "How many partitions the topic gets; without it a new topic gets the cluster's default. "
        "Adding partitions changes which partition the records of a key go to.",
        "required",
        "Integer",
        "# of partitions",
    ),
    Option("replication-factor", "How many replicas each partition of a new topic gets.", "required", "Integer", "replication factor"),
    Option(
        "replica-assignment",
        "The brokers of each partition, instead of a choice by the cluster.",
        "required",
        described_as="broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , "
        "broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...",
    ),
    Option("under-replicated-partitions", "With --describe: only partitions of which a replica is not in sync."),
    Option("unavailable-partitions", "With --describe: only partitions without a leader that is alive."),
    Option("under-min-isr-partitions", "With --describe: only partitions with fewer replicas in sync than min.insync.replicas."),
    Option("at-min-isr-partitions", "With --describe: only partitions with as many replicas in sync as min.insync.replicas."),
    Option("topics-with-overrides", "With --describe: only topics with settings of their own."),
    Option("if-exists", "Do nothing where there is no such topic."),
    Option("if-not-exists", "With --create: do nothing where the topic exists."),
    Option("exclude-internal", "Leave out Kafka's internal topics."),
    Option(
        "partition-size-limit-per-response",
        "How many partitions a broker describes in one response.",
        "required",
        "Integer",
        "maximum number of partitions per response",
    ),
    Option("disable-rack-aware", "With --zookeeper: do not spread replicas over racks.", available_if=("zookeeper",)),
    Option("force", "With --zookeeper: taken and ignored, as there never was a question.", available_if=("zookeeper",)),
    JSON,
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    _check(options)
    if options.has("zookeeper"):
        return _told(lambda: _with_zookeeper(options))
    with open_admin(options.text("bootstrap-server"), options.optional("command-config")) as admin:
        return _told(lambda: _RUN[next(action for action in ACTIONS if options.has(action))](admin, options))


def _with_zookeeper(options: Options) -> None:
    from barnabas.tools.zookeeper_mode import zookeeper_topics

    on_cluster(options.text("zookeeper"), lambda cluster: zookeeper_topics.run(cluster, options))


def _told(work: Callable[[], None]) -> int:
    try:
        work()
    except (ShowUsage, NotConnected, BrokenPipeError):
        raise
    except Exception as error:
        print(f"Error while executing topic command : {message_of(error)}")
        return 1
    return 0


def _check(options: Options) -> None:
    if options.is_empty:
        options.usage("Create, delete, describe, or change a topic.")
    options.maybe_help_or_version(ABOUT)
    if sum(map(options.has, ACTIONS)) != 1:
        options.usage("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if options.has("zookeeper"):
        from barnabas.tools.zookeeper_mode.zookeeper_topics import check

        check(options)
    else:
        _check_with_brokers(options)
    _check_combinations(options)


def _check_with_brokers(options: Options) -> None:
    if options.has("delete-config"):
        _warn_delete_config()
    if not options.has("bootstrap-server"):
        raise BadArgument("--bootstrap-server must be specified")
    if options.has("describe") and options.has("if-exists"):
        if not options.has("topic") and not options.has("topic-id"):
            options.usage("--topic or --topic-id is required to describe a topic")
        if options.has("topic") and options.has("topic-id"):
            print("Only topic id will be used when both --topic and --topic-id are specified and topicId is not Uuid.ZERO_UUID")
    if not options.has("list") and not options.has("describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            options.usage(
                f'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"{_CONFIGS_TOOL}',
            )
        options.require("partitions")


def _check_combinations(options: Options) -> None:
    def others(*allowed: str) -> list[str]:
        return [action for action in ACTIONS if action not in allowed]

    options.refuse_with("config", others("alter", "create"))
    options.refuse_with("partitions", others("alter", "create"))
    options.refuse_with("replication-factor", others("create"))
    options.refuse_with("replica-assignment", others("alter", "create"))
    if options.has("create"):
        options.refuse_with("replica-assignment", ("partitions", "replication-factor"))
    for report in REPORTS:
        options.refuse_with(report, (*others("describe"), "topics-with-overrides"))
    options.refuse_with("topics-with-overrides", (*others("describe"), *REPORTS))
    options.refuse_with("if-exists", others("alter", "delete", "describe"))
    options.refuse_with("if-not-exists", others("create"))
    options.refuse_with("exclude-internal", others("list", "describe"))


def _warn_delete_config() -> None:
    print(
        "delete-config option is no longer supported and deprecated since version 4.0. "
        "The config will be fully removed in future releases.",
        file=sys.stderr,
    )


def _create(admin: Admin, options: Options) -> None:
    from barnabas.client.admin.topics.topics import NewTopic

    name = options.text("topic")
    partitions = options.optional_integer("partitions")
    factor = options.optional_integer("replication-factor")
    assignment = given_assignment(options)
    configs = parse_configs(options.texts("config"))
    warn_collision(name)
    if factor is not None and not 1 <= factor <= _SHORT_MAX:
        raise BadArgument(f"The replication factor must be between 1 and {_SHORT_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise BadArgument("The partitions must be greater than 0")
    new = NewTopic(name, partitions, factor, replicas_assignments=assignment or None, configs=configs)
    try:
        admin.create_topics([new], retry_on_quota_violation=False).all()
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


def _list(admin: Admin, options: Options) -> None:
    names = _topics(admin, options)
    if options.has("json"):
        print_json(names)
    else:
        print("\n".join(names))


def _alter(admin: Admin, options: Options) -> None:
    from barnabas.client.admin.topics.topics import NewPartitions

    assignment = given_assignment(options)
    parse_configs(options.texts("config"))
    names = _existing(admin, options)
    if not names:
        return
    count = options.integer("partitions")
    described = admin.describe_topics(names).all() if assignment else {}
    additions = {}
    for name in names:
        new = [assignment[partition] for partition in list(assignment)[len(described[name].partitions) :]] if assignment else None
        additions[name] = NewPartitions(count, new)
    admin.create_partitions(additions, retry_on_quota_violation=False).all()


def _describe(admin: Admin, options: Options) -> None:
    topic_id = _topic_id(options)
    if topic_id is not None:
        known = {listing.topic_id for listing in admin.list_topics(list_internal=not options.has("exclude-internal")).values()}
        if topic_id not in known and not options.has("if-exists"):
            raise BadArgument(f"TopicId '{topic_id}' does not exist as expected")
        descriptions = list(admin.describe_topics([topic_id]).all().values()) if topic_id in known else []
    else:
        names = _existing(admin, options)
        limit = options.optional_integer("partition-size-limit-per-response") or 2000
        descriptions = list(admin.describe_topics(names, partition_size_limit_per_response=limit).all().values()) if names else []
    configs = _configs(admin, [topic.name for topic in descriptions])
    live = {node.id for node in admin.describe_cluster().nodes}
    moves = _reassignments(admin, [TopicPartition(topic.name, info.partition) for topic in descriptions for info in topic.partitions])
    descriptions.sort(key=lambda topic: topic.name)
    if options.has("json"):
        print_json([_as_json(topic, configs[topic.name], moves) for topic in descriptions])
        return
    for topic in descriptions:
        _print_topic(topic, configs[topic.name], moves, live, options)


def _delete(admin: Admin, options: Options) -> None:
    admin.delete_topics(_existing(admin, options), retry_on_quota_violation=False).all()


_RUN: Final = {"create": _create, "list": _list, "alter": _alter, "describe": _describe, "delete": _delete}


def _print_topic(
    description: Any, config: Mapping[str, Any], moves: Mapping[TopicPartition, Any], live: set[int], options: Options
) -> None:
    infos = sorted(description.partitions, key=lambda info: info.partition)
    reports = [report for report in REPORTS if options.has(report)]
    overrides = [f"{name}={entry.value}" for name, entry in config.items() if not entry.is_default]
    if not reports and (overrides or not options.has("topics-with-overrides")):
        factor = replication_factor(infos[0], moves.get(TopicPartition(description.name, infos[0].partition)))
        topic_id = "" if description.topic_id == Uuid.ZERO else f"\tTopicId: {description.topic_id}"
        print(
            f"Topic: {coloured(description.name, 'bold')}{topic_id}\tPartitionCount: {len(infos)}"
            f"\tReplicationFactor: {factor}\tConfigs: {','.join(overrides)}"
        )
    if options.has("topics-with-overrides"):
        return
    for info in infos:
        move = moves.get(TopicPartition(description.name, info.partition))
        if not reports or any(_REPORTED[report](info, move, config, live) for report in reports):
            print(_partition_line(description.name, info, move))


def _partition_line(topic: str, info: Any, move: Any) -> str:
    def ids(nodes: Sequence[Any]) -> str:
        return ",".join(str(node.id) for node in nodes)

    leader = str(info.leader.id) if info.leader is not None else coloured("none", "red")
    fields = [f"\tTopic: {topic}", f"Partition: {info.partition}", f"Leader: {leader}", f"Replicas: {ids(info.replicas)}"]
    isr = ids(info.isr)
    fields.append(f"Isr: {isr if len(info.isr) >= len(info.replicas) else coloured(isr, 'yellow')}")
    if move is not None:
        fields.append(f"Adding Replicas: {','.join(map(str, move.adding_replicas))}")
        fields.append(f"Removing Replicas: {','.join(map(str, move.removing_replicas))}")
    fields.append(f"Elr: {ids(info.elr) if info.elr is not None else 'N/A'}")
    fields.append(f"LastKnownElr: {ids(info.last_known_elr) if info.last_known_elr is not None else 'N/A'}")
    return "\t".join(fields)


def _as_json(description: Any, config: Mapping[str, Any], moves: Mapping[TopicPartition, Any]) -> dict[str, Any]:
    infos = sorted(description.partitions, key=lambda info: info.partition)
    return {
        "topic": description.name,
        "topicId": str(description.topic_id),
        "internal": is_internal(description.name),
        "replicationFactor": replication_factor(infos[0], moves.get(TopicPartition(description.name, infos[0].partition))),
        "configs": {name: entry.value for name, entry in config.items() if not entry.is_default},
        "partitions": [
            {
                "partition": info.partition,
                "leader": None if info.leader is None else info.leader.id,
                "replicas": [node.id for node in info.replicas],
                "isr": [node.id for node in info.isr],
            }
            for info in infos
        ],
    }


def replication_factor(info: Any, move: Any) -> int:
    """How many replicas a partition is meant to have, also while it is being moved."""
    changing = {*move.adding_replicas, *move.removing_replicas} if move is not None else set()
    if any(node.id in changing for node in info.replicas):
        return len(move.replicas) - len(move.adding_replicas)
    return len(info.replicas)


def _min_isr(config: Mapping[str, Any]) -> int:
    return int(config["min.insync.replicas"].value)


_REPORTED: Final = {
    "under-replicated-partitions": lambda info, move, config, live: replication_factor(info, move) > len(info.isr),
    "unavailable-partitions": lambda info, move, config, live: info.leader is None or info.leader.id not in live,
    "under-min-isr-partitions": lambda info, move, config, live: info.leader is None or len(info.isr) < _min_isr(config),
    "at-min-isr-partitions": lambda info, move, config, live: len(info.isr) == _min_isr(config),
}


def _topics(admin: Admin, options: Options) -> list[str]:
    return chosen_topics(sorted(admin.list_topics(list_internal=not options.has("exclude-internal"))), options)


def _existing(admin: Admin, options: Options) -> list[str]:
    names = _topics(admin, options)
    refuse_missing(names, options)
    return names


def _topic_id(options: Options) -> Uuid | None:
    if not options.has("topic-id"):
        return None
    try:
        topic_id = Uuid.from_string(options.text("topic-id"))
    except ValueError as error:
        raise BadArgument(str(error)) from None
    return None if topic_id == Uuid.ZERO else topic_id


def _configs(admin: Admin, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    if not names:
        return {}
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names]).all()
    return {resource.name: config for resource, config in described.items()}


def _reassignments(admin: Admin, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Any]:
    if not partitions:
        return {}
    try:
        return admin.list_partition_reassignments(partitions)
    except KafkaError as error:
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return {}
        raise
