"""Groups of our consumers, and of ours with Java's and librdkafka's: members come, are killed and leave while records keep coming."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tests.broker import TopicMaker
from tests.integration.groups.member import Seat, compile_java
from tests.integration.groups.scenario import PARTITIONS, Outcome, Scenario, play

pytestmark = pytest.mark.java

AT_ONCE = 2  # scenarios side by side: most of their time is spent waiting for sessions to end
SCENARIOS = [
    Scenario("range", "range", ("barnabas", "java", "confluent"), joins="barnabas_async", killed=1),
    Scenario("cooperative-sticky", "cooperative-sticky", ("java", "barnabas", "confluent"), joins="barnabas_async", killed=1),
    Scenario("sticky", "sticky", ("barnabas_async", "java"), joins="barnabas", killed=0),
    Scenario("roundrobin", "roundrobin", ("barnabas", "barnabas_async"), joins="confluent", killed=1),
    Scenario("consumer", "consumer", ("barnabas", "java"), joins="barnabas_async", killed=0),
    Scenario("classic-and-consumer", "consumer", ("barnabas:cooperative-sticky", "java"), joins="barnabas_async", killed=1),
]
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)

Played = dict[str, Outcome]


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return cache(lambda: compile_java(tmp_path_factory.mktemp("classes")))


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest, bootstrap: str, new_topic: TopicMaker, java_classes: Callable[[], Path]) -> Played:
    """What the scenarios of the selected tests came to with this broker."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    scenarios = {id(one): one for item in items for one in item.callspec.params.values() if one in SCENARIOS}
    java_classes()  # before they start, so that it is done once

    def one(scenario: Scenario) -> tuple[str, Outcome]:
        topic = new_topic(f"mixed-{scenario.name}", partitions=PARTITIONS)
        return scenario.name, play(scenario, Seat(bootstrap, f"group-of-{topic}", topic, scenario.strategy), java_classes)

    with ThreadPoolExecutor(int(os.environ.get("BARNABAS_TEST_AT_ONCE", AT_ONCE))) as pool:
        return dict(pool.map(one, scenarios.values()))


@every_scenario
def test_every_record_is_delivered_at_least_once(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].missing) == ("", [])


@every_scenario
def test_a_partition_is_held_by_one_member_at_any_time(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].held_by_two) == ("", [])


@every_scenario
def test_a_record_is_delivered_once_unless_who_read_it_was_killed(scenario: Scenario, played: Played) -> None:
    assert (played[scenario.name].problem, played[scenario.name].repeated) == ("", [])
