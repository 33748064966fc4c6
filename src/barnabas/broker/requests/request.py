# Compiled by mypyc: src/compiled.toml lists this module.
"""A request as handlers get it: the message, the client, and the exchange that takes the response.

The dispatcher makes it. A message has one class for all versions; the version matters only to the few handlers that treat old clients
differently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.broker.metrics.response_errors import count_errors
from barnabas.broker.quotas.request_quota import RequestUsage
from barnabas.broker.requests.error_texts import shorten_error_texts
from barnabas.broker.security.session import Session
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange, Peer
from barnabas.protocol import framing
from barnabas.protocol.errors import UnwritableMessage
from barnabas.protocol.message import Message
from barnabas.protocol.registry import Api

_log = logging.getLogger(__name__)

M_co = TypeVar("M_co", bound=Message, covariant=True)


class Request(Generic[M_co]):
    """`usage` counts the time of the request; None unless its client has a quota on time."""

    __slots__ = ("api", "client_id", "correlation_id", "exchange", "message", "usage", "version")

    def __init__(self, exchange: Exchange, header: framing.RequestFrame, message: M_co) -> None:
        self.exchange = exchange
        self.api: Api = header.api
        self.version = header.version
        self.correlation_id = header.correlation_id
        self.client_id = header.client_id
        self.message = message
        self.usage: RequestUsage | None = None

    @property
    def connection(self) -> Peer:
        return self.exchange.connection

    @property
    def listener_name(self) -> str:
        """The listener of the client's connection. Responses have the addresses that this listener advertises."""
        return self.exchange.connection.listener_name

    @property
    def session(self) -> Session:
        """The identity of the client. Every connection has one before its first request is handled."""
        session = self.exchange.connection.session
        assert isinstance(session, Session), session
        return session

    def respond(self, response: Message) -> None:
        """Sends the response, in this request's turn on its connection. `Reply.complete` calls it."""
        usage = self.usage
        if usage is None:
            self._send(response)
            return
        is_step = usage.begin()
        try:
            self.charge(response)
            self._send(response)
        finally:
            if is_step:
                usage.end()

    def charge(self, response: Message) -> None:
        """Charges the time of the request to its client, unless that was done. A client above its quota finds in the response how long it
        has to wait, and its connection is not read for that long."""
        usage = self.usage
        throttle_ms = 0 if usage is None else usage.charge()
        if usage is not None and throttle_ms > 0:
            self.throttle(throttle_ms, usage.monotonic_ms())
            set_throttle_time(response, throttle_ms)

    def throttle(self, throttle_ms: int, monotonic_ms: int) -> None:
        """Reads no further request of the client for so long."""
        self.exchange.throttle_ms = max(self.exchange.throttle_ms, throttle_ms)
        self.exchange.connection.throttle(monotonic_ms + throttle_ms)

    def _send(self, response: Message) -> None:
        if (metrics := self.exchange.metrics) is not None:
            count_errors(metrics.errors, response, self.exchange.version)
        if (watcher := self.exchange.watcher) is not None:
            watcher.response_made(response)
        header_version = self.api.response_header_version(self.version)
        try:
            try:
                frame = framing.response_frame(response, self.correlation_id, self.version, header_version)
            except UnwritableMessage:
                if not shorten_error_texts(response):
                    raise
                frame = framing.response_frame(response, self.correlation_id, self.version, header_version)
        except KafkaError as error:  # the caller may be handling another event, such as a timer or the join of another member
            _log.warning("Closing connection %s: the answer to %s cannot be sent: %s", self.connection.id, self, error)
            self.exchange.close_connection()
            return
        self.exchange.respond(frame)

    def wait(self) -> None:
        """Called when the response waits for an event and no work is in progress. The request then takes no place in the queue."""
        self.exchange.leave_queue()

    def __repr__(self) -> str:
        return f"{self.api.name} v{self.version} #{self.correlation_id} of {self.client_id} on {self.connection.id}"


def set_throttle_time(response: Any, throttle_ms: int) -> None:
    """Has no effect on the few responses without the field. The larger of two throttle times is sent."""
    if "throttle_time_ms" in response.field_names():
        response.throttle_time_ms = max(response.throttle_time_ms, throttle_ms)


class RequestPart(Request[M_co]):
    """A part of a request that has too many elements for one call. Its response becomes a part of the whole response."""

    __slots__ = ("_on_response",)

    def __init__(self, exchange: Exchange, header: framing.RequestFrame, message: M_co, on_response: Callable[[Message], None]) -> None:
        super().__init__(exchange, header, message)
        self._on_response = on_response

    def respond(self, response: Message) -> None:
        self._on_response(response)

    def wait(self) -> None:
        """Nothing to do: the request as a whole has left the queue already."""
