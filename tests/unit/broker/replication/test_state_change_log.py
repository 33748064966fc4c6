"""The state-change log of a broker: what it does with LeaderAndIsr, StopReplica and UpdateMetadata, in Kafka's words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.loggers import STATE_CHANGE, TRACE
from barnabas.uuid import Uuid
from tests.unit.broker.replicas import BROKER, TOPIC_ID, Replicas

PREFIX = f"[Broker id={BROKER}] "


@pytest.fixture
def replicas(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Replicas]:
    caplog.set_level(TRACE, STATE_CHANGE)
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


def lines(caplog: pytest.LogCaptureFixture, level: int = TRACE) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == STATE_CHANGE and record.levelno >= level]
    caplog.clear()
    assert all(line.startswith(PREFIX) for line in found)
    return [line.removeprefix(PREFIX) for line in found]


def test_a_new_leader_says_where_it_starts(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    replicas.lead(epoch=4, controller_epoch=2, tell=False)
    log_lines = lines(caplog)
    assert (
        f"Leader orders-0 with topic id Some({TOPIC_ID}) starts at leader epoch 4 from offset 0 with partition epoch 4, high watermark 0, "
        "ISR [1], adding replicas [] and removing replicas [] . Previous leader None and previous leader epoch was -1."
    ) in log_lines
    source = "LeaderAndIsr request correlationId -1 from controller 1 epoch 2"
    assert f"Handling {source} starting the become-leader transition for partition orders-0" in log_lines
    assert f"Completed {source} for the become-leader transition for partition orders-0" in log_lines
    (received,) = [line for line in log_lines if line.startswith("Received")]
    assert received.startswith("Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName=")
    assert received.endswith(" correlation id -1 from controller 1 epoch 2")


def test_a_new_follower_says_whom_it_follows(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    replicas.lead()
    caplog.clear()
    replicas.lead(leader=2, epoch=1, replicas=(1, 2))
    log_lines = lines(caplog)
    assert (
        "Follower orders-0 starts at leader epoch 1 from offset 0 with partition epoch 1 and high watermark 0. Current leader is 2. "
        "Previous leader Some(1) and previous leader epoch was 0."
    ) in log_lines
    source = "LeaderAndIsr request correlationId -1 from controller 1 epoch 1"
    assert f"Completed {source} for the become-follower transition for partition orders-0 with leader 2" in log_lines


def test_a_state_that_is_ignored_says_why(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    ignoring = "Ignoring LeaderAndIsr request from controller 1 with correlation id -1 epoch 1 for partition orders-0"
    replicas.lead(epoch=3)
    caplog.clear()
    replicas.lead(leader=2, epoch=2, replicas=(1, 2), tell=False)
    assert lines(caplog, logging.WARNING) == [f"{ignoring} since its associated leader epoch 2 is smaller than the current leader epoch 3"]
    replicas.lead(leader=2, epoch=3, replicas=(1, 2), tell=False)
    assert f"{ignoring} since its associated leader epoch 3 matches the current leader epoch" in lines(caplog)
    replicas.lead(leader=2, epoch=4, replicas=(2, 3), tell=False)
    assert lines(caplog, logging.WARNING) == [f"{ignoring} as itself is not in assigned replica list 2,3"]
    other = Uuid(b"x" * 16)
    replicas.lead(epoch=5, topic_id=other, tell=False)
    assert lines(caplog, logging.WARNING) == [
        f"Topic ID in memory: {TOPIC_ID} does not match the topic ID for partition orders-0 received: {other}."
    ]


def test_an_old_controller_is_named(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    replicas.lead(controller_epoch=5)
    caplog.clear()
    since = "since its controller epoch 4 is old. Latest known controller epoch is 5"
    replicas.lead(epoch=9, controller_epoch=4, tell=False)
    assert lines(caplog) == [f"Ignoring LeaderAndIsr request from controller 1 with correlation id -1 {since}"]
    replicas.stop(controller_epoch=4)
    assert lines(caplog) == [f"Ignoring StopReplica request from controller 1 with correlation id -1 {since}"]
    replicas.tell(controller_epoch=4)
    assert lines(caplog) == [
        "Received update metadata request with correlation id -1 from an old controller 1 with epoch 4. Latest known controller epoch is 5"
    ]


def test_a_replica_that_is_stopped_is_traced(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    replicas.lead(epoch=3)
    caplog.clear()
    replicas.stop(epoch=2)
    state = "StopReplicaPartitionState(partitionIndex=0, leaderEpoch=2, deletePartition=true)"
    assert lines(caplog) == [
        f"Received StopReplica request {state} correlation id -1 from controller 1 epoch 1 for partition orders-0",
        "Ignoring StopReplica request (delete=true) from controller 1 with correlation id -1 epoch 1 for partition orders-0 "
        "since its associated leader epoch 2 is smaller than the current leader epoch 3",
    ]


def test_metadata_that_is_cached_is_told(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    source = "in response to UpdateMetadata request sent by controller 1 epoch 1 with correlation id -1"
    replicas.tell()
    cached, added = lines(caplog)
    assert cached.startswith("Cached leader info UpdateMetadataPartitionState(topicName=")
    assert cached.endswith(f" for partition orders-0 {source}")
    assert added == f"Add 1 partitions and deleted 0 partitions from metadata cache {source}"
    replicas.tell(leader=-2)
    assert lines(caplog) == [
        f"Deleted partition orders-0 from metadata cache {source}",
        f"Add 0 partitions and deleted 1 partitions from metadata cache {source}",
    ]
