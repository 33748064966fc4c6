# Compiled by mypyc: src/compiled.toml lists this module.
"""A request as handlers get it: the message, the client, and the exchange that takes the response.

The dispatcher makes it. A message has one class for all versions; the version matters only to the few handlers that treat old clients
differently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.broker.security.session import Session
from barnabas.errors import KafkaError
from barnabas.network.exchange import Exchange, Peer
from barnabas.protocol import framing
from barnabas.protocol.message import Message
from barnabas.protocol.registry import Api

_log = logging.getLogger(__name__)

M_co = TypeVar("M_co", bound=Message, covariant=True)


class Request(Generic[M_co]):
    __slots__ = ("api", "client_id", "correlation_id", "exchange", "message", "version")

    def __init__(self, exchange: Exchange, header: framing.RequestFrame, message: M_co) -> None:
        self.exchange = exchange
        self.api: Api = header.api
        self.version = header.version
        self.correlation_id = header.correlation_id
        self.client_id = header.client_id
        self.message = message

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
        header_version = self.api.response_header_version(self.version)
        try:
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
