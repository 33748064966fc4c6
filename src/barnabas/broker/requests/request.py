# Compiled by mypyc: src/compiled.toml lists this module.
"""A request on its way through the broker: what was asked, by whom, and the way back.

The dispatcher makes it, a handler answers it. A handler sees one message class and no version; the version matters only to the few that
must answer old clients differently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

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
        """The listener the client came in by: addresses in the answer are those that this listener advertises."""
        return self.exchange.connection.listener_name

    def respond(self, response: Message) -> None:
        """Sends the answer, in this request's turn on its connection."""
        header_version = self.api.response_header_version(self.version)
        try:
            frame = framing.response_frame(response, self.correlation_id, self.version, header_version)
        except KafkaError as error:  # whoever answers may be in the middle of another's business: a timer, another member's join
            _log.warning("Closing connection %s: the answer to %s cannot be sent: %s", self.connection.id, self, error)
            self.exchange.close_connection()
            return
        self.exchange.respond(frame)

    def wait(self) -> None:
        """To be called when the answer will come with an event and not from work in progress: what waits takes no place in the queue."""
        self.exchange.leave_queue()

    def __repr__(self) -> str:
        return f"{self.api.name} v{self.version} #{self.correlation_id} of {self.client_id} on {self.connection.id}"


class RequestPart(Request[M_co]):
    """A part of a request that has too many elements to be handled in one call: its answer becomes a part of the answer."""

    __slots__ = ("_on_response",)

    def __init__(self, exchange: Exchange, header: framing.RequestFrame, message: M_co, on_response: Callable[[Message], None]) -> None:
        super().__init__(exchange, header, message)
        self._on_response = on_response

    def respond(self, response: Message) -> None:
        self._on_response(response)

    def wait(self) -> None:
        """The request as a whole has left the queue already."""
