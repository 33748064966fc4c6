"""Our Spark data source on a real Spark, against two brokers: Apache Kafka and ours. Each test that asks for `bootstrap` runs with both.

One Spark and one broker of each kind serve all tests of a process, so every test makes topics, groups and directories of its own.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from tests import broker, kafka_server, spark_session
from tests.broker import TopicMaker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The internal topics are small, and so made sooner; groups wait for nobody.
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
}
OURS = "barnabas"
KAFKA = "kafka"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Generator[SparkSession, None, None]:
    with spark_session.running(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The bootstrap address of a Barnabas."""
    given = broker.given_bootstrap()
    if given:
        yield given
        return
    options = [word for key, value in SETTINGS.items() for word in ("--override", f"{key}={value}")]
    with broker.running(tmp_path_factory.mktemp(OURS), options, broker.CRASH) as address:
        yield address


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The bootstrap address of an Apache Kafka."""
    given = os.environ.get("BARNABAS_TEST_KAFKA")
    if given:
        yield given
        return
    with kafka_server.running(tmp_path_factory.mktemp(KAFKA), node_id=1, settings=SETTINGS) as address:
        yield address


@pytest.fixture(scope="session", params=[OURS, KAFKA])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The bootstrap address of each of the two in turn."""
    address: str = request.getfixturevalue("our_broker" if request.param == OURS else "apache_kafka")
    return address


@pytest.fixture(scope="session")
def new_topic(bootstrap: str) -> TopicMaker:
    """Makes an empty topic on the broker of the test: `new_topic("hint", partitions=3, cleanup_policy="compact")`."""
    return broker.topic_maker(bootstrap, os.environ.get("PYTEST_XDIST_WORKER", "main"))


@pytest.fixture(scope="session")
def our_topic(our_broker: str) -> TopicMaker:
    """Makes an empty topic on our broker, for tests that run with that one only."""
    return broker.topic_maker(our_broker, os.environ.get("PYTEST_XDIST_WORKER", "main"))
