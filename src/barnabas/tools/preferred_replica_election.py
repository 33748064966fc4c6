"""Give the leadership of partitions back to their preferred replicas, as kafka-preferred-replica-election does.

Kafka has removed this tool in favour of kafka-leader-election; options, messages and output are those of Kafka 2.8, the last that had it.
With --zookeeper the election is asked of the controller through the tree, and it is the controller's to do it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from barnabas.tools.command_line.failures import AdminCommandFailed, failed_with_message, finish
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import JSON
from barnabas.tools.connecting.connect import read_text
from barnabas.tools.leader_election import elect, open_elections, parse_partitions
from barnabas.tools.tree.zookeeper_tree import ZOOKEEPER, ZooKeeperCluster, on_cluster, scala_set, warn_deprecated
from barnabas.topic_partition import TopicPartition

ABOUT: Final = (
    "This tool helps to causes leadership for each partition to be transferred back to the 'preferred replica', "
    "it can be used to balance leadership among the servers."
)
OPTIONS: Final = (
    Option(
        "bootstrap-server",
        "REQUIRED unless --zookeeper is given: the brokers to connect to, with commas between them.",
        "required",
        described_as="host:port",
    ),
    ZOOKEEPER,
    Option(
        "admin.config",
        "A properties file for the admin client.",
        "required",
        described_as="config file",
        available_if=("bootstrap-server",),
    ),
    Option(
        "path-to-json-file",
        'A JSON file with the partitions; all partitions without it. As in\n{"partitions":\n\t[{"topic": "foo", "partition": 1},\n'
        '\t {"topic": "foobar", "partition": 2}]\n}',
        "required",
        described_as="list of partitions for which preferred replica leader election needs to be triggered",
    ),
    JSON,
)

_DEPRECATED: Final = "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    print(_DEPRECATED, file=sys.stderr if as_json else None)
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    if options.has("bootstrap-server") == options.has("zookeeper"):
        options.usage("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")
    file = options.optional("path-to-json-file")
    partitions = None if file is None else parse_partitions(read_text(file), "Preferred replica election data", "is empty")
    if options.has("zookeeper"):
        options.refuse_with("json", ("zookeeper",))
        warn_deprecated()
        on_cluster(options.text("zookeeper"), lambda cluster: _ask_controller(cluster, partitions))
        return 0
    with open_elections(options.text("bootstrap-server"), options.optional("admin.config")) as admin:
        outcome = elect(admin, "PREFERRED", partitions)
    if as_json:
        return outcome.show_json()
    outcome.show("preferred leader election", "Preferred replica", "preferred replica(s)")
    return 0


async def _ask_controller(cluster: ZooKeeperCluster, partitions: Sequence[TopicPartition] | None) -> None:
    from barnabas.metadata import paths
    from barnabas.metadata.errors import NodeExists
    from barnabas.metadata.znodes.admin import decode_preferred_replica_election, encode_preferred_replica_election

    existing = await cluster.replicas(await cluster.topics() if partitions is None else {partition.topic for partition in partitions})
    valid = sorted(existing) if partitions is None else [partition for partition in partitions if partition in existing]
    try:
        await cluster.tree.create_recursive(paths.PREFERRED_REPLICA_ELECTION, encode_preferred_replica_election(valid))
    except NodeExists:
        node = await cluster.tree.get(paths.PREFERRED_REPLICA_ELECTION)
        running = [] if node is None else decode_preferred_replica_election(node.data)
        raise AdminCommandFailed(
            f"Preferred replica leader election currently in progress for {_joined(running)}. Aborting operation"
        ) from None
    print(f"Created preferred replica election path with {_joined(valid)}")
    print(f"Successfully started preferred replica election for partitions {scala_set(valid)}")
    for partition in partitions or ():
        if partition not in existing:
            print(f"Skipping preferred replica leader election for partition {partition} since it doesn't exist.")


def _joined(partitions: Sequence[TopicPartition]) -> str:
    return ",".join(map(str, partitions))
