"""Our tools print what Apache Kafka's Java tools print against the same broker, and end with the same code."""

from __future__ import annotations

import pytest

from tests.integration.tools_ours import live
from tests.integration.tools_ours.commands import COMMANDS, ELECTIONS

pytestmark = pytest.mark.java

NAMES = [f"{broker}: {command.name}" for command in COMMANDS + ELECTIONS + live.COMMANDS for broker in command.brokers]


@pytest.mark.parametrize("name", NAMES)
def test_our_tool_prints_what_kafkas_prints(name: str, printed: dict[str, list[str]]) -> None:
    theirs, ours = printed[name]
    assert ours == theirs


def test_no_tool_of_ours_prints_a_traceback(printed: dict[str, list[str]]) -> None:
    assert [name for name, (_, ours) in printed.items() if "Traceback" in ours] == []
