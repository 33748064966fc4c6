"""Forged inter-broker requests: epochs decide which are accepted, and only the inter-broker listeners accept them at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.simulation.client import SimulatedConnection
from barnabas.simulation.cluster import PORT, SimulatedCluster

CLIENTS = 9192
CONTROL = [
    (LeaderAndIsrRequest, 7),
    (StopReplicaRequest, 4),
    (UpdateMetadataRequest, 8),
]


@pytest.fixture(scope="module")
def cluster() -> SimulatedCluster:
    """Two brokers, each with a listener for clients besides that of the brokers; the first is the controller."""
    made = SimulatedCluster(1, 2)
    for broker in made.brokers.values():
        broker._settings = {
            "listeners": f"PLAINTEXT://{broker.host}:{PORT},CLIENTS://{broker.host}:{CLIENTS}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        }
        broker.start()
    return made


def asked(cluster: SimulatedCluster, request: Message, version: int, broker: int = 2, port: int = PORT) -> Any:
    return said(cluster, lambda connection: connection.ask(request, version), broker, port)


def said(cluster: SimulatedCluster, doing: Callable[[SimulatedConnection], Awaitable[Any]], broker: int, port: int) -> Any:
    async def run() -> Any:
        connection = await SimulatedConnection.to(f"broker-{broker}", port)
        try:
            return await doing(connection)
        finally:
            connection.close()

    return cluster.process(f"asking-{cluster.world.steps}").run_until_complete(run())


def epochs(cluster: SimulatedCluster, broker: int) -> tuple[int, int]:
    """Of a broker and of the controller."""
    server = cluster.brokers[broker].server
    assert server is not None and server.broker.cluster is not None
    return server.broker.cluster.broker_epoch, server.broker.replica_manager.controller_epoch


@pytest.mark.parametrize(("kind", "version"), CONTROL)
def test_what_was_meant_for_an_earlier_life_is_refused(cluster: SimulatedCluster, kind: Any, version: int) -> None:
    broker_epoch, controller_epoch = epochs(cluster, 2)
    request = kind(controller_id=1, controller_epoch=controller_epoch, broker_epoch=broker_epoch - 1)
    assert asked(cluster, request, version).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("kind", "version"), CONTROL)
def test_a_controller_of_long_ago_is_refused(cluster: SimulatedCluster, kind: Any, version: int) -> None:
    broker_epoch, controller_epoch = epochs(cluster, 2)
    request = kind(controller_id=1, controller_epoch=controller_epoch - 1, broker_epoch=broker_epoch)
    assert asked(cluster, request, version).error_code == ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(("kind", "version"), CONTROL[:2])
def test_the_controller_itself_is_heard(cluster: SimulatedCluster, kind: Any, version: int) -> None:
    broker_epoch, controller_epoch = epochs(cluster, 2)
    request = kind(controller_id=1, controller_epoch=controller_epoch, broker_epoch=broker_epoch)
    assert asked(cluster, request, version).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("kind", "version"), [*CONTROL, (AlterPartitionRequest, 3), (ControlledShutdownRequest, 3)])
def test_by_the_clients_listener_nobody_is_heard(cluster: SimulatedCluster, kind: Any, version: int) -> None:
    with pytest.raises(ConnectionResetError):
        asked(cluster, kind(), version, port=CLIENTS)


@pytest.mark.parametrize(
    ("request_", "version"),
    [(AlterPartitionRequest(1), 3), (ControlledShutdownRequest(1), 3), (AllocateProducerIdsRequest(1), 0)],
)
def test_what_is_for_the_controller_is_refused_by_the_others(cluster: SimulatedCluster, request_: Message, version: int) -> None:
    assert asked(cluster, request_, version).error_code == ErrorCode.NOT_CONTROLLER


def test_the_controller_gives_blocks_of_producer_ids_to_those_it_knows(cluster: SimulatedCluster) -> None:
    broker_epoch, _ = epochs(cluster, 2)
    one = asked(cluster, AllocateProducerIdsRequest(2, broker_epoch), 0, broker=1)
    other = asked(cluster, AllocateProducerIdsRequest(2, broker_epoch), 0, broker=1)
    assert (one.error_code, one.producer_id_len) == (0, 1000)
    assert other.producer_id_start == one.producer_id_start + 1000
    assert asked(cluster, AllocateProducerIdsRequest(2, broker_epoch - 1), 0, broker=1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert asked(cluster, AllocateProducerIdsRequest(9, 1), 0, broker=1).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_brokers_of_a_cluster_tell_what_they_say_to_each_other() -> None:
    def served(brokers: int) -> set[int]:
        made = SimulatedCluster(1, brokers)
        made.brokers[1].start()
        answer = asked(made, ApiVersionsRequest(), 0, broker=1)
        return {api_key.api_key for api_key in answer.api_keys}

    control = {
        api_keys.LEADER_AND_ISR,
        api_keys.STOP_REPLICA,
        api_keys.UPDATE_METADATA,
        api_keys.CONTROLLED_SHUTDOWN,
        api_keys.ALTER_PARTITION,
        api_keys.ALLOCATE_PRODUCER_IDS,
    }
    assert served(2) - served(1) == control
