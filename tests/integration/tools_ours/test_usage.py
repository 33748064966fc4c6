"""To nothing, to an option that there is not, and to questions about itself, each tool of ours answers as Kafka's does."""

from __future__ import annotations

import json

import pytest

from tests.integration.tools.runner import Target
from tests.integration.tools_ours.commands import USAGE
from tests.integration.tools_ours.runner import run_all
from tests.once import once

pytestmark = pytest.mark.java


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command: what Kafka's tool printed, and what ours did. Nobody is asked, so that there need not be a broker."""
    nobody = {"kafka": Target("127.0.0.1:1", 1, tmp_path_factory.mktemp("usage"))}
    made: dict[str, list[str]] = json.loads(once(tmp_path_factory, worker_id, "usage.json", lambda: json.dumps(run_all(USAGE, nobody))))
    return made


@pytest.mark.parametrize("name", [command.name for command in USAGE])
def test_our_tool_answers_as_kafkas_does(name: str, answers: dict[str, list[str]]) -> None:
    theirs, ours = answers[f"kafka: {name}"]
    assert ours == theirs
