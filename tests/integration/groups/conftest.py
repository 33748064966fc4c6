"""A broker of its own for the groups, whose members are missed sooner than by default; what a scenario came to; what tools printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest

from tests import broker, kafka, kafka_server
from tests.broker import TopicMaker
from tests.integration.groups.commands import COMMANDS
from tests.integration.groups.member import Seat, compile_java
from tests.integration.groups.scenario import PARTITIONS, Outcome, Scenario, play
from tests.integration.groups.stage import staged
from tests.integration.tools.runner import Target, broker_id, run_all
from tests.once import once

AT_ONCE = 3  # scenarios that run side by side: most of their time is spent waiting for sessions to end
# A running broker that BARNABAS_TEST_BOOTSTRAP names needs these too.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}

OFFSETS_TOPIC = "the offsets topic"


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
def new_topic(bootstrap: str, worker_id: str) -> TopicMaker:
    """Of its own like the broker: the one of the other tests makes its topics on theirs."""
    return broker.topic_maker(bootstrap, worker_id)


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
    request: pytest.FixtureRequest,
    seat: Callable[[str, str], Seat],
    java_classes: Callable[[], Path],
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> dict[str, Outcome]:
    """What the scenarios of the selected tests came to, by name: played once for a whole test run, some side by side."""

    def play_all() -> str:
        scenarios = _wanted(request.session)
        java_classes()  # before they start, so that it is done once
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = pool.map(lambda one: play(one, seat(one.name, one.strategy), java_classes), scenarios.values())
        return json.dumps({name: asdict(outcome) for name, outcome in zip(scenarios, outcomes, strict=True)})

    made = once(tmp_path_factory, worker_id, "groups.json", play_all)
    return {name: Outcome(**outcome) for name, outcome in json.loads(made).items()}


def _wanted(session: pytest.Session) -> dict[str, Scenario]:
    items = [item for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    values = [value for item in items for value in item.callspec.params.values()]
    return {value.name: value for value in values if isinstance(value, Scenario)}


@pytest.fixture(scope="session")
def printed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command: what it printed against our broker, and against Apache Kafka; last, Kafka's dump of both offsets topics."""
    made = once(tmp_path_factory, worker_id, "group-tools.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("tools"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _run(directory: Path) -> dict[str, list[str]]:
    for name in ("ours", "ours/data", "kafka"):
        (directory / name).mkdir()
    given = broker.given_bootstrap()
    with nullcontext(given) if given else broker.running(directory / "ours/data") as ours:
        number = broker_id(ours)
        with kafka_server.running(directory / "kafka", number) as theirs, staged(ours), staged(theirs):
            printed = run_all(COMMANDS, [Target(ours, number, directory / "ours"), Target(theirs, number, directory / "kafka")])
            return {**printed, OFFSETS_TOPIC: [_dump(directory / "ours/data"), _dump(directory / "kafka/logs")]}


def _dump(logs: Path) -> str:
    """Kafka's own dump of the offsets topic, while groups still live."""
    files = [str(file) for file in logs.glob("__consumer_offsets-*/*.log") if file.stat().st_size]
    return kafka.dump_log(["--offsets-decoder", "--files", ",".join(files)]).out
