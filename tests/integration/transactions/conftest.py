"""Two brokers for the transactions, ours and Apache Kafka, set alike; what they said and printed is made once for a test run."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import broker, kafka_server
from tests.broker import TopicMaker
from tests.integration.tools.runner import Target, broker_id, run_all
from tests.integration.transactions.cases import CASES
from tests.integration.transactions.clients import Client, ConfluentClient, JavaClient
from tests.integration.transactions.commands import COMMANDS
from tests.integration.transactions.conversations import told
from tests.integration.transactions.dumps import FILES, TRANSACTION_LOG, dump_of_history, dump_of_states
from tests.integration.transactions.stage import staged
from tests.once import once

# A running broker that BARNABAS_TEST_BOOTSTRAP names needs these too.
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    # Records of the history are years old: on a busy machine their producers would expire before the files are compared.
    "producer.id.expiration.check.interval.ms": "86400000",
}


@pytest.fixture(scope="session")
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[list[str]]]:
    """By case what our broker said, and what Apache Kafka said."""
    names = _wanted(request.session)

    def converse() -> str:
        with _both(tmp_path_factory.mktemp("conversations")) as targets, ThreadPoolExecutor(2) as pool:
            ours, theirs = pool.map(lambda target: told(target.bootstrap, names), targets)
        return json.dumps({name: [ours[name], theirs[name]] for name in names})

    result: dict[str, list[list[str]]] = json.loads(once(tmp_path_factory, worker_id, "transactions.json", converse))
    return result


def _wanted(session: pytest.Session) -> list[str]:
    items = [item for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    asked = {value for item in items if "said" in item.fixturenames for value in item.callspec.params.values()}
    return [name for name in CASES if name in asked]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """For clients: they do no wrong, so that nothing may be logged as an error."""
    given = broker.given_bootstrap()
    if given is not None:
        yield given
        return
    with broker.running(tmp_path_factory.mktemp("transactions"), _options(SETTINGS)) as address:
        yield address


@pytest.fixture(scope="session")
def new_topic(bootstrap: str, worker_id: str) -> TopicMaker:
    """Of its own like the broker: the one of the other tests makes its topics on theirs."""
    return broker.topic_maker(bootstrap, worker_id)


@pytest.fixture(scope="session")
def java(bootstrap: str) -> Generator[JavaClient, None, None]:
    client = JavaClient(bootstrap)
    yield client
    client.close()


@pytest.fixture(params=["confluent", "java"])
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    if request.param == "confluent":
        return ConfluentClient(bootstrap)
    java: JavaClient = request.getfixturevalue("java")
    return java


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command what it printed against our broker, and against Apache Kafka; and Kafka's dumps of what both left on their disks."""
    made = once(tmp_path_factory, worker_id, "transaction-tools.json", lambda: json.dumps(_find(tmp_path_factory.mktemp("tools"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _find(directory: Path) -> dict[str, list[str]]:
    with _both(directory, {"transaction.partition.verification.enable": "false"}) as targets:
        for target in targets:
            staged(target.bootstrap)
        printed = run_all(COMMANDS, targets)
    places = [directory / "ours/data", kafka_server.logs_of(directory / "kafka")]
    return {**printed, TRANSACTION_LOG: [dump_of_states(place) for place in places], FILES: [dump_of_history(place) for place in places]}


@contextmanager
def _both(directory: Path, more: Mapping[str, str] | None = None) -> Generator[list[Target], None, None]:
    """Our broker, and Apache Kafka under the same id; both are stopped and not killed."""
    settings = {**SETTINGS, **(more or {})}
    options = _options(settings)
    for name in ("ours", "ours/data", "kafka"):
        (directory / name).mkdir()
    with ExitStack() as stack:
        ours = broker.given_bootstrap() or stack.enter_context(broker.running(directory / "ours/data", options, broker.CRASH))
        number = broker_id(ours)
        theirs = stack.enter_context(kafka_server.running(directory / "kafka", number, settings, stop=more is not None))
        yield [Target(ours, number, directory / "ours"), Target(theirs, number, directory / "kafka")]


def _options(settings: Mapping[str, str]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--override", f"{key}={value}")]
