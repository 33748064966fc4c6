"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources against what Apache Kafka 4.2.0 answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.config_cases import CASES, message_of, shown
from tests.unit.broker.config_broker import ConfigBroker

FACTS = json.loads((Path(__file__).parents[3] / "data" / "kafka-config-answers-4.2.0.json").read_text())
MODULES = {
    "IncrementalAlterConfigs": "incremental_alter_configs",
    "AlterConfigs": "alter_configs",
    "DescribeConfigs": "describe_configs",
    "ListConfigResources": "list_config_resources",
}

NOT_ANSWERED = ("none", "closed")  # by Kafka: two questions it chokes on, and the version it no longer has


def name_of(case: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in case.items() if key != "version"})


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """Every question, asked in order of a broker of ours; they build on each other, so they are all asked before one is judged."""
    with ConfigBroker(tmp_path_factory.mktemp("configs"), FACTS["server_properties"], topics=["orders"]) as broker:
        yield [shown(broker.ask(MODULES[case["api"]], message_of(case), case["version"])) for case in CASES]


def test_the_questions_are_those_that_kafka_was_asked() -> None:
    assert json.loads(json.dumps(CASES)) == [fact["question"] for fact in FACTS["answers"]]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{number}-{name_of(CASES[number])}"[:160])
def test_a_question_about_configs_is_answered_as_kafka_answers_it(number: int, answers: list[Any]) -> None:
    fact = FACTS["answers"][number]["answer"]
    if fact in NOT_ANSWERED:
        assert answers[number] is not None
    else:
        assert answers[number] == fact
