"""Show on one screen how a cluster is: brokers, partitions, disks, groups and their lag, and what is wrong. (Not in Kafka.)

It uses only requests that any client may send, so that it works with Apache Kafka too. A part that cannot be read is named and left out.
The exit code is 0 for a healthy cluster, 2 for a cluster with problems, and 1 if no broker answers.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.administration.cluster_health import BrokerHealth, GroupHealth, Health, LogDirHealth, PartitionHealth
from barnabas.errors import KafkaError
from barnabas.tools.administration.feature_versions import metadata_name
from barnabas.tools.administration.status_text import screen
from barnabas.tools.command_line.failures import failed_with_message, finish, message_of
from barnabas.tools.command_line.options import Option, Options, UsageError
from barnabas.tools.command_line.text import print_json
from barnabas.tools.connecting.connect import command_config_option, open_admin
from barnabas.tools.connecting.listening import refusing
from barnabas.tools.connecting.readiness import readiness_url, unreadiness
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "Shows how a cluster is."
_METADATA_VERSION: Final = "metadata.version"
_DEFAULT_SERVER: Final = "localhost:9092"
_TIMEOUTS: Final = {"request.timeout.ms": "5000", "default.api.timeout.ms": "10000"}
_TIMEOUT_MS_IN_VAIN: Final = 2_000
_INTERVAL_S: Final = 2
_TO_THE_TOP: Final = "\x1b[H\x1b[J"
RUNS_ALONE: Final = True  # without any option, it shows the default cluster
OPTIONS: Final = (
    Option("bootstrap-server", f"The broker to connect to. (default: {_DEFAULT_SERVER})", "required", described_as="server to connect to"),
    command_config_option(),
    Option("watch", f"Look again every so many seconds (default: {_INTERVAL_S}), until ^C.", "optional", "Integer", "seconds"),
    Option("all", "Show all groups, not only those that are furthest behind."),
    Option("json", "Print one JSON document, for programs; with --watch one in each line."),
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    if arguments:
        options.maybe_help_or_version(ABOUT)
    interval_s = _interval(options)
    server = options.optional("bootstrap-server") or _DEFAULT_SERVER
    with open_admin(server, options.optional("command-config"), _TIMEOUTS) as admin:
        while True:
            try:
                health = look(admin)
            except KafkaError as error:
                print(
                    f"No broker answers at {server}: {message_of(error)}\nCheck the address, and that a broker runs there.", file=sys.stderr
                )
                if interval_s is None:
                    return 1
            else:
                _show(health, options, watching=interval_s is not None)
                if interval_s is None:
                    return 0 if health.verdict == "HEALTHY" else 2
            time.sleep(interval_s)


def _interval(options: Options) -> int | None:
    if not options.has("watch"):
        return None
    interval_s = options.integer("watch") if options.texts("watch") else _INTERVAL_S
    if interval_s <= 0:
        raise UsageError(f"--watch takes a number of seconds greater than 0, not {interval_s}")
    return interval_s


def _show(health: Health, options: Options, *, watching: bool) -> None:
    if options.has("json") and watching:
        print(json.dumps(health.as_json()), flush=True)
    elif options.has("json"):
        print_json(health.as_json())
    else:
        if watching and sys.stdout.isatty():
            print(_TO_THE_TOP, end="")
        print(screen(health, all_groups=options.has("all")), flush=True)


def look(admin: Admin) -> Health:
    """Reads the state of the cluster. Raises an error only if no broker answers."""
    cluster = admin.describe_cluster()
    down = refusing(cluster.nodes)
    health = Health(cluster.cluster_id, _controller(admin, cluster, down))
    _try(health, "partitions", lambda: _look_at_topics(admin, health))
    _try(health, "brokers", lambda: _look_at_brokers(admin, health, cluster.nodes, down))
    _look_at_readiness(admin, health)
    _try(health, "features", lambda: _look_at_features(admin, health))
    if health.controller is not None:  # only the controller has this state
        _try(health, "reassignments", lambda: _look_at_reassignments(admin, health))
    _try(health, "log directories", lambda: _look_at_log_dirs(admin, health))
    _try(health, "groups", lambda: _look_at_groups(admin, health))
    return health


def _controller(admin: Admin, cluster: Any, down: Collection[int]) -> int | None:
    """The leader of the Raft quorum if there is one: brokers of a KRaft cluster return any broker as the controller."""
    named = None if cluster.controller is None else cluster.controller.id
    if named in down:
        return None
    try:
        leader: int = admin.describe_metadata_quorum().leader_id
        return None if leader < 0 else leader
    except KafkaError:
        return named


def _try(health: Health, part: str, ask: Callable[[], None]) -> None:
    try:
        ask()
    except KafkaError as error:
        health.unknown[part] = message_of(error)


def _look_at_topics(admin: Admin, health: Health) -> None:
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    listed = admin.list_topics(list_internal=True)
    health.topics = len(listed)
    health.internal_topics = sum(topic.is_internal for topic in listed.values())
    topics = admin.describe_topics(sorted(listed)).successes if listed else {}
    configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]).successes if topics else {}
    min_isr = {resource.name: int(config["min.insync.replicas"].value or 1) for resource, config in configs.items()}
    health.partitions = [
        PartitionHealth(
            f"{name}-{info.partition}",
            None if info.leader is None else info.leader.id,
            tuple(node.id for node in info.replicas),
            tuple(node.id for node in info.isr),
            min_isr.get(name, 1),
        )
        for name, topic in topics.items()
        for info in topic.partitions
    ]


def _look_at_brokers(admin: Admin, health: Health, alive: Sequence[Any], down: Collection[int]) -> None:
    nodes = {node.id: node for node in alive}
    try:
        nodes |= {node.id: node for node in admin.describe_cluster(include_fenced_brokers=True).nodes}
    except KafkaError:
        pass  # a broker without support for fenced brokers
    versions = admin.describe_api_versions([node.id for node in alive if node.id not in down]).successes
    leads = Counter(partition.leader for partition in health.partitions)
    replicas = Counter(broker for partition in health.partitions for broker in partition.replicas)
    for node in sorted(nodes.values(), key=lambda listed: listed.id):
        features = versions.get(node.id)
        highest = None if features is None else features.supported_features.get(_METADATA_VERSION)
        health.brokers.append(
            BrokerHealth(
                node.id,
                f"{node.host}:{node.port}",
                node.rack,
                node.is_fenced,
                leads[node.id],
                replicas[node.id],
                None if features is None else len(features.api_versions),
                None if highest is None else metadata_name(highest[1]) or str(highest[1]),
                node.id in down,
            )
        )


def _look_at_readiness(admin: Admin, health: Health) -> None:
    """By /health/ready of the brokers that have metrics.listener. What cannot be read from here says nothing about a broker."""
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    hosts = {broker.id: broker.address.rpartition(":")[0] for broker in health.brokers if not broker.is_fenced and not broker.is_down}
    try:
        configs = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(broker_id)) for broker_id in hosts]).successes
    except KafkaError:
        return
    for resource, config in configs.items():
        entry = config.get("metrics.listener")
        if entry is not None and entry.value:
            why = unreadiness(readiness_url(entry.value, hosts[int(resource.name)]))
            if why:
                health.not_ready[int(resource.name)] = why


def _look_at_features(admin: Admin, health: Health) -> None:
    for name, levels in admin.describe_features().finalized_features.items():
        level = levels.max_version_level
        health.features[name] = (metadata_name(level) if name == _METADATA_VERSION else None) or str(level)


def _look_at_reassignments(admin: Admin, health: Health) -> None:
    from barnabas.protocol.errors import UnsupportedVersion

    try:
        health.reassigning = len(admin.list_partition_reassignments())
    except UnsupportedVersion:
        health.reassigning = None  # a broker without this API has no reassignments


def _look_at_log_dirs(admin: Admin, health: Health) -> None:
    outcomes = admin.describe_log_dirs([broker.id for broker in health.brokers if not broker.is_fenced and not broker.is_down])
    for broker, dirs in sorted(outcomes.successes.items()):
        for path, description in sorted(dirs.items()):
            size = sum(info.size for info in description.replica_infos.values())
            error = None if description.error is None else message_of(description.error)
            health.log_dirs.append(
                LogDirHealth(broker, path, len(description.replica_infos), size, description.total_bytes, description.usable_bytes, error)
            )
    for broker, failure in outcomes.errors.items():
        health.unknown[f"log directories of broker {broker}"] = message_of(failure)


def _look_at_groups(admin: Admin, health: Health) -> None:
    # ListGroups goes to every broker; a broker that is down is tried only briefly.
    patience_ms = _TIMEOUT_MS_IN_VAIN if any(broker.is_down for broker in health.brokers) else None
    listing = admin.list_groups(timeout_ms=patience_ms)
    if listing.errors:
        health.unknown["some groups"] = message_of(listing.errors[0])
    consumers = [group.group_id for group in listing.valid if group.is_consumer_group]
    described = admin.describe_consumer_groups(consumers, timeout_ms=patience_ms).successes if consumers else {}
    offsets = admin.list_consumer_group_offsets(dict.fromkeys(consumers), timeout_ms=patience_ms).successes if consumers else {}
    ends = _ends(admin, offsets, patience_ms)
    for group in sorted(listing.valid, key=lambda listed: listed.group_id):
        description = described.get(group.group_id)
        health.groups.append(
            GroupHealth(
                group.group_id,
                "?" if group.type is None else str(group.type),
                "?" if group.group_state is None else str(group.group_state),
                None if description is None else len(description.members),
                lag(offsets.get(group.group_id, {}), ends),
            )
        )


def _ends(admin: Admin, offsets: Mapping[str, Mapping[TopicPartition, Any]], patience_ms: int | None) -> dict[TopicPartition, int]:
    from barnabas.client.admin.topics.offsets import OffsetSpec

    partitions = {partition for committed in offsets.values() for partition, offset in committed.items() if offset is not None}
    latest = dict.fromkeys(sorted(partitions), OffsetSpec.latest())
    infos = admin.list_offsets(latest, timeout_ms=patience_ms).successes if partitions else {}
    return {partition: info.offset for partition, info in infos.items()}


def lag(committed: Mapping[TopicPartition, Any], ends: Mapping[TopicPartition, int]) -> int | None:
    """The lag of a group in records; None if it has no committed offset for an existing partition."""
    behind = [
        max(0, ends[partition] - offset.offset) for partition, offset in committed.items() if offset is not None and partition in ends
    ]
    return sum(behind) if behind else None
