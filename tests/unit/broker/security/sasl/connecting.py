"""A connection to a SASL listener without a network: frames go to the real dispatcher, and its frames come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, TypeVar, cast

from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.dispatcher import RequestDispatcher
from barnabas.broker.security.authentication import Authentication
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.sasl.listeners import SaslListeners
from barnabas.network.exchange import Exchange, Peer
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME
from tests.unit.broker.handlers.asking import TIMEOUT_S, a_broker, read
from tests.unit.frames import joined

M = TypeVar("M", bound=Message)

LISTENER = "SASL_PLAINTEXT"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "barnabas.sasl.plain.users": "alice:secret,bob:other",
    "connection.failed.authentication.delay.ms": "0",
}


class MovedClock(Clock):
    """Both clocks of a broker; a test moves them together (`ms`), or sets the wall clock alone (`step_ms`)."""

    def __init__(self) -> None:
        self.ms = 1_000_000
        self.step_ms = 0

    def now_ms(self) -> int:
        return self.ms + self.step_ms

    def monotonic_ms(self) -> int:
        return self.ms


class Server:
    """The SASL listeners and the dispatcher of a broker. Made on a running loop."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.clock = MovedClock()
        self.credentials = Credentials()
        self.config = BrokerConfig(SETTINGS | dict(settings or {}))
        self.threads = ThreadPoolExecutor(1)
        self.sasl = SaslListeners(self.config, self.credentials, self.clock, Random(7), self.threads)
        self.broker: Broker = a_broker()
        self.dispatcher = RequestDispatcher(self.broker, authentication=Authentication(self.sasl.by_name))

    def connect(self) -> Client:
        return Client(self.dispatcher)


class Client:
    """One connection. `is_authenticated` is what the listener has said to the connection."""

    def __init__(self, dispatcher: RequestDispatcher) -> None:
        self._dispatcher = dispatcher
        self._answered = asyncio.Event()
        self.id = "test"
        self.remote_ip = "127.0.0.1"
        self.listener_name = LISTENER
        self.session: Any = None
        self.is_authenticated = False
        self.is_open = True
        self.requests_in_queue = 0
        self.answered: Callable[[], None] = self._answered.set

    async def ask(self, request: Message, answer: type[M], version: int) -> M:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        return read(await self.send(b"".join(request_frame(request, api, version, 17, "test"))[SIZE_PREFIX:]), answer, version)

    async def send(self, frame: bytes) -> bytes:
        """The response to a frame, both without their sizes; empty if the connection is closed without one."""
        assert self.is_open
        self._answered.clear()
        exchange = self.begin(frame)
        await asyncio.wait_for(self._answered.wait(), TIMEOUT_S)
        self.is_open = not exchange.closes
        return joined(exchange.response or ())[SIZE_PREFIX:]

    def begin(self, frame: bytes) -> Exchange:
        """Sends a frame, and waits for nothing."""
        exchange = Exchange(cast("Peer", self), len(frame), False, 0)
        self.requests_in_queue += 1
        self._dispatcher.dispatch(exchange, frame)
        return exchange

    def authenticated(self) -> None:
        self.is_authenticated = True

    def extra_info(self, name: str) -> None:
        """There is no TLS."""

    def request_left_queue(self, size: int) -> None:
        self.requests_in_queue -= 1

    def pipelining_resumed(self) -> None:
        """There is no pipelining."""
