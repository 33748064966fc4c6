"""Show the log directories of brokers and the size of what lies in them, as kafka-log-dirs does.

Options, messages, output and exit codes are those of Apache Kafka 4.2; the last line of the output is JSON, in Kafka's order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.tools.command_line.failures import BadArgument, Execution, Terse, execution, failed_with_message, finish, java_name
from barnabas.tools.command_line.options import Option, Options
from barnabas.tools.command_line.text import compact_json
from barnabas.tools.connecting.connect import command_config_option, open_admin

ABOUT: Final = "This tool helps to query log directory usage on the specified brokers."
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the broker to connect to.", "required", described_as="The server(s) to use for bootstrapping"),
    command_config_option(),
    Option("describe", "Show the log directories."),
    Option("topic-list", "Topics separated by commas; all without it.", "required", described_as="Topic list", default=""),
    Option("broker-list", "Brokers separated by commas; all without it.", "required", described_as="Broker list", default=""),
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> None:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    options.require("bootstrap-server", "describe")
    bootstrap = options.text("bootstrap-server")
    with open_admin(bootstrap, options.optional("command-config"), {"client.id": "log-dirs-tool"}) as admin:
        topics = {name for name in options.text("topic-list").split(",") if name}
        with execution():
            known = sorted(node.id for node in admin.describe_cluster().nodes)
        requested = sorted(_broker(text) for text in set(options.text("broker-list").split(",")) if text)
        missing = [broker for broker in requested if broker not in known]
        if missing:
            raise Terse(
                f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}. Current existent brokers: {_listed(known)}"
            )
        brokers = requested or known
        print("Querying brokers for log directories information")
        outcomes = admin.describe_log_dirs(brokers)
        for error in outcomes.errors.values():
            raise Execution(error)
        print(f"Received log directory information from brokers {_listed(brokers)}")
        print(compact_json({"brokers": [_broker_json(broker, outcomes[broker], topics) for broker in brokers], "version": 1}))


def _broker_json(broker: int, dirs: Mapping[str, Any], topics: set[str]) -> dict[str, Any]:
    return {"broker": broker, "logDirs": [_dir_json(path, description, topics) for path, description in dirs.items()]}


def _dir_json(path: str, description: Any, topics: set[str]) -> dict[str, Any]:
    replicas = {partition: info for partition, info in description.replica_infos.items() if not topics or partition.topic in topics}
    return {
        "partitions": [
            {"partition": str(partition), "size": info.size, "offsetLag": info.offset_lag, "isFuture": info.is_future}
            for partition, info in sorted(replicas.items())
        ],
        "error": None if description.error is None else java_name(description.error),
        "logDir": path,
    }


def _listed(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _broker(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise BadArgument(f'For input string: "{text}"')
    return int(text)
