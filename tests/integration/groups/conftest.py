"""A broker of its own for the groups, whose members are missed sooner than by default, and what a scenario came to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tests import broker
from tests.broker import TopicMaker
from tests.integration.groups.member import Seat, compile_java
from tests.integration.groups.scenario import PARTITIONS, Outcome, Scenario, play

AT_ONCE = 3  # scenarios that run side by side: most of their time is spent waiting for sessions to end
# A running broker that BARNABAS_TEST_BOOTSTRAP names needs these too.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}

Player = Callable[[Scenario], Outcome]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    given = broker.given_bootstrap()
    if given is not None:
        yield given
        return
    options = [word for key, value in SETTINGS.items() for word in ("--override", f"{key}={value}")]
    with broker.running(tmp_path_factory.mktemp("groups"), options) as address:
        yield address


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return cache(lambda: compile_java(tmp_path_factory.mktemp("classes")))


@pytest.fixture(scope="session")
def seat(bootstrap: str, new_topic: TopicMaker) -> Callable[[str, str], Seat]:
    """A group with a topic of its own."""

    def make(name: str, strategy: str) -> Seat:
        topic = new_topic(name, partitions=PARTITIONS)
        return Seat(bootstrap, f"group-of-{topic}", topic, strategy)

    return make


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, seat: Callable[[str, str], Seat], java_classes: Callable[[], Path]
) -> Generator[Player, None, None]:
    """What a scenario came to. The first to ask for one starts all that the selected tests want, some side by side."""
    started: dict[str, Future[Outcome]] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:

        def outcome(scenario: Scenario) -> Outcome:
            for one in {scenario.name: scenario, **_wanted(request.session)}.values():
                if one.name not in started:
                    java_classes()
                    started[one.name] = pool.submit(play, one, seat(one.name, one.strategy), java_classes)
            return started[scenario.name].result()

        yield outcome
        pool.shutdown(cancel_futures=True)


def _wanted(session: pytest.Session) -> dict[str, Scenario]:
    values = [value for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec") for value in item.callspec.params.values()]
    return {value.name: value for value in values if isinstance(value, Scenario)}
