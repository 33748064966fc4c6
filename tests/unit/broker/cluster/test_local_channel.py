"""The channel to a broker of the same process keeps the order of a network, and never responds inside the call that sends."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.loggers import STATE_CHANGE, TRACE
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse

BROKER = 7
REGISTRATION = BrokerRegistration((), 0)
ANSWERS: dict[type[Message], type[Message]] = {
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    StopReplicaRequest: StopReplicaResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
}


class Listening:
    """Notes what it is told, and takes a turn of the loop for each."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def carry_out(self, request: Message) -> Message:
        await asyncio.sleep(0)
        self.heard.append(type(request).__name__)
        return ANSWERS[type(request)]()


def test_requests_arrive_in_order_and_answers_after_the_question() -> None:
    async def scenario() -> None:
        broker, answers = Listening(), list[str]()
        channel = LocalChannel({BROKER: broker.carry_out})
        channel.add_broker(BROKER, REGISTRATION)
        for request in (LeaderAndIsrRequest(), UpdateMetadataRequest(), StopReplicaRequest()):
            channel.send(BROKER, request, lambda response: answers.append(type(response).__name__))
        assert broker.heard == [] and answers == []
        await channel.drained()
        assert broker.heard == ["LeaderAndIsrRequest", "UpdateMetadataRequest", "StopReplicaRequest"]
        assert answers == ["LeaderAndIsrResponse", "UpdateMetadataResponse", "StopReplicaResponse"]

    asyncio.run(scenario())


def test_a_broker_that_was_removed_hears_nothing_more() -> None:
    async def scenario() -> None:
        broker = Listening()
        channel = LocalChannel({BROKER: broker.carry_out})
        channel.send(BROKER, UpdateMetadataRequest())
        channel.add_broker(BROKER, REGISTRATION)
        channel.send(BROKER, UpdateMetadataRequest())
        channel.remove_broker(BROKER)
        await channel.drained()
        assert broker.heard == []

    asyncio.run(scenario())


def test_an_order_that_fails_is_answered_with_an_error_and_does_not_hold_up_those_behind_it() -> None:
    async def scenario() -> None:
        heard, codes = list[str](), list[int]()

        async def carry_out(request: Message) -> Message:
            if isinstance(request, LeaderAndIsrRequest):
                raise RuntimeError("a fault of the broker")
            heard.append(type(request).__name__)
            return UpdateMetadataResponse()

        def note(response: Message) -> None:
            assert isinstance(response, LeaderAndIsrResponse | UpdateMetadataResponse)
            codes.append(response.error_code)

        channel = LocalChannel({BROKER: carry_out})
        channel.add_broker(BROKER, REGISTRATION)
        channel.send(BROKER, LeaderAndIsrRequest(), note)
        channel.send(BROKER, UpdateMetadataRequest(), note)
        await channel.drained()
        assert heard == ["UpdateMetadataRequest"]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]

    asyncio.run(scenario())


def test_a_request_to_an_unknown_broker_and_each_response_are_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async def answer(request: Message) -> Message:
            return UpdateMetadataResponse(0)

        channel = LocalChannel({1: answer})
        channel.send(1, UpdateMetadataRequest(controller_id=1, controller_epoch=4, broker_epoch=9))
        channel.add_broker(1, REGISTRATION)
        channel.send(1, UpdateMetadataRequest(controller_id=1, controller_epoch=4, broker_epoch=9))
        await channel.drained()

    caplog.set_level(TRACE, STATE_CHANGE)
    asyncio.run(scenario())
    assert caplog.messages == [
        "Not sending request UpdateMetadata with controllerId=1, controllerEpoch=4, brokerEpoch=9 to broker 1, since it is offline.",
        "[Controller id=1 epoch=4] Received response UpdateMetadataResponse(errorCode=0) for request UpdateMetadata sent to broker 1",
    ]
