"""The tables of kafka-consumer-groups, column for column as Apache Kafka 4.2 prints them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.tools.command_line.text import coloured, heading
from barnabas.topic_partition import TopicPartition

MISSING: Final = "-"
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
Row = dict[str, Any]


def shown(value: Any) -> str:
    """A cell of a table."""
    return MISSING if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _padded(values: Sequence[str], widths: Sequence[int]) -> str:
    """Each value padded to its width, but the last."""
    return " ".join(f"{value:{width}}" for value, width in zip(values, (*widths, 0), strict=True))


def _width(rows: Sequence[Row], column: str, least: int = 15) -> int:
    return max([least, *(len(shown(row[column])) for row in rows)])


def print_groups(groups: Sequence[tuple[str, str, str]], with_type: bool, with_state: bool) -> None:
    width = max([15, *(len(name) for name, _, _ in groups)]) + 10
    for number, (name, kind, state) in enumerate((("GROUP", "TYPE", "STATE"), *groups)):
        line = f"{name:{width}}" + (f" {kind:20}" if with_type else "") + (f" {state:20}" if with_state else "")
        print(heading(line) if number == 0 else line)


def is_worth_printing(group: str, state: str, rows: int) -> bool:
    """Prints the warning about a group's state, and returns whether there are rows to print."""
    if state == "Dead":
        print(f"\nError: Consumer group '{group}' does not exist.")
    elif state == "Empty":
        print(f"\nConsumer group '{group}' has no active members.", file=sys.stderr)
    elif state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group}' is rebalancing.", file=sys.stderr)
    elif state != "Stable":
        from barnabas.tools.command_line.failures import ToolError

        raise ToolError(f"Expected a valid consumer group state, but found '{state}'.")
    return state != "Dead" and rows > 0


def print_offsets(group: str, state: str, rows: Sequence[Row], verbose: bool) -> None:
    if not is_worth_printing(group, state, len(rows)):
        return
    columns = ["group", "topic", "partition", *(["leader-epoch"] if verbose else []), "current-offset", "log-end-offset", "lag"]
    columns += ["consumer-id", "host", "client-id"]
    fixed = {"partition": 10, "leader-epoch": 15, "current-offset": 15, "log-end-offset": 15, "lag": 15}
    widths = [fixed.get(column) or _width(rows, column) for column in columns[:-1]]
    print("\n" + heading(_padded([column.upper() for column in columns], widths)), end="")
    for row in rows:
        line = _padded([shown(row[column]) for column in columns], widths)
        print("\n" + (coloured(line, "yellow") if row["lag"] else line), end="")
    print()


def member_rows(description: Any) -> list[Row]:
    return [
        {
            "group": description.group_id,
            "consumer-id": member.consumer_id,
            "group-instance-id": member.group_instance_id or "",
            "host": member.host,
            "client-id": member.client_id,
            "#partitions": len(member.assignment.topic_partitions),
            "current-epoch": member.member_epoch,
            "current-assignment": _assignment(member.assignment.topic_partitions),
            "target-epoch": description.target_assignment_epoch,
            "target-assignment": _assignment(member.target_assignment.topic_partitions if member.target_assignment is not None else ()),
            "upgraded": member.upgraded,
        }
        for member in description.members
    ]


def print_members(group: str, state: str, rows: Sequence[Row], verbose: bool) -> None:
    sized = rows if is_worth_printing(group, state, len(rows)) else []
    columns = ["group", "consumer-id"]
    if any(row["group-instance-id"] for row in sized):
        columns.append("group-instance-id")
    columns += ["host", "client-id", "#partitions"]
    widths = [_width(sized, column, 17 if column == "group-instance-id" else 15) for column in columns[:-1]] + [15]
    more: list[str] = []
    if verbose:
        more = ["current-epoch", "current-assignment", "target-epoch", "target-assignment"]
        if {True, False} <= {row["upgraded"] for row in sized}:
            more.append("upgraded")
    for number, row in enumerate(({name: name.upper() for name in (*columns, *more)}, *rows)):
        line = "".join(f"{shown(row[name]):{width}} " for name, width in zip(columns, widths, strict=True)) + _more(row, more, sized)
        print("\n" + heading(line) if number == 0 else line)


def _more(row: Mapping[str, Any], columns: Sequence[str], rows: Sequence[Row]) -> str:
    if not columns:
        return ""
    widths = [15, _width(rows, "current-assignment", 20), 15, _width(rows, "target-assignment", 20)]
    line = " ".join(
        f"{shown(row[name] or None if name.endswith('assignment') else row[name]):{width}}"
        for name, width in zip(columns, widths, strict=False)
    )
    return f"{line} {shown(row['upgraded'])}" if "upgraded" in columns else line


def _assignment(partitions: Sequence[TopicPartition]) -> str | None:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return ";".join(sorted(f"{topic}:{','.join(map(str, sorted(numbers)))}" for topic, numbers in topics.items())) or None


def state_row(group: str, description: Any) -> Row:
    node = description.coordinator
    return {
        "group": group,
        "coordinator (id)": f"{node.host}:{node.port}  ({node.id})",
        "assignment-strategy": description.partition_assignor or None,
        "state": str(description.group_state),
        "group-epoch": description.group_epoch,
        "target-assignment-epoch": description.target_assignment_epoch,
        "#members": len(description.members),
    }


def print_state(group: str, row: Row, verbose: bool) -> None:
    if not is_worth_printing(group, row["state"], 1):
        return
    columns = ["group", "coordinator (id)", "assignment-strategy", "state"]
    widths = [_width([row], "group"), _width([row], "coordinator (id)", 25), 20, 20]
    if verbose:
        columns += ["group-epoch", "target-assignment-epoch"]
        widths += [15, 25]
    columns.append("#members")
    print("\n" + heading(_padded([column.upper() for column in columns], widths)))
    print(_padded([shown(row[column]) for column in columns], widths))


def print_new_offsets(plan: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    groups = max([15, *(len(group) for group in plan)])
    topics = max([15, *(len(partition.topic) for offsets in plan.values() for partition in offsets)])
    if plan:
        print("\n" + heading(_padded(["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], [groups, topics, 10])), end="")
    for group, offsets in plan.items():
        for partition, offset in offsets.items():
            print("\n" + _padded([group, partition.topic, str(partition.partition), str(offset)], [groups, topics, 10]), end="")
    print()


def print_deletions(statuses: Mapping[TopicPartition, str]) -> None:
    topics = max([15, *(len(partition.topic) for partition in statuses)])
    print("\n" + heading(f"{'TOPIC':{topics}} {'PARTITION':10} {'STATUS':15}"), end="")
    for partition, status in sorted(statuses.items(), key=lambda item: f"{item[0].topic}{item[0].partition}"):
        number = str(partition.partition) if partition.partition >= 0 else MISSING
        print(f"\n{partition.topic:{topics}} {number:10} {status:15}", end="")
    print()
