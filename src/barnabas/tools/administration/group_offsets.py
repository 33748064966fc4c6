"""The offsets of consumer groups: committed and log end offsets, resets and deletions.

Used by kafka-consumer-groups and kafka-streams-application-reset, with the errors and warnings of Kafka's tools.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.administration import offset_resets
from barnabas.administration.offset_resets import UNKNOWN_OFFSET, Offsets
from barnabas.client.errors import LeaderNotAvailable
from barnabas.errors import GroupIdNotFound, KafkaError, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.administration import group_text
from barnabas.tools.command_line.failures import BadArgument, ToolError, WrappedExecution, described, wrapped_execution
from barnabas.tools.command_line.options import Options
from barnabas.tools.connecting.connect import read_text
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_LATEST: Final = -1
_EARLIEST: Final = -2


def log_offsets(admin: Admin, partitions: Collection[TopicPartition], timestamp: int, timeout_ms: int) -> dict[TopicPartition, Any]:
    from barnabas.client.admin.topics.offsets import OffsetSpec

    if not partitions:
        return {}
    with wrapped_execution():
        return admin.list_offsets(dict.fromkeys(partitions, OffsetSpec(timestamp)), timeout_ms=timeout_ms).all()


def committed_offsets(admin: Admin, group: str, timeout_ms: int) -> dict[TopicPartition, Any]:
    with wrapped_execution():
        committed: Mapping[TopicPartition, Any] = admin.list_consumer_group_offsets(group, timeout_ms=timeout_ms)[group]
    return {partition: offset for partition, offset in committed.items() if offset is not None}


def topic_partitions(admin: Admin, topics: Iterable[str], timeout_ms: int) -> dict[TopicPartition, Any]:
    """The partitions of topics, each with its description."""
    names = sorted(set(topics))
    described_topics = admin.describe_topics(names, timeout_ms=timeout_ms).all() if names else {}
    return {TopicPartition(name, info.partition): info for name, topic in described_topics.items() for info in topic.partitions}


def offset_rows(admin: Admin, group: str, description: Any, timeout_ms: int) -> list[group_text.Row]:
    """A row for each partition that is assigned to a member or has a committed offset."""
    committed = committed_offsets(admin, group, timeout_ms)
    rows: list[group_text.Row] = []
    assigned: set[TopicPartition] = set()
    members = [member for member in description.members if member.assignment.topic_partitions]
    for member in sorted(members, key=lambda candidate: -len(candidate.assignment.topic_partitions)):
        partitions = set(member.assignment.topic_partitions)
        assigned |= partitions
        rows += _rows(admin, group, partitions, committed, (member.consumer_id, member.host, member.client_id), timeout_ms)
    rest = set(committed) - assigned
    if rest:
        rows += _rows(admin, group, rest, committed, (group_text.MISSING,) * 3, timeout_ms)
    return rows


def _rows(
    admin: Admin,
    group: str,
    partitions: set[TopicPartition],
    committed: Mapping[TopicPartition, Any],
    member: Sequence[str],
    timeout_ms: int,
) -> list[group_text.Row]:
    with wrapped_execution():
        infos = topic_partitions(admin, (partition.topic for partition in partitions), timeout_ms)
    without_leader = {partition for partition in partitions if partition in infos and infos[partition].leader is None}
    ends = log_offsets(admin, partitions - without_leader, _LATEST, timeout_ms)
    rows = []
    for partition in sorted(partitions):
        offset = committed.get(partition)
        end = ends[partition].offset if partition in ends else None
        rows.append(
            {
                "group": group,
                "topic": partition.topic,
                "partition": partition.partition,
                "leader-epoch": None if offset is None else offset.leader_epoch,
                "current-offset": None if offset is None else offset.offset,
                "log-end-offset": end,
                "lag": None if offset is None or end is None else end - offset.offset,
                "consumer-id": member[0],
                "host": member[1],
                "client-id": member[2],
            }
        )
    return rows


class Resets:
    """Computes the new offsets of groups, and commits them unless the command is a dry run."""

    def __init__(self, admin: Admin, options: Options, timeout_ms: int) -> None:
        self._admin = admin
        self._options = options
        self._timeout_ms = timeout_ms

    def of_groups(self, groups: Sequence[str]) -> dict[str, Offsets]:
        outcomes = self._admin.describe_consumer_groups(groups, timeout_ms=self._timeout_ms)
        plan: dict[str, Offsets] = {}
        for group in groups:
            try:
                state = str(outcomes[group].group_state)
            except GroupIdNotFound:
                state = "Dead"
            except KafkaError as error:
                raise WrappedExecution(error) from error
            if state in ("Empty", "Dead"):
                plan[group] = self._of_group(group)
            else:
                print(f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}.")
                plan[group] = {}
        return plan

    def _of_group(self, group: str) -> Offsets:
        from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata

        partitions = self._partitions(group)
        self._check_partitions(partitions)
        offsets = self._new_offsets(group, partitions)
        if self._options.has("execute"):
            commits = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
            self._admin.alter_consumer_group_offsets(group, commits, timeout_ms=self._timeout_ms).all()
        return dict(sorted(offsets.items()))

    def _partitions(self, group: str) -> list[TopicPartition]:
        options = self._options
        if options.has("all-topics"):
            return list(committed_offsets(self._admin, group, self._timeout_ms))
        if options.has("topic"):
            return parse_topics(self._admin, options.texts("topic"), self._timeout_ms)
        if not options.has("from-file"):
            options.usage("One of the reset scopes should be defined: --all-topics, --topic.")
        return []

    def _check_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        with wrapped_execution():
            infos = topic_partitions(self._admin, (partition.topic for partition in partitions), self._timeout_ms)
        missing = [str(partition) for partition in partitions if partition not in infos]
        if missing:
            raise UnknownTopicOrPartition(f'The partitions "{",".join(missing)}" do not exist')
        headless = [str(partition) for partition in partitions if infos[partition].leader is None]
        if headless:
            raise LeaderNotAvailable(f'The partitions "{",".join(headless)}" have no leader')

    def _new_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
        options = self._options
        if options.has("to-offset"):
            return self._in_range(dict.fromkeys(partitions, options.integer("to-offset")))
        if options.has("to-earliest"):
            return self._ends(partitions, _EARLIEST)
        if options.has("to-latest"):
            return self._ends(partitions, _LATEST)
        if options.has("shift-by"):
            return self._in_range(self._shifted(group, partitions, options.integer("shift-by")))
        if options.has("to-datetime"):
            return self.at_time(partitions, parse_datetime(options.text("to-datetime")))
        if options.has("by-duration"):
            return self.at_time(partitions, int(time.time() * 1000) - parse_duration_ms(options.text("by-duration")))
        if options.has("from-file"):
            return self._from_file(group)
        if options.has("to-current"):
            return self._current(group, partitions)
        scenarios = ["to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file"]
        listed = ", ".join(f"[{scenario}]" for scenario in scenarios)
        options.usage(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")

    def _ends(self, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
        return {partition: info.offset for partition, info in log_offsets(self._admin, partitions, timestamp, self._timeout_ms).items()}

    def _in_range(self, offsets: Offsets) -> Offsets:
        return offset_resets.in_range(offsets, self._ends(offsets, _EARLIEST), self._ends(offsets, _LATEST))

    def _shifted(self, group: str, partitions: Sequence[TopicPartition], shift: int) -> Offsets:
        committed = committed_offsets(self._admin, group, self._timeout_ms)
        for partition in partitions:
            if partition not in committed:
                raise BadArgument(f"Cannot shift offset for partition {partition} since there is no current committed offset")
        return offset_resets.shifted({partition: offset.offset for partition, offset in committed.items()}, partitions, shift)

    def _current(self, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
        committed = committed_offsets(self._admin, group, self._timeout_ms)
        return {partition: committed[partition].offset for partition in partitions if partition in committed} | self._ends(
            [partition for partition in partitions if partition not in committed], _LATEST
        )

    def at_time(self, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
        offsets = self._ends(partitions, timestamp)
        empty = [partition for partition, offset in offsets.items() if offset == UNKNOWN_OFFSET]
        for partition in empty:
            print(f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. Falling back to latest known offset.")
        return {partition: offset for partition, offset in offsets.items() if offset != UNKNOWN_OFFSET} | self._ends(empty, _LATEST)

    def _from_file(self, group: str) -> Offsets:
        plan = parse_plan(read_text(self._options.text("from-file")), self._options.texts("group"))
        if group not in plan:
            print(f"\nError: No reset plan for group {group} found")
            return {}
        return self._in_range(plan[group])


def parse_topics(admin: Admin, arguments: Sequence[str], timeout_ms: int) -> list[TopicPartition]:
    """`topic` for all its partitions, or `topic:0,1`."""
    named = [partition for text in arguments if ":" in text for partition in parse_topic(text)]
    whole = [text for text in arguments if ":" not in text]
    return named + list(topic_partitions(admin, whole, timeout_ms))


def parse_topic(text: str) -> list[TopicPartition]:
    parts = text.rstrip(":").split(":")
    if len(parts) != 2:
        raise BadArgument(f"Invalid topic arg '{text}', expected topic name and partitions")
    partitions = []
    for number in parts[1].split(","):
        if not re.fullmatch(r"[+-]?\d{1,10}", number):
            raise BadArgument(f"Invalid partition '{number}' specified in topic arg '{text}''")
        partitions.append(TopicPartition(parts[0], int(number)))
    return partitions


def parse_datetime(text: str) -> int:
    """Milliseconds of `2026-01-31T23:59:59.999`, in UTC unless it names a zone."""
    if "T" not in text.rstrip("T"):
        raise ToolError("java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    try:
        return offset_resets.parse_datetime(text)
    except ValueError:
        with_zone = text if re.search("[+Z-]", text.split("T")[1]) else f"{text}Z"
        raise ToolError(f'java.text.ParseException: Unparseable date: "{with_zone}"') from None


def parse_duration_ms(text: str) -> int:
    """Milliseconds of `P1DT2H3M4.5S`."""
    try:
        return offset_resets.parse_duration_ms(text)
    except ValueError:
        raise ToolError("Text cannot be parsed to a Duration") from None


def as_csv(plan: Mapping[str, Offsets], *, with_group: bool) -> str:
    lines = []
    for group, offsets in plan.items():
        for partition, offset in offsets.items():
            fields = [_csv(partition.topic), str(partition.partition), str(offset)]
            lines.append(",".join([_csv(group), *fields] if with_group else fields) + "\n")
    return "".join(lines)


def _csv(text: str) -> str:
    """Quoted as Kafka's CSV writer quotes: long texts always, short ones if a character needs it."""
    if len(text) > 24 or any(ord(character) < ord("-") for character in text):
        return '"' + text.replace('"', '""') + '"'
    return text


