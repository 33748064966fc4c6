"""Control requests that cannot be carried out at once."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster import controller_requests
from barnabas.broker.cluster.controller_requests import ControlRequests
from barnabas.loggers import STATE_CHANGE
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from barnabas.simulation.disk import NEEDS_DESCRIPTOR, SimulatedFiles
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.replicas import BROKER, TOPIC_ID, Replicas

TOPIC = "orders"
PARTITIONS = 3


async def nothing(*_: Any) -> None:
    return None


def controller_requests_of(replicas: Replicas) -> ControlRequests:
    configs: Any = SimpleNamespace(load_topics=nothing, forget_topics=lambda _: None)
    return ControlRequests(replicas.manager, configs)


def to_lead() -> LeaderAndIsrRequest:
    states = [LeaderAndIsrPartitionState(TOPIC, index, 1, BROKER, 0, [BROKER], 0, [BROKER], is_new=True) for index in range(PARTITIONS)]
    return LeaderAndIsrRequest(BROKER, controller_epoch=1, topic_states=[LeaderAndIsrTopicState(TOPIC, TOPIC_ID, states)])


def led(replicas: Replicas) -> list[bool]:
    found = [replicas.manager.partition(TopicPartition(TOPIC, index)) for index in range(PARTITIONS)]
    return [partition is not None and partition.is_leader for partition in found]


def test_a_request_that_finds_no_descriptor_is_carried_out_when_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedFiles()
    replicas = Replicas(tmp_path, files=disk)
    monkeypatch.setattr(controller_requests, "SHORTAGE_RETRY_S", 0)
    disk.fail_when(lambda event: event.kind in NEEDS_DESCRIPTOR, errno.EMFILE, times=5)
    response = asyncio.run(controller_requests_of(replicas).lead_or_follow(to_lead()))
    assert {partition_error.error_code for topic in response.topics for partition_error in topic.partition_errors} == {0}
    assert led(replicas) == [True] * PARTITIONS


def test_a_shortage_that_does_not_end_marks_nothing_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedFiles()
    replicas = Replicas(tmp_path, files=disk)
    monkeypatch.setattr(controller_requests, "SHORTAGE_RETRY_S", 0)
    disk.fail_when(lambda event: event.kind in NEEDS_DESCRIPTOR, errno.EMFILE)
    response = asyncio.run(controller_requests_of(replicas).lead_or_follow(to_lead()))
    assert {partition_error.error_code for topic in response.topics for partition_error in topic.partition_errors} == {56}
    assert not replicas.manager.offline and not replicas.log_manager.offline_dirs
    disk.heal()
    asyncio.run(controller_requests_of(replicas).lead_or_follow(to_lead()))
    assert led(replicas) == [True] * PARTITIONS


def test_the_whole_request_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, STATE_CHANGE)
    requests = controller_requests_of(Replicas(tmp_path))
    asyncio.run(requests.lead_or_follow(to_lead(), correlation_id=7))
    stop = StopReplicaRequest(BROKER, controller_epoch=1, topic_states=[StopReplicaTopicState(TOPIC, [StopReplicaPartitionState(0, 0)])])
    asyncio.run(requests.stop_replicas(stop, correlation_id=8))
    lines = [record.getMessage() for record in caplog.records if "starts at" not in record.getMessage()]
    finished = "Finished LeaderAndIsr request in 0ms correlationId 7 from controller 1 for 3 partitions"
    assert lines == [
        f"[Broker id={BROKER}] Handling LeaderAndIsr request correlationId 7 from controller 1 for 3 partitions",
        f"[Broker id={BROKER}] {finished}",
        f"[Broker id={BROKER}] Handling StopReplica request correlationId 8 from controller 1 for 1 partitions",
    ]
