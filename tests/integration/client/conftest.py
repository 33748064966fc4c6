"""Our clients against two brokers, Apache Kafka and ours, set alike: every test that asks for `bootstrap` runs once with each.

BARNABAS_TEST_BOOTSTRAP and BARNABAS_TEST_KAFKA name running ones to use instead, ours and Apache Kafka; they need the settings below.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from tests import broker, certificates, kafka_server
from tests.broker import TopicMaker
from tests.integration.client import secure_kafka
from tests.integration.client.secure_kafka import SecureKafka

# Groups wait for nobody and notice the dead sooner; the internal topics are small, and so made sooner.
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
OURS = "barnabas"
KAFKA = "kafka"


@pytest.fixture(scope="session", params=[OURS, pytest.param(KAFKA, marks=pytest.mark.java)])
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Which of the two brokers the test runs with."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The bootstrap address of a Barnabas."""
    if given := broker.given_bootstrap():
        yield given
        return
    options = [word for key, value in SETTINGS.items() for word in ("--override", f"{key}={value}")]
    # Records that clients may not send are logged as errors.
    with broker.running(tmp_path_factory.mktemp(OURS), options, broker.CRASH) as address:
        yield address


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The bootstrap address of an Apache Kafka."""
    if given := os.environ.get("BARNABAS_TEST_KAFKA"):
        yield given
        return
    with kafka_server.running(tmp_path_factory.mktemp(KAFKA), node_id=1, settings=SETTINGS) as address:
        yield address


@pytest.fixture(scope="session")
def bootstrap(broker_kind: str, request: pytest.FixtureRequest) -> str:
    """The bootstrap address of each of the two in turn. Both go on while the other has its turn."""
    address: str = request.getfixturevalue("our_broker" if broker_kind == OURS else "apache_kafka")
    return address


@pytest.fixture(scope="session")
def new_topic(bootstrap: str, worker_id: str) -> TopicMaker:
    """Makes an empty topic on the broker of the test: `new_topic("hint", partitions=3, cleanup_policy="compact")`."""
    return broker.topic_maker(bootstrap, worker_id)


@pytest.fixture(scope="session")
def secure(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[SecureKafka, None, None]:
    """A broker of each kind that wants to know who its clients are."""
    made = certificates.make(tmp_path_factory.mktemp("certificates"))
    start = secure_kafka.running_ours if broker_kind == OURS else secure_kafka.running
    with start(tmp_path_factory.mktemp("secure"), made) as running:
        yield running
