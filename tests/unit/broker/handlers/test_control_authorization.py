"""Requests between controller and brokers need CLUSTER_ACTION, whatever the listener."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.handlers import CONTROL
from barnabas.broker.scheduling.turns import BYTES_AT_ONCE, ELEMENTS_AT_ONCE
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from barnabas.protocol.messages.stop_replica_request import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from barnabas.protocol.messages.update_metadata_request import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.protocol.registry import APIS
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import a_broker, ask
from tests.unit.broker.handlers.granting import granting

DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
TOPIC_ID = Uuid(b"the id of orders")
WITH_PARTITIONS: dict[int, Message] = {
    api_keys.LEADER_AND_ISR: LeaderAndIsrRequest(
        topic_states=[LeaderAndIsrTopicState("orders", TOPIC_ID, [LeaderAndIsrPartitionState(partition_index=3)])]
    ),
    api_keys.STOP_REPLICA: StopReplicaRequest(topic_states=[StopReplicaTopicState("orders", [StopReplicaPartitionState(3)])]),
}


def _many_partitions() -> UpdateMetadataRequest:
    states = [UpdateMetadataPartitionState(partition_index=number) for number in range(ELEMENTS_AT_ONCE + 1)]
    return UpdateMetadataRequest(topic_states=[UpdateMetadataTopicState("orders", TOPIC_ID, states)])


def _many_bytes() -> UpdateMetadataRequest:
    return UpdateMetadataRequest(topic_states=[UpdateMetadataTopicState("x" * 30_000, TOPIC_ID, [])] * (BYTES_AT_ONCE // 30_000 + 1))


def sent(key: int, *grants: str) -> Any:
    """The answer of a broker that takes control requests on another listener."""

    def refuse(_: object) -> None:
        raise MalformedMessage("the wrong listener")

    broker = a_broker(access=granting(*grants), cluster=SimpleNamespace(require_broker=refuse))
    api = APIS[key]
    message = WITH_PARTITIONS.get(key) or api.request()
    return asyncio.run(ask(broker, message, api.response, api.stable_version))


@pytest.mark.parametrize("key", CONTROL)
def test_a_client_without_cluster_action_is_refused(key: int) -> None:
    assert sent(key, "ALTER cluster", "DESCRIBE cluster").error_code == DENIED


@pytest.mark.parametrize("key", CONTROL)
def test_a_client_with_cluster_action_must_still_use_the_listener_of_the_brokers(key: int) -> None:
    with pytest.raises(MalformedMessage, match="the wrong listener"):
        sent(key, "CLUSTER_ACTION cluster")


@pytest.mark.parametrize("message", [_many_partitions(), _many_bytes()])
@pytest.mark.parametrize("grants", [(), ("CLUSTER_ACTION cluster",)])
def test_a_long_request_is_not_even_parsed_for_a_client_that_is_no_broker(grants: tuple[str, ...], message: UpdateMetadataRequest) -> None:
    """Parsing it holds the loop, and all clients wait."""

    def listens(_: object) -> None:
        if grants:
            raise MalformedMessage("the wrong listener")

    broker = a_broker(access=granting(*grants), cluster=SimpleNamespace(require_broker=listens))
    with pytest.raises(MalformedMessage, match="the wrong listener" if grants else "only from a client that has CLUSTER_ACTION"):
        asyncio.run(ask(broker, message, UpdateMetadataResponse, 8))


def test_each_partition_of_a_refused_request_has_the_error() -> None:
    (topic,) = sent(api_keys.LEADER_AND_ISR).topics
    assert (
        topic.topic_id,
        [(partition_error.partition_index, partition_error.error_code) for partition_error in topic.partition_errors],
    ) == (TOPIC_ID, [(3, DENIED)])
    (stopped,) = sent(api_keys.STOP_REPLICA).partition_errors
    assert (stopped.topic_name, stopped.partition_index, stopped.error_code) == ("orders", 3, DENIED)
