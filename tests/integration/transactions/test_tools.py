"""Apache Kafka's tool for transactions prints the same against our broker as against Apache Kafka, and finds and ends what hangs."""

from __future__ import annotations

import re

import pytest

from tests.integration.transactions.commands import COMMANDS

pytestmark = pytest.mark.java

REPLACEMENTS = [
    (re.compile(r"\b\d{13}\b"), "TIME"),
    (re.compile(r"[ \t]+"), " "),
]
# The columns of `describe` and `find-hanging` that count milliseconds or minutes.
DURATION = re.compile(r"(?<= TIME )\d+(?= )")


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_the_tool_prints_the_same_as_against_kafka(name: str, found: dict[str, list[str]]) -> None:
    ours, theirs = map(comparable, found[name])
    assert ours == theirs


def test_the_tool_finds_the_one_that_hangs_and_ends_it(found: dict[str, list[str]]) -> None:
    before, after = (found[f"transactions: hanging ones found {when}"][0] for when in ("in a partition", "once aborted"))
    assert (before.count("stage"), after.count("stage")) == (1, 0)


def comparable(text: str) -> str:
    """Without times, columns one blank apart, and lines in an order of their own: tables come in that of a hash map."""
    for pattern, word in REPLACEMENTS:
        text = pattern.sub(word, text)
    return "\n".join(sorted(DURATION.sub("N", text).splitlines()))
