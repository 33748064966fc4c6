"""Plans of kafka-reassign-partitions: their JSON, what is wrong with one, which replicas it moves, and what a throttle has to cover.

Plain functions over plain values; this module sends nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.administration.replica_moves import Assignment, by_topic, spread
from barnabas.errors import InvalidReplicationFactor
from barnabas.metadata.replica_assignment import BrokerMetadata
from barnabas.tools.command_line.failures import AdminCommandFailed, AdminOperation, BadArgument
from barnabas.tools.command_line.json_plan import WrongJson, as_list, as_object, integer, parse_json, string, to_integer
from barnabas.tools.command_line.text import compact_json
from barnabas.topic_partition import TopicPartition

ANY_LOG_DIR: Final = "any"
EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a new "
    "partition assignment in addition to the existing one. The --additional flag can also be used to change the throttle by "
    "resubmitting the current reassignment."
)
VERIFY_PERIODICALLY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
_VERSION: Final = 1
_SOURCE: Final = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {}, column: {}]"
T = TypeVar("T")


class PartitionReplica(NamedTuple):
    """A replica of a partition on a broker; sorts as Kafka prints them, by broker first, where `order` is the key."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"

    @property
    def order(self) -> tuple[int, str, int]:
        return self.broker_id, self.topic, self.partition


@dataclass(frozen=True)
class ReassignmentPlan:
    """The content of a plan file, in its order and with its repetitions."""

    partitions: list[tuple[TopicPartition, list[int]]]
    log_dirs: dict[PartitionReplica, str]

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition, _ in self.partitions})


def parse_plan(text: str) -> ReassignmentPlan:
    """The file of --reassignment-json-file, not yet checked for repetitions."""
    fields = as_object(_parsed(text))
    _check_version(fields)
    plan = ReassignmentPlan([], {})
    for entry in map(as_object, as_list(fields.get("partitions", []))):
        partition = TopicPartition(string(entry, "topic"), integer(entry, "partition"))
        replicas = [to_integer(replica) for replica in as_list(_needed(entry, "replicas"))]
        dirs = [_path(path) for path in as_list(entry["log_dirs"])] if "log_dirs" in entry else [ANY_LOG_DIR] * len(replicas)
        if len(dirs) != len(replicas):
            raise AdminCommandFailed(
                f"Size of replicas list {_listed(replicas)} is different from size of log dirs list {_listed(dirs)} "
                f"for partition {partition}"
            )
        plan.partitions.append((partition, replicas))
        for replica, path in zip(replicas, dirs, strict=True):
            if path != ANY_LOG_DIR:
                plan.log_dirs[PartitionReplica(partition.topic, partition.partition, replica)] = path
    return plan


def check_plan(plan: ReassignmentPlan) -> dict[TopicPartition, list[int]]:
    """The replicas by partition; raises an error for a plan that cannot be executed."""
    if not plan.partitions:
        raise AdminCommandFailed("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise AdminCommandFailed("Partition replica list cannot be empty")
    repeated = duplicates([partition for partition, _ in plan.partitions])
    if repeated:
        raise AdminCommandFailed(f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, repeated))}")
    twice = [(partition, duplicates(replicas)) for partition, replicas in plan.partitions]
    complaints = [f"{partition} contains multiple entries for {','.join(map(str, brokers))}" for partition, brokers in twice if brokers]
    if complaints:
        raise AdminCommandFailed(f"Partition replica lists may not contain duplicate entries: {'. '.join(complaints)}")
    return dict(plan.partitions)


def parse_topics(text: str) -> list[str]:
    """The file of --topics-to-move-json-file."""
    value = parse_json(text)
    if value is None:
        raise AdminOperation("The input string is not a valid JSON")
    fields = as_object(value)
    _check_version(fields)
    topics = [string(as_object(entry), "topic") for entry in as_list(fields.get("topics", []))]
    repeated = duplicates(topics)
    if repeated:
        raise AdminCommandFailed(f"List of topics to reassign contains duplicate entries: {_listed(repeated)}")
    return topics


