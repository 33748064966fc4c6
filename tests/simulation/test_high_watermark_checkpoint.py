"""Checkpointed high watermarks survive a run of the broker in which no controller sent it a request."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.simulation.cluster import LOG_DIR, SimulatedBroker
from barnabas.simulation.histories import History
from barnabas.storage.directory.checkpoints import REPLICATION_OFFSET_CHECKPOINT, OffsetCheckpoint
from barnabas.topic_partition import TopicPartition

RECORDS = 20
TICKS_S = 20.0  # several times replica.high.watermark.checkpoint.interval.ms


def checkpointed(broker: SimulatedBroker) -> dict[TopicPartition, int]:
    return OffsetCheckpoint(broker.files, f"{LOG_DIR}/{REPLICATION_OFFSET_CHECKPOINT}").read()


@pytest.fixture
def history() -> Generator[History, None, None]:
    """Three brokers that have been written to, with the high watermarks on their disks."""
    history = History(5)
    history.begin(RECORDS, 0.01)
    history.world.run_for(TICKS_S)
    yield history
    history.world.end()


@pytest.fixture
def waiting(history: History) -> tuple[SimulatedBroker, dict[TopicPartition, int]]:
    """A broker that was killed and runs again, and waits for its controller; and what it had checkpointed before."""
    cluster = history.cluster
    controller = cluster.controller
    assert controller is not None
    broker = next(broker for broker in cluster.brokers.values() if broker is not controller)
    broker.kill()
    before = checkpointed(broker)
    assert [before[partition] for partition in history.partitions] == [RECORDS] * len(history.partitions)
    history.world.run_for(10.0)  # until its session is over
    cluster.network.cut_both_ways(controller.address, broker.address)
    broker.start()
    history.world.run_for(TICKS_S)
    return broker, before


def test_a_broker_that_waits_for_its_controller_does_not_overwrite_them(
    waiting: tuple[SimulatedBroker, dict[TopicPartition, int]],
) -> None:
    broker, before = waiting
    assert checkpointed(broker) == before


def test_a_broker_that_stops_before_its_controller_has_spoken_does_not_overwrite_them(
    waiting: tuple[SimulatedBroker, dict[TopicPartition, int]],
) -> None:
    broker, before = waiting
    broker.stop()
    assert checkpointed(broker) == before
