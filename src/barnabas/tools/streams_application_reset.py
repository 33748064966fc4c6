"""Let an application of Kafka Streams begin anew, its offsets and its topics, as kafka-streams-application-reset does.

Options, messages, output and exit codes are those of Apache Kafka 4.2. Kafka's tool moves a consumer and commits with it; this one
computes the same offsets and sets them for the group, which must have no members.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.administration.group_offsets import parse_datetime, parse_duration_ms
from barnabas.tools.command_line.failures import (
    BadArgument,
    ToolError,
    Unreadable,
    described,
    execution,
    failed_with_message,
    finish,
    print_cause,
)
from barnabas.tools.command_line.options import Option, Options, ShowUsage, ShowVersion
from barnabas.tools.connecting.connect import load_properties, open_admin, read_text
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

ABOUT: Final = """Lets an application of Kafka Streams process its data from the beginning.
* The offsets of its input topics are set to the earliest, or to where you say.
* Its internal topics, which Kafka Streams has made ("<application.id>-…"), are found and deleted; --internal-topics names some of them.
* Output topics are not deleted: use kafka-topics for that.
* State on the disks of its instances is not deleted: call KafkaStreams#cleanUp(), or delete the directory under state.dir.
* Members that are gone may block this until their sessions end; --force removes them. Stop all instances first.

*** Without cleaning the local state the results will be wrong!