def parse_brokers(text: str) -> list[int]:
    """The value of --broker-list."""
    brokers = []
    for word in text.rstrip(",").split(","):
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", word):
            raise BadArgument(f'For input string: "{word}"')
        brokers.append(int(word))
    repeated = duplicates(brokers)
    if repeated:
        raise AdminCommandFailed(f"Broker list contains duplicate entries: {_listed(repeated)}")
    return brokers


def plan_json(assignment: Assignment, log_dirs: Mapping[PartitionReplica, str]) -> str:
    """A plan as Kafka prints it, and takes it again."""
    return compact_json(
        {
            "version": _VERSION,
            "partitions": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "replicas": list(assignment[partition]),
                    "log_dirs": [log_dirs.get(PartitionReplica(*partition, replica), ANY_LOG_DIR) for replica in assignment[partition]],
                }
                for partition in sorted(assignment)
            ],
        }
    )


def check_racks(brokers: Sequence[BrokerMetadata]) -> None:
    without = sum(broker.rack is None for broker in brokers)
    if 0 < without < len(brokers):
        raise AdminOperation(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment "
            "without rack information."
        )


def propose(current: Assignment, brokers: Sequence[BrokerMetadata], random: Random) -> dict[TopicPartition, list[int]]:
    """New replicas for all partitions of the topics from `spread`, with the errors of Kafka 4.2's controller."""
    for partitions in by_topic(current).values():
        factor = len(current[partitions[0]])
        if not brokers:
            raise InvalidReplicationFactor("All brokers are currently fenced.")
        if factor > len(brokers):
            raise InvalidReplicationFactor(
                f"The target replication factor of {factor} cannot be reached because only {len(brokers)} broker(s) are registered."
            )
    return spread(current, brokers, random)


def not_moved(partition: TopicPartition, current: Sequence[int], target: Sequence[int]) -> str:
    return (
        f"There is no active reassignment of partition {partition}, but replica set is {','.join(map(str, current))} "
        f"rather than {','.join(map(str, target))}."
    )


def plural(counted: Sized) -> str:
    return "" if len(counted) == 1 else "s"


def duplicates(values: Iterable[T]) -> list[T]:
    """The values that occur more than once, each listed once."""
    seen: set[T] = set()
    repeated: dict[T, None] = {}
    for value in values:
        if value in seen:
            repeated[value] = None
        seen.add(value)
    return list(repeated)


def _check_version(fields: Mapping[str, Any]) -> None:
    version = to_integer(fields["version"]) if "version" in fields else _VERSION
    if version != _VERSION:
        raise AdminOperation(f"Not supported version field value {version}")


def _needed(fields: Mapping[str, Any], name: str) -> Any:
    if name not in fields:
        raise WrongJson(f"No such field exists: `{name}`")
    return fields[name]


def _path(value: Any) -> str:
    return string({"log_dir": value}, "log_dir")


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _parsed(text: str) -> Any:
    if not text.strip():
        raise AdminOperation("The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise AdminOperation(_refusal(text, error)) from None


def _refusal(text: str, error: json.JSONDecodeError) -> str:
    """Jackson's text for a truncated file; for other errors the position of the first one."""
    rest = text[error.pos :]
    opened = _unclosed(text)
    if not rest.strip() and opened is not None:
        bracket, line, column = opened
        kind = "Array" if bracket == "[" else "Object"
        end = _SOURCE.format(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)
        if text.rstrip().endswith((",", ":")):
            return f"Unexpected end-of-input within/between {kind} entries\n at {end}"
        return f"Unexpected end-of-input: expected close marker for {kind} (start marker at {_SOURCE.format(line, column)})\n at {end}"
    return f"{error.msg}\n at {_SOURCE.format(error.lineno, error.colno)}"


def _unclosed(text: str) -> tuple[str, int, int] | None:
    """The last bracket that is still open at the end, with its line and column."""
    opened: list[tuple[str, int]] = []
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', text):
        if token[0] in "[{":
            opened.append((token[0], token.start()))
        elif token[0] in "]}" and opened:
            opened.pop()
    if not opened:
        return None
    bracket, position = opened[-1]
    return bracket, text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1
