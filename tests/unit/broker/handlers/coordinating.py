"""A broker that coordinates groups: the real coordinator over a log in memory, asked by frames through the real dispatcher."""

from __future__ import annotations

from typing import Any, TypeVar

from barnabas.broker.broker import Broker
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.protocol.framing import request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME
from tests.unit.broker.handlers.asking import a_broker, topic
from tests.unit.broker.handlers.leader import Asked
from tests.unit.coordinator.coordinator_host import Host

M = TypeVar("M", bound=Message)


def coordinating(host: Host, **settings: Any) -> Broker:
    """With topics `t`, of three partitions, and `u`, of one."""
    return a_broker(topic("t", 3), topic("u"), groups=host.coordinator, **settings)


def sent(broker: Broker, request: Message, version: int) -> Asked:
    pending = Asked(BY_NAME[type(request).__name__.removesuffix("Request")].key, version)
    frame = b"".join(request_frame(request, pending.api, version, 7, "client"))
    RequestDispatcher(broker).dispatch(pending.exchange, frame[4:])
    return pending


def answered(broker: Broker, request: Message, answer: type[M], version: int) -> M:
    """What is answered at once."""
    response = sent(broker, request, version).response()
    assert isinstance(response, answer)
    return response