*** What is done here cannot be undone: look at it with --dry-run first.
"""
_POSITIONS: Final = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
OPTIONS: Final = (
    Option("application-id", "REQUIRED: the application.id.", "required", described_as="id", required=True),
    Option("bootstrap-server", "The brokers to connect to. (default: localhost:9092)", "required", described_as="server to connect to"),
    Option("input-topics", "Topics that the application reads, with commas.", "required", described_as="list", separator=","),
    Option("intermediate-topics", "[deprecated] Topics to skip to their ends.", "required", described_as="list", separator=","),
    Option("internal-topics", "Which internal topics to delete; all without it.", "required", described_as="list", separator=","),
    Option("to-offset", "Begin at this offset.", "required", "Long"),
    Option("to-datetime", "Begin at a time, 'YYYY-MM-DDThh:mm:ss.sss'.", "required"),
    Option("by-duration", "Begin so long before now, 'PnDTnHnMnS'.", "required"),
    Option("to-earliest", "Begin at the beginning."),
    Option("to-latest", "Begin at the end."),
    Option("from-file", "Begin where a CSV file says: topic,partition,offset.", "required"),
    Option("shift-by", "Begin so many records later, or (if negative) earlier.", "required", "Long", "number-of-offsets"),
    Option("config-file", "(DEPRECATED) The same as --command-config.", "required", described_as="file name"),
    Option("command-config", "A properties file for the admin client.", "required", described_as="config-file"),
    Option("force", "Remove the members of the group. Stop all instances first."),
    Option("dry-run", "Only show what would be done."),
)
_DEFAULT_SERVER: Final = "localhost:9092"
_DESCRIBE_TIMEOUT_MS: Final = 10_000
_LIST_TIMEOUT_MS: Final = 60_000
_DELETE_TIMEOUT_MS: Final = 30_000
_LATEST: Final = -1
_EARLIEST: Final = -2
_INTERNAL: Final = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)

Offsets = dict[TopicPartition, int]


class Unparsable(ToolError):
    """ParseException."""

    java_name = "java.text.ParseException"


class StillActive(ToolError):
    """IllegalStateException."""

    java_name = "java.lang.IllegalStateException"


class BadDuration(ToolError):
    """DateTimeParseException."""

    java_name = "java.time.format.DateTimeParseException"


def main(arguments: Sequence[str]) -> int:
    return finish(lambda: _execute(arguments), failed_with_message)


def _execute(arguments: Sequence[str]) -> int:
    options = Options.or_usage(OPTIONS, arguments)
    if options.has("help"):
        options.usage(ABOUT)
    if options.has("version"):
        raise ShowVersion
    for position in _POSITIONS:
        options.refuse_with(position, (other for other in _POSITIONS if other != position))
    try:
        return _reset(options)
    except (ShowUsage, BrokenPipeError):
        raise
    except Exception as error:
        print(f"ERROR: {described(error)}", file=sys.stderr)
        print_cause(error)
        return 1


def _reset(options: Options) -> int:
    if options.has("config-file"):
        print("Option --config-file has been deprecated and will be removed in a future version. Use --command-config instead.")
    config_file = options.optional("command-config") or options.optional("config-file")
    group = options.text("application-id")
    with open_admin(options.optional("bootstrap-server") or _DEFAULT_SERVER, config_file) as admin, execution():
        _check_members(admin, group, force=options.has("force"))
        topics = sorted(admin.list_topics(timeout_ms=_LIST_TIMEOUT_MS))
        if options.has("dry-run"):
            print("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
        reset = load_properties(config_file).get("auto.offset.reset", "latest")
        code = _reset_offsets(admin, group, options, topics, _EARLIEST if reset == "earliest" else _LATEST)
        _delete_internal_topics(admin, options, topics)
        return code


def _check_members(admin: Admin, group: str, *, force: bool) -> None:
    try:
        members = admin.describe_consumer_groups([group], timeout_ms=_DESCRIBE_TIMEOUT_MS)[group].members
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if not members:
        return
    if not force:
        listed = ", ".join(_member_text(member) for member in members)
        raise StillActive(
            f"Consumer group '{group}' is still active and has following members: [{listed}]. "
            "Make sure to stop all running application instances before running the reset tool. "
            "You can use option '--force' to remove active members from the group."
        )
    print(f"Force deleting all active members in the group: {group}")
    admin.remove_members_from_consumer_group(group).all()


def _member_text(member: Any) -> str:
    return f"(memberId={member.consumer_id}, clientId={member.client_id}, host={member.host})"


def _reset_offsets(admin: Admin, group: str, options: Options, topics: Collection[str], reset: int) -> int:
    """Sets the offsets of input and intermediate topics; 1 if one of these is not there."""
    inputs = options.texts("input-topics")
    intermediate = options.texts("intermediate-topics")
    if intermediate:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    if not inputs and not intermediate:
        print("No input or intermediate topics specified. Skipping seek.")
        return 0
    if inputs:
        print(f"Reset-offsets for input topics {_listed(inputs)}")
    if intermediate:
        print(f"Seek-to-end for intermediate topics {_listed(intermediate)}")
    missing = [
        *_print_missing("Following input topics are not found, skipping them", "Topic: ", inputs, topics),
        *_print_missing("Following intermediate topics are not found, skipping them", "Topic:", intermediate, topics),
    ]
    partitions = _partitions(admin, [topic for topic in dict.fromkeys([*inputs, *intermediate]) if topic in topics])
    if partitions:
        moved = _new_offsets(admin, group, options, [partition for partition in partitions if partition.topic in inputs], reset)
        skipped = [partition for partition in partitions if partition.topic not in inputs]
        if skipped:
            print(f"Following intermediate topics offsets will be reset to end (for consumer group {group})")
            for partition in skipped:
                print(f"Topic: {partition.topic}")
            moved |= _log_offsets(admin, skipped, _LATEST)
        if not options.has("dry-run"):
            _commit(admin, group, moved)
        print("Done.")
    return 1 if missing else 0


def _print_missing(sentence: str, prefix: str, required: Sequence[str], topics: Collection[str]) -> list[str]:
    missing = [topic for topic in required if topic not in topics]
    if missing:
        print(sentence)
        for topic in missing:
            print(f"{prefix}{topic}")
    return missing


def _partitions(admin: Admin, topics: Sequence[str]) -> list[TopicPartition]:
    descriptions = admin.describe_topics(topics).all() if topics else {}
    return sorted(TopicPartition(name, info.partition) for name, topic in descriptions.items() for info in topic.partitions)


def _new_offsets(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    if not partitions:
        return {}
    print(f"Following input topics offsets will be reset to (for consumer group {group})")
    try:
        offsets = _POSITION[next((option for option in _POSITION if options.has(option)), "to-earliest")](
            admin, group, options, partitions, reset
        )
    except (Unparsable, Unreadable):
        print("ERROR: Resetting offsets failed.", file=sys.stderr)
        raise
    for partition in partitions:
        print(f"Topic: {partition.topic} Partition: {partition.partition} Offset: {offsets[partition]}")
    return offsets


def _to_offset(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    return _in_range(admin, dict.fromkeys(partitions, options.integer("to-offset")))


def _to_earliest(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    return _log_offsets(admin, partitions, _EARLIEST)


def _to_latest(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    return _log_offsets(admin, partitions, _LATEST)


def _shift_by(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    """The offset at which the group would continue: its committed offset, else the one of auto.offset.reset."""
    shift = options.integer("shift-by")
    committed = admin.list_consumer_group_offsets({group: partitions})[group]
    offsets = {partition: offset.offset for partition, offset in committed.items() if offset is not None}
    offsets |= _log_offsets(admin, [partition for partition in partitions if partition not in offsets], reset)
    return _in_range(admin, {partition: offsets[partition] + shift for partition in partitions})


def _to_datetime(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    try:
        timestamp = parse_datetime(options.text("to-datetime"))
    except ToolError as error:
        raise Unparsable(str(error).removeprefix(f"{Unparsable.java_name}: ")) from None
    return _at_time(admin, partitions, timestamp)


def _by_duration(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    try:
        duration_ms = parse_duration_ms(options.text("by-duration"))
    except ToolError as error:
        raise BadDuration(str(error)) from None
    return _at_time(admin, partitions, time.time_ns() // 1_000_000 - duration_ms)


def _at_time(admin: Admin, partitions: Sequence[TopicPartition], timestamp: int) -> Offsets:
    offsets = _log_offsets(admin, partitions, timestamp)
    late = [partition for partition in partitions if offsets[partition] < 0]
    ends = _log_offsets(admin, late, _LATEST)
    for partition in late:
        print(
            f"Partition {partition.partition} from topic {partition.topic} is empty, without a committed record. "
            "Falling back to latest known offset."
        )
    return offsets | ends


def _from_file(admin: Admin, group: str, options: Options, partitions: Sequence[TopicPartition], reset: int) -> Offsets:
    path = options.text("from-file")
    plan = parse_reset_plan(read_text(path))
    for partition in set(plan) ^ set(partitions):
        where = "of --input-topics it is none" if partition in plan else f"{path} has no offset for it"
        raise BadArgument(f"Partition {partition}: {where}. The file has to name each partition of the input topics, and no other.")
    return _in_range(admin, {partition: plan[partition] for partition in partitions})


def parse_reset_plan(text: str) -> Offsets:
    """`topic,partition,offset` in each line."""
    if not text:
        raise Unparsable("Error parsing reset plan CSV file. It is empty,")
    plan: Offsets = {}
    for line in text.rstrip("\n").split("\n"):
        words = line.rstrip(",").split(",")
        if len(words) != 3:
            raise Unparsable("Reset plan CSV file is not following the format `TOPIC,PARTITION,OFFSET`.")
        plan[TopicPartition(words[0], _number(words[1]))] = _number(words[2])
    return plan


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise BadArgument(f'For input string: "{text}"')
    return int(text)


def _in_range(admin: Admin, offsets: Offsets) -> Offsets:
    """The offsets, moved into the range of the partition."""
    ends = _log_offsets(admin, list(offsets), _LATEST)
    beginnings = _log_offsets(admin, list(offsets), _EARLIEST)
    return {partition: bounded(offset, beginnings[partition], ends[partition]) for partition, offset in offsets.items()}


def bounded(offset: int, beginning: int, end: int) -> int:
    """Prints a line if it changes the offset; as in Kafka, also if the offset is the very first."""
    if offset >= end:
        print(f"New offset ({offset}) is higher than latest offset. Value will be set to {end}")
        return end
    if offset <= beginning:
        print(f"New offset ({offset}) is lower than earliest offset. Value will be set to {beginning}")
        return beginning
    return offset


def _log_offsets(admin: Admin, partitions: Iterable[TopicPartition], timestamp: int) -> Offsets:
    from barnabas.client.admin.topics.offsets import OffsetSpec

    specs = {partition: OffsetSpec(timestamp) for partition in partitions}
    return {partition: info.offset for partition, info in admin.list_offsets(specs).all().items()} if specs else {}


def _commit(admin: Admin, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata

    admin.alter_consumer_group_offsets(group, {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}).all()


def _delete_internal_topics(admin: Admin, options: Options, topics: Iterable[str]) -> None:
    inferred = [topic for topic in topics if _is_internal_of(topic, options)]
    chosen = options.texts("internal-topics")
    if not set(chosen) <= set(inferred):
        raise BadArgument(
            "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all internal topics. "
            "Do a dry run without the --internal-topics option to see the list of all internal topics that can be deleted."
        )
    print(f"Deleting {'specified' if chosen else 'inferred'} internal topics {_listed(chosen or inferred)}")
    if not options.has("dry-run") and (chosen or inferred):
        outcomes = admin.delete_topics(chosen or inferred, timeout_ms=_DELETE_TIMEOUT_MS)
        for topic, error in outcomes.errors.items():
            print(f"ERROR: deleting topic {topic}\n{described(error)}", file=sys.stderr)
        if outcomes.errors:
            raise ToolError("Encountered an error deleting one or more topics")
    print("Done.")


def _is_internal_of(topic: str, options: Options) -> bool:
    """A topic that the application reads may be called like an internal one by chance."""
    named = topic in options.texts("input-topics") or topic in options.texts("intermediate-topics")
    return not named and topic.startswith(f"{options.text('application-id')}-") and matches_internal_topic_format(topic)


def matches_internal_topic_format(topic: str) -> bool:
    return _INTERNAL.fullmatch(topic) is not None


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


_POSITION: Final[Mapping[str, Callable[[Admin, str, Options, Sequence[TopicPartition], int], Offsets]]] = {
    "to-offset": _to_offset,
    "to-earliest": _to_earliest,
    "to-latest": _to_latest,
    "shift-by": _shift_by,
    "to-datetime": _to_datetime,
    "by-duration": _by_duration,
    "from-file": _from_file,
}
