"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources against what Apache Kafka 4.2.0 answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from tests.config_cases import BROKER, CASES, GROUP, LOGGER, METRICS, SET, TOPIC, incremental, message_of, one, replace, shown
from tests.unit.broker.config_broker import ConfigBroker

FACTS = json.loads((Path(__file__).parents[3] / "data" / "kafka-config-answers-4.2.0.json").read_text())
MODULES = {
    "IncrementalAlterConfigs": "incremental_alter_configs",
    "AlterConfigs": "alter_configs",
    "DescribeConfigs": "describe_configs",
    "ListConfigResources": "list_config_resources",
}

NOT_ANSWERED = ("none", "closed")  # by Kafka: a question that it chokes on, and a version it no longer has

# Where we answer otherwise, and why. The error code is the same unless it says so.
WORDS = {
    "log.cleaner.threads=0": "Kafka shows a client its division by zero",
    "max.connections.per.ip.overrides=a:b": "Kafka shows a client the words of Java's parser",
    "segment.bytes=5": "the least is 14 here, as in Kafka 3.9",
    "log.segment.bytes=2": "likewise",
}
ACCEPTED = {"metric.reporters=no.Such": "this broker has no reporters, which would refuse it: tests/unit/broker/reporting"}
# Kafka 4.2 writes it as the default of all brokers when eligible leader replicas are on, which is a matter of KRaft.
ELIGIBLE_LEADER_REPLICAS = "min.insync.replicas"
# Kafka 4.2 goes on listing a group whose last setting was deleted, until it is started again.
EMPTY_GROUP = "g h/i"


def name_of(case: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in case.items() if key != "version"})


def assignment_of(case: dict[str, Any]) -> str | None:
    """`name=value` of a case that sets one thing."""
    if case["api"] not in ("IncrementalAlterConfigs", "AlterConfigs") or len(case["resources"]) != 1 or len(case["resources"][0][2]) != 1:
        return None
    name, *_, value = case["resources"][0][2][0]
    return f"{name}={value}"


def comparable(answer: Any, last: bool) -> Any:
    """An answer without the two things of KRaft that are not ours."""
    for result in answer.get("results", ()):
        result["configs"] = [config for config in result["configs"] if config["name"] != ELIGIBLE_LEADER_REPLICAS]
    if last and "config_resources" in answer:
        answer["config_resources"] = [resource for resource in answer["config_resources"] if resource["resource_name"] != EMPTY_GROUP]
    return answer


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """Every question, asked in order of a broker of ours; they build on each other, so they are all asked before one is judged."""
    with ConfigBroker(tmp_path_factory.mktemp("configs"), FACTS["server_properties"], topics=["orders"]) as broker:
        yield [shown(broker.ask(MODULES[case["api"]], message_of(case), case["version"])) for case in CASES]


def test_the_questions_are_those_that_kafka_was_asked() -> None:
    assert json.loads(json.dumps(CASES)) == [fact["question"] for fact in FACTS["answers"]]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{number}-{name_of(CASES[number])}"[:160])
def test_a_question_about_configs_is_answered_as_kafka_answers_it(number: int, answers: list[Any]) -> None:
    fact, answer, assignment = FACTS["answers"][number]["answer"], answers[number], assignment_of(CASES[number])
    if fact in NOT_ANSWERED:
        return
    if assignment in WORDS:
        assert [response["error_code"] for response in answer["responses"]] == [r["error_code"] for r in fact["responses"]]
    elif assignment in ACCEPTED:
        assert [response["error_code"] for response in answer["responses"]] == [0]
    else:
        last = number > len(CASES) - 6
        assert comparable(answer, last) == comparable(fact, last)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ConfigBroker]:
    with ConfigBroker(tmp_path, FACTS["server_properties"], topics=["orders"]) as started:
        yield started


def described(broker: ConfigBroker, kind: int, name: str, version: int = 4, documentation: bool = False) -> DescribeConfigsResult:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], False, documentation)
    (result,) = cast("DescribeConfigsResponse", broker.ask("describe_configs", request, version)).results
    return result


def test_a_resource_that_is_replaced_twice_in_one_request_is_not_replaced(broker: ConfigBroker) -> None:
    """Kafka 4.2 leaves this question unanswered."""
    twice = replace((TOPIC, "orders", [["flush.ms", "9"]]), (TOPIC, "orders", [["flush.ms", "8"]]))
    answer = shown(broker.ask("alter_configs", message_of(twice), 2))
    assert [(r["error_code"], r["error_message"]) for r in answer["responses"]] == [(42, "Each resource must appear at most once.")] * 2


def test_the_same_question_asked_many_times_in_one_request_is_answered_once(broker: ConfigBroker) -> None:
    resources = [DescribeConfigsResource(4, "", None), DescribeConfigsResource(4, "", ["log.cleaner.threads"])] * 1000
    results = cast("DescribeConfigsResponse", broker.ask("describe_configs", DescribeConfigsRequest(resources), 4)).results
    assert [result.resource_name for result in results] == ["", ""]


def test_version_0_says_which_values_are_defaults(broker: ConfigBroker) -> None:
    broker.ask("incremental_alter_configs", message_of(one(TOPIC, "orders", "retention.ms", SET, "5000")), 1)
    configs = {config.name: config.is_default for config in described(broker, TOPIC, "orders", version=0).configs}
    assert configs["retention.ms"] is False
    assert configs["segment.ms"] is True


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (BROKER, "1"), (GROUP, "g"), (METRICS, "s")])
def test_every_setting_comes_with_its_documentation_if_it_is_asked_for(broker: ConfigBroker, kind: int, name: str) -> None:
    assert all(config.documentation for config in described(broker, kind, name, documentation=True).configs)
    assert all(config.documentation is None for config in described(broker, kind, name).configs)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("kind", [TOPIC, BROKER, LOGGER, GROUP, METRICS])
def test_every_version_can_say_every_resource(broker: ConfigBroker, kind: int, version: int) -> None:
    result = described(broker, kind, {TOPIC: "orders", BROKER: "1", LOGGER: "1"}.get(kind, "x"), version)
    assert result.error_code == 0
    assert len(result.configs) > 0


@pytest.mark.parametrize(
    ("handler", "api", "versions"), [("alter_configs", replace, range(3)), ("incremental_alter_configs", one, range(2))]
)
def test_every_version_alters(broker: ConfigBroker, handler: str, api: Any, versions: range) -> None:
    for version in versions:
        value = str(1000 + version)
        case = one(TOPIC, "orders", "flush.ms", SET, value) if api is one else replace((TOPIC, "orders", [["flush.ms", value]]))
        assert shown(broker.ask(handler, message_of(case), version))["responses"][0]["error_code"] == 0
        assert broker.manager.topic_properties("orders") == {"flush.ms": value}


def test_a_log_level_is_set_and_described(broker: ConfigBroker) -> None:
    broker.loggers.getLogger("barnabas.storage.log.log")
    answer = shown(broker.ask("incremental_alter_configs", message_of(one(LOGGER, "1", "barnabas.storage.log.log", SET, "DEBUG")), 1))
    assert answer["responses"][0]["error_code"] == 0
    levels = {config.name: config.value for config in described(broker, LOGGER, "1").configs}
    assert (levels["root"], levels["barnabas.storage.log.log"]) == ("ERROR", "DEBUG")


def test_with_validate_only_a_log_level_stays(broker: ConfigBroker) -> None:
    broker.ask("incremental_alter_configs", message_of(incremental((LOGGER, "1", [["root", SET, "DEBUG"]]), validate_only=True)), 1)
    assert broker.loggers.root.level == logging.ERROR
