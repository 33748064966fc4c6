"""Print the offsets of partitions: their end, their beginning, or where a time begins, as kafka-get-offsets does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.command_line.failures import Terse, described, execution, finish, message_of, print_cause
from barnabas.tools.command_line.options import Option, Options, UsageError
from barnabas.tools.command_line.text import JSON, print_json
from barnabas.tools.command_line.topic_filter import IncludeList, PartitionRule
from barnabas.tools.connecting.connect import address_fault, command_config_option, open_admin
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = "An interactive shell for getting topic-partition offsets."
_UNKNOWN_OFFSET: Final = -1
_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
# The names of times that are none, and the numbers that stand for them on the command line.
TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_TIMES_TEXT: Final = (
    "-1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload"
)
OPTIONS: Final = (
    Option(
        "bootstrap-server",
        "REQUIRED: the broker to connect to, as host:port; several separated by commas.",
        "required",
        described_as="HOST1:PORT1,...,HOST3:PORT3",
    ),
    Option("broker-list", "The name that --bootstrap-server had before Kafka 3.0.", "required", described_as="HOST1:PORT1,...,HOST3:PORT3"),
    Option(
        "topic-partitions",
        "Patterns separated by commas, each a regular expression for topics (all without one), and after a colon partitions: "
        "a number, a range LOW-HIGH without its upper end, LOW- or -HIGH.",
        "required",
        described_as="topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
    ),
    Option("topic", "The topic, or a regular expression for topics; not with --topic-partitions.", "required", described_as="topic"),
    Option("partitions", "Partitions separated by commas; not with --topic-partitions.", "required", described_as="partition ids"),
    Option(
        "time",
        "A timestamp in ms, for the first offset at or after it, or one of the names. Partitions without such a record are left out.",
        "required",
        described_as=f"<timestamp> / {_TIMES_TEXT}",
        default="latest",
    ),
    command_config_option(),
    Option("exclude-internal-topics", "Leave out Kafka's internal topics."),
    JSON,
)


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), _failed)


def _failed(error: Exception) -> int:
    print(f"Error occurred: {message_of(error)}", file=sys.stderr)
    print_cause(error)
    return 1


def _execute(arguments: Sequence[str]) -> None:
    try:
        options = Options(OPTIONS, arguments)
    except UsageError as error:
        raise Terse(str(error)) from None
    options.maybe_help_or_version(ABOUT)
    address = "broker-list" if options.has("broker-list") and not options.has("bootstrap-server") else "bootstrap-server"
    options.require(address)
    fault = address_fault(options.text(address))
    if fault is not None:
        options.usage(fault)
    if options.has("topic-partitions") and (options.has("topic") or options.has("partitions")):
        raise Terse("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = parse_time(options.text("time"))
    rules = parse_rules(options)
    with open_admin(options.text(address), options.optional("command-config"), client_id="GetOffsetShell") as admin:
        offsets = _offsets(admin, rules, timestamp, not options.has("exclude-internal-topics"))
    if options.has("json"):
        print_json(
            [{"topic": partition.topic, "partition": partition.partition, "offset": offset} for partition, offset in offsets.items()]
        )
        return
    for partition, offset in offsets.items():
        print(f"{partition.topic}:{partition.partition}:{offset}")


def _offsets(admin: Admin, rules: Sequence[PartitionRule], timestamp: int, internal: bool) -> dict[TopicPartition, int]:
    with execution():
        names = [name for name in admin.list_topics(list_internal=internal) if any(rule.allows_topic(name) for rule in rules)]
        descriptions = admin.describe_topics(names).all() if names else {}
    partitions = [TopicPartition(name, info.partition) for name, topic in descriptions.items() for info in topic.partitions]
    partitions = [partition for partition in partitions if any(rule.allows(partition) for rule in rules)]
    if not partitions:
        raise Terse("Could not match any topic-partitions with the specified filters")
    outcomes = admin.list_offsets({partition: offset_spec(timestamp) for partition in partitions})
    for partition, error in outcomes.errors.items():
        print(f"Skip getting offsets for topic-partition {partition} due to error: {described(error)}", file=sys.stderr)
    offsets = {partition: info.offset for partition, info in outcomes.successes.items() if info.offset != _UNKNOWN_OFFSET}
    return dict(sorted(offsets.items(), key=lambda item: str(item[0])))


def parse_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -_LONG_MAX - 1 <= int(text) <= _LONG_MAX:
        raise Terse(f"Malformed time argument {text}. Please use {_TIMES_TEXT}, or a specified long format timestamp")
    return int(text)


def offset_spec(timestamp: int) -> Any:
    from barnabas.client.admin.topics.offsets import OffsetSpec

    return OffsetSpec(timestamp)


def parse_rules(options: Options) -> list[PartitionRule]:
    if options.has("topic-partitions"):
        return [_rule(text) for text in options.text("topic-partitions").split(",")]
    numbers = _partition_set(options.optional("partitions") or "")
    return [PartitionRule(IncludeList(options.optional("topic") or ".*"), lambda number: not numbers or number in numbers)]


def _rule(text: str) -> PartitionRule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise Terse(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}")
    topics = IncludeList(match[1] or ".*")
    if match[2]:
        only = int(match[2])
        return PartitionRule(topics, lambda number: number == only)
    low, high = int(match[3] or 0), int(match[4] or _INT_MAX)
    return PartitionRule(topics, lambda number: low <= number < high)


def _partition_set(text: str) -> set[int]:
    try:
        return {int(number) for number in text.split(",")} if text else set()
    except ValueError:
        raise Terse(f"--partitions expects a comma separated list of numeric partition ids, but received: {text}") from None
