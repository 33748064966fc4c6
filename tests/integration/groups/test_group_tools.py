"""Apache Kafka's own tools for groups, and its consumers, print the same against our broker as against Apache Kafka."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.integration.groups.commands import COMMANDS

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_a_tool_for_groups_prints_the_same_as_against_kafka(name: str, printed: dict[str, list[str]]) -> None:
    ours, theirs = map(comparable_for(name), printed[name])
    assert ours == theirs


def comparable_for(name: str) -> Callable[[str], str]:
    if name.startswith("consumer-perf-test"):
        return without_figures
    if name.startswith("verifiable-consumer"):
        return totals
    if "exported" in name or name.startswith("console-consumer"):
        return without_ids
    return in_any_order


def without_ids(text: str) -> str:
    """Members' ids replaced by a word, and columns one blank apart."""
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=\s)[\w+/-]{22}(?=\s)", "ID", text)
    text = re.sub(r"console-consumer-\w+", "console-consumer-N", text)
    return re.sub(r" +", " ", text)


def in_any_order(text: str) -> str:
    """The lines of a table come in the order of a hash map, Java's or the broker's."""
    return "\n".join(sorted(without_ids(text).splitlines()))


def without_figures(text: str) -> str:
    """consumer-perf-test: the columns, and how much was read; not how fast."""
    header, *rows = [line.split(", ") for line in text.splitlines() if ", " in line]
    kept = [[column for column in zip(header, row, strict=False) if "data.consumed" in column[0]] for row in rows]
    return f"{text.splitlines()[0]}\n{header}\n{kept}"


def totals(text: str) -> str:
    """verifiable-consumer: which events came, the records of each partition in all, and where its commits ended; not in which portions."""
    code, *lines = text.replace('"timestamp":TIME', '"timestamp":0').splitlines()
    events = [json.loads(line) for line in lines]
    records: Counter[str] = Counter()
    offsets: dict[str, int] = {}
    for event in events:
        for partition in event.get("partitions", []) if event["name"] == "records_consumed" else []:
            records[f"{partition['topic']}-{partition['partition']}"] += partition["count"]
        for offset in event.get("offsets", []):
            offsets[f"{offset['topic']}-{offset['partition']}"] = offset["offset"]
    shapes = sorted({(event["name"], *sorted(event)) for event in events})
    assigned = [sorted(one["partition"] for one in event["partitions"]) for event in events if event["name"] == "partitions_assigned"]
    return f"{code}\n{shapes}\n{assigned}\n{sorted(records.items())}\n{sorted(offsets.items())}"
