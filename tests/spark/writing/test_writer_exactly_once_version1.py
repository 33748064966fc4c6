"""Exactly once on brokers whose cluster has not agreed on transactions of the second version: partitions are announced, and an end does not
move the epoch on. An Apache Kafka whose transaction.version is set back to 1; no Spark runs here."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.client.admin import Admin, FeatureUpdate, NewTopic, UpgradeType
from pyspark_barnabas.exactly_once.steps import commit
from tests import kafka_server
from tests.exactly_once_tasks import Driver

FEATURE = "transaction.version"
TIMEOUT_S = 90
PARTITIONS = 2
SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    with kafka_server.running(tmp_path_factory.mktemp("older"), node_id=1, settings=SETTINGS) as bootstrap:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.update_features({FEATURE: FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}).all()
            deadline = time.monotonic() + TIMEOUT_S
            while admin.describe_features().finalized_features[FEATURE].max_version_level != 1:
                assert time.monotonic() < deadline, "the version does not change"
                time.sleep(0.05)
        yield bootstrap


@pytest.fixture
def driver(older: str) -> Generator[Callable[[], Driver], None, None]:
    """Makes drivers of one query, each as a process of its own."""
    topic = f"older-{next(_numbers)}"
    with Admin(bootstrap_servers=older) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).all()
    made: list[Driver] = []

    def make() -> Driver:
        made.append(Driver(older, topic, f"prefix-{topic}"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def visible(driver: Driver) -> list[str]:
    """All values that readers of committed records see, once nothing that is open holds them up."""
    settings = {"bootstrap.servers": driver.options.settings["bootstrap.servers"], "group.id": "reader", "enable.auto.commit": False}
    consumer, everything = (Consumer({**settings, "isolation.level": level}) for level in ("read_committed", "read_uncommitted"))
    partitions = [TopicPartition(driver.options.topic or "", number, 0) for number in range(PARTITIONS)]
    deadline = time.monotonic() + TIMEOUT_S
    values: list[str] = []
    try:
        ends = {partition.partition: everything.get_watermark_offsets(partition, timeout=TIMEOUT_S)[1] for partition in partitions}
        consumer.assign(partitions)
        while any(position.offset < ends[position.partition] for position in consumer.position(partitions) if ends[position.partition]):
            assert time.monotonic() < deadline, "readers are held up"
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                values.append((message.value() or b"").decode())
    finally:
        consumer.close()
        everything.close()
    return sorted(values)


def test_batches_are_written_once_and_an_end_leaves_the_epoch_as_it_is(driver: Callable[[], Driver]) -> None:
    one = driver()
    first, second = one.run_of(0), one.run_of(1)
    reports = one.tasks(first, [["a", "b"], ["c"]])
    assert not one.runner.transactions.is_version_2()
    one.commit(first, reports)
    again = one.tasks(second, [["d"], ["e", "f"]])
    one.commit(second, again)
    epochs = [[report.transaction.epoch for report in some if report.transaction] for some in (reports, again)]
    assert [epoch + 1 for epoch in epochs[0]] == epochs[1]  # InitProducerId alone has moved it on
    assert visible(one) == ["a", "b", "c", "d", "e", "f"]


def test_what_was_decided_is_ended_by_the_next_driver_and_not_written_again(driver: Callable[[], Driver]) -> None:
    dead = driver()
    run = dead.run_of(0)
    reports = dead.tasks(run, [["a"], ["b"]])
    dead.take(commit(run, reports, dead.runner.names), 3)  # the decision is written and read back, nothing is ended
    heir = driver()
    heir.whole(0, [["a", "b"], []])
    heir.whole(1, [["c"], ["d"]])
    assert visible(heir) == ["a", "b", "c", "d"]


def test_what_a_dead_driver_left_open_is_aborted_and_written_anew(driver: Callable[[], Driver]) -> None:
    dead = driver()
    dead.tasks(dead.run_of(0), [["a"], ["b"]])
    heir = driver()
    heir.whole(0, [["a"], ["b"]])
    assert visible(heir) == ["a", "b"]
