"""Elect leaders of partitions, preferred or unclean, as kafka-leader-election does.

Options, messages, output and exit codes are those of Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.command_line.failures import (
    AdminCommandFailed,
    AdminOperation,
    ToolError,
    Unreadable,
    WrappedExecution,
    described,
    failed_with_message,
    finish,
)
from barnabas.tools.command_line.json_plan import as_list, as_object, integer, parse_json, string
from barnabas.tools.command_line.options import Option, Options, UsageError
from barnabas.tools.command_line.text import JSON, coloured, print_json
from barnabas.tools.connecting.connect import open_admin, read_text
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = (
    "This tool attempts to elect a new leader for a set of topic partitions. "
    "The type of elections supported are preferred replicas and unclean replicas."
)
OPTIONS: Final = (
    Option("bootstrap-server", "REQUIRED: the brokers to connect to, with commas between them.", "required", described_as="host:port"),
    Option("admin.config", "(DEPRECATED) The same as --command-config.", "required", described_as="config file"),
    Option("command-config", "A properties file for the admin client.", "required", described_as="Config file"),
    Option(
        "path-to-json-file",
        'A JSON file with the partitions, as in\n{"partitions":\n\t[{"topic": "foo", "partition": 1},\n'
        '\t {"topic": "foobar", "partition": 2}]\n}\n'
        "Not with --all-topic-partitions or --topic.",
        "required",
        described_as="Path to JSON file",
    ),
    Option("topic", "The topic; --partition goes with it.", "required", described_as="topic name"),
    Option("partition", "The partition of --topic.", "required", "Integer", "partition id"),
    Option("all-topic-partitions", "All partitions for which the election makes sense."),
    Option(
        "election-type",
        'REQUIRED: "preferred" elects the first replica where it does not lead, "unclean" any replica that is alive where nobody leads.',
        "required",
        described_as="election type",
    ),
    JSON,
)
_TYPES: Final = ("PREFERRED", "UNCLEAN")
_TIMEOUT_MS: Final = 30_000


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options(OPTIONS, arguments)
    options.maybe_help_or_version(ABOUT)
    _check(options)
    election = options.text("election-type").upper()
    if election not in _TYPES:
        raise UsageError(f"Cannot parse argument '{options.text('election-type')}' of option election-type")
    partitions: list[TopicPartition] | None = None
    if options.has("path-to-json-file"):
        partitions = parse_partitions(_read(options.text("path-to-json-file")))
    elif options.has("topic"):
        partitions = [TopicPartition(options.text("topic"), options.integer("partition"))]
    if options.has("admin.config"):
        print("Option --admin.config has been deprecated and will be removed in a future version. Use --command-config instead.")
    config = options.optional("admin.config") or options.optional("command-config")
    with open_elections(options.text("bootstrap-server"), config) as admin:
        outcome = elect(admin, election, partitions)
    if options.has("json"):
        return outcome.show_json()
    outcome.show(f"leader election ({election})", "Valid replica", "replica(s)")
    return 0


def _read(path: str) -> str:
    try:
        return read_text(path)
    except Unreadable as error:
        raise ToolError(described(error)) from None


def open_elections(bootstrap: str, config: str | None) -> Admin:
    defaults = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS // 2)}
    return open_admin(bootstrap, config, defaults)


def _check(options: Options) -> None:
    missing = [name for name in ("bootstrap-server", "election-type") if not options.has(name)]
    if missing:
        raise AdminCommandFailed(f"Missing required option(s): {', '.join(missing)}")
    options.refuse_with("admin.config", ("command-config",))
    exclusive = ("topic", "all-topic-partitions", "path-to-json-file")
    if sum(map(options.has, exclusive)) != 1:
        raise AdminCommandFailed(f"One and only one of the following options is required: {', '.join(exclusive)}")
    if options.has("topic") and not options.has("partition"):
        raise AdminCommandFailed("Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise AdminCommandFailed("Option partition is only allowed if topic is used")


@dataclass(frozen=True)
class ElectionOutcome:
    """What came of elections, by partition."""

    elected: list[str]
    needless: list[str]
    failed: dict[str, KafkaError]

    @classmethod
    def of(cls, results: Mapping[TopicPartition, KafkaError | None]) -> ElectionOutcome:
        by_name = {str(partition): results[partition] for partition in sorted(results)}
        failed = {
            partition: error for partition, error in by_name.items() if error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED
        }
        elected = [partition for partition, error in by_name.items() if error is None]
        return cls(elected, [partition for partition in by_name if partition not in failed and partition not in elected], failed)

    def show(self, election: str, already: str, replicas: str) -> None:
        """In the words of a tool; raises where an election failed."""
        if self.elected:
            print(f"Successfully completed {election} for partitions {coloured(', '.join(self.elected), 'green')}")
        if self.needless:
            print(f"{already} already elected for partitions {', '.join(self.needless)}")
        for partition, error in self.failed.items():
            print(f"Error completing {election} for partition: {coloured(partition, 'red')}: {described(error)}")
        if self.failed:
            raise AdminCommandFailed(f"{len(self.failed)} {replicas} could not be elected")

    def show_json(self) -> int:
        failed = {partition: described(error) for partition, error in self.failed.items()}
        print_json({"elected": self.elected, "alreadyElected": self.needless, "failed": failed})
        return 1 if failed else 0


def elect(admin: Admin, election: str, partitions: Sequence[TopicPartition] | None) -> ElectionOutcome:
    from barnabas.client.admin.topics.elections import ElectionType

    try:
        outcomes: Any = admin.elect_leaders(ElectionType[election], partitions)
    except KafkaError as error:
        if error.code == ErrorCode.REQUEST_TIMED_OUT:
            message = "Timeout waiting for election results"
        elif error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            message = "Not authorized to perform leader election"
        else:
            raise WrappedExecution(error) from error
        print(message)
        raise AdminCommandFailed(message) from error
    return ElectionOutcome.of({partition: outcomes.errors.get(partition) for partition in outcomes})


def parse_partitions(
    text: str, data: str = "Replica election data", missing: str = 'is missing "partitions" field'
) -> list[TopicPartition]:
    """The partitions of a file; refuses one that is named twice. `data` is what the tool calls it."""
    plan = parse_json(text)
    if plan is None:
        raise AdminOperation(f"{data} is empty")
    fields = as_object(plan)
    if "partitions" not in fields:
        raise AdminOperation(f"{data} {missing}")
    partitions = [
        TopicPartition(string(entry, "topic"), integer(entry, "partition")) for entry in map(as_object, as_list(fields["partitions"]))
    ]
    repeated = dict.fromkeys(partition for partition in partitions if partitions.count(partition) > 1)
    if repeated:
        raise AdminOperation(f"{data} contains duplicate partitions: [{', '.join(map(str, repeated))}]")
    return partitions
