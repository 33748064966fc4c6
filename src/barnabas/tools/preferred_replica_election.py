"""Give the leadership of partitions back to their preferred replicas, as kafka-preferred-replica-election does.

Kafka has removed this tool in favour of kafka-leader-election, which does the work here too; its options stay as they were. ZooKeeper is
never written to: the request goes to the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.tools._connect import read_text
from barnabas.tools._failures import AdminCommandFailed, failed_with_message, finish
from barnabas.tools._options import Option, Options
from barnabas.tools.leader_election import elect, open_elections, parse_partitions

ABOUT: Final = (
    "This tool helps to causes leadership for each partition to be transferred back to the 'preferred replica', "
    "it can be used to balance leadership among the servers."
)
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the brokers to connect to, with commas between them.", "required", described_as="host:port"),
    Option("zookeeper", "No longer supported: name brokers with --bootstrap-server.", "required", described_as="urls"),
    Option("admin.config", "A properties file for the admin client.", "required", described_as="config file"),
    Option(
        "path-to-json-file",
        'A JSON file with the partitions; all partitions without it. As in\n{"partitions":\n\t[{"topic": "foo", "partition": 1},\n'
        '\t {"topic": "foobar", "partition": 2}]\n}',
        "required",
        described_as="list of partitions for which preferred replica leader election needs to be triggered",
    ),
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    if options.has("zookeeper"):
        raise AdminCommandFailed(
            "--zookeeper names no broker, and elections are asked of the brokers: give --bootstrap-server host:port instead of it"
        )
    options.require("bootstrap-server")
    file = options.optional("path-to-json-file")
    partitions = parse_partitions(read_text(file)) if file is not None else None
    with open_elections(options.text("bootstrap-server"), options.optional("admin.config")) as admin:
        elect(admin, "PREFERRED", partitions)