def parse_plan(text: str, groups: Sequence[str]) -> dict[str, Offsets]:
    """Lines of `topic,partition,offset`, or of `group,topic,partition,offset`."""
    import csv

    rows = [row for row in csv.reader(text.splitlines()) if row]
    plan: dict[str, Offsets] = {}
    for row in rows:
        named = row if len(row) == 4 else [groups[0], *row] if len(groups) == 1 else row
        if len(named) != 4 or not all(re.fullmatch(r"\s*[+-]?\d+\s*", number) for number in named[2:]):
            raise ToolError(f"The line `{','.join(row)}` of the plan is not of the form [group,]topic,partition,offset")
        plan.setdefault(named[0], {})[TopicPartition(named[1], int(named[2]))] = int(named[3])
    return plan


def delete_offsets(admin: Admin, options: Options, timeout_ms: int) -> None:
    group = options.text("group")
    statuses: dict[TopicPartition, str] = {}
    partitions = [partition for text in options.texts("topic") if ":" in text for partition in parse_topic(text)]
    whole = [text for text in options.texts("topic") if ":" not in text]
    descriptions = admin.describe_topics(whole, timeout_ms=timeout_ms) if whole else {}
    for topic in descriptions:
        try:
            partitions += [TopicPartition(topic, info.partition) for info in descriptions[topic].partitions]
        except KafkaError as error:
            statuses[TopicPartition(topic, -1)] = f"Error: {described(error)}"
    outcomes = admin.delete_consumer_group_offsets(group, partitions, timeout_ms=timeout_ms)
    _print_top_level(group, next(iter(outcomes.errors.values()), None))
    for partition in partitions:
        statuses[partition] = "Successful" if partition not in outcomes.errors else f"Error: {described(outcomes.errors[partition])}"
    group_text.print_deletions(statuses)


def _print_top_level(group: str, error: KafkaError | None) -> None:
    if error is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
        return
    whole_group = (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    )
    by_partition = (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = next((member for member in ErrorCode if member == error.code), ErrorCode.UNKNOWN_SERVER_ERROR)
    if code in whole_group:
        print(f"\nError: {code.message}")
    elif code in by_partition:
        print("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"\nError: Encountered some unknown error: {code.name}", file=sys.stdout)
