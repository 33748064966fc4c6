"""The arguments of kafka-topics that --bootstrap-server and --zookeeper share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas.tools.command_line.failures import AdminCommandFailed, AdminOperation, BadArgument
from barnabas.tools.command_line.options import Options
from barnabas.tools.command_line.text import java_split
from barnabas.tools.command_line.topic_filter import IncludeList
from barnabas.topic_name import is_internal

ACTIONS: Final = ("create", "list", "alter", "describe", "delete")
REPORTS: Final = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions")


def warn_collision(name: str) -> None:
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
            "collide. To avoid issues it is best to use either, but not both."
        )


def chosen_topics(names: Sequence[str], options: Options) -> list[str]:
    """The topics that --topic and --exclude-internal select."""
    exclude = options.has("exclude-internal")
    pattern = options.optional("topic")
    if pattern is None:
        return [name for name in names if not (exclude and is_internal(name))]
    included = IncludeList(pattern)
    return [name for name in names if included.allows(name, exclude)]


def refuse_missing(names: Sequence[str], options: Options) -> None:
    if options.optional("topic") and not names and not options.has("if-exists"):
        raise BadArgument(f"Topic '{options.text('topic')}' does not exist as expected")


def given_assignment(options: Options) -> dict[int, list[int]]:
    text = options.optional("replica-assignment")
    return parse_replica_assignment(text) if text else {}


def parse_replica_assignment(text: str) -> dict[int, list[int]]:
    """`a:b,c:d`: the brokers of partition 0, of partition 1, and so on."""
    assignment: dict[int, list[int]] = {}
    for partition, part in enumerate(java_split(text, ",")):
        brokers = [_number(broker.strip()) for broker in java_split(part, ":")]
        repeated = dict.fromkeys(broker for broker in brokers if brokers.count(broker) > 1)
        if repeated:
            raise AdminCommandFailed(f"Partition replica lists may not contain duplicate entries: {','.join(map(str, repeated))}")
        assignment[partition] = brokers
        if len(brokers) != len(assignment[0]):
            raise AdminOperation(f"Partition {partition} has different replication factor: {brokers}")
    return assignment


def parse_configs(pairs: Sequence[str]) -> dict[str, str]:
    """Parses `name=value` pairs, validated as Kafka's tool does before it connects."""
    from barnabas.storage.log_config import LogConfig
    from barnabas.storage.topic_configs import topic_config_key

    configs: dict[str, str] = {}
    for pair in pairs:
        words = java_split(pair, r"\s*=\s*")
        if len(words) != 2:
            raise BadArgument(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".',
            )
        configs[words[0].strip()] = words[1].strip()
    for name in configs:
        topic_config_key(name)
    LogConfig.from_properties(configs)
    return configs


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise BadArgument(f'For input string: "{text}"')
    return int(text)
