"""Connections of browsers, with bounds that uvicorn does not have.

uvicorn keeps a connection that sends nothing for ever, and with many of them answers every other one with 503. Here a connection *waits*
while no request of it is in progress. The head of its request has to be there some seconds after the connection was opened, or after the
first byte of a later request. Few connections may wait for their first request. Where a bound is reached, the connection that has waited
for longest is closed: a browser sends its request at once.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any, Final

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

CONNECTIONS_MAX: Final = 500
SILENT_MAX: Final = 100  # connections without a first request
REQUEST_S: Final = 10.0  # for the head of a request

_turns = itertools.count()  # a clock would have the same time for connections of one iteration of the loop
_log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """A connection of uvicorn's HTTP/1.1 with these bounds."""

    connections_max = CONNECTIONS_MAX
    silent_max = SILENT_MAX
    request_s = REQUEST_S

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadline: asyncio.TimerHandle | None = None
        self._waits_since = 0

    @property
    def is_waiting(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_silent(self) -> bool:
        """Whether there was no request yet."""
        return self.cycle is None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        silent = [one for one in others if one.is_silent]
        waiting = [one for one in others if one.is_waiting]
        if len(silent) >= self.silent_max:
            _close_oldest(silent)
        elif len(others) + 1 >= self.connections_max and waiting:
            _close_oldest(waiting)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_waiting:
            self._begin()
        else:
            self._end()

    def on_response_complete(self) -> None:
        self._waits_since = next(_turns)
        super().on_response_complete()
        if not self.is_waiting:  # the next request had arrived already
            self._end()
        elif self.conn.trailing_data[0]:  # a part of it
            self._begin()

    def send_400_response(self, msg: str) -> None:
        """Responds to bytes that are not HTTP. If they are in a body, uvicorn lets the handler respond too, and logs an exception."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        """The head of a request is awaited, unless it was before."""
        if self._deadline is None and not self.transport.is_closing():
            self._waits_since = next(_turns)
            self._deadline = self.loop.call_later(self.request_s, self.transport.abort)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _close_oldest(waiting: list[Connection]) -> None:
    oldest = min(waiting, key=lambda one: one._waits_since)
    _log.debug("Closes a connection that waits, because there are too many")
    oldest.connections.discard(oldest)  # connection_lost comes with the next iteration of the loop
    oldest.transport.abort()
