"""Sends the alert of a failed TLS handshake to the client, so that the client can say why it is refused.

OpenSSL writes the alert to the buffer of outgoing bytes. The event loops, asyncio's and uvloop's, drop that buffer when a handshake fails.
"""

from __future__ import annotations

import socket
import ssl
from contextvars import ContextVar
from typing import Any


class _Accepted:
    """The socket of the next handshake. The context of a connection outlives its handshake, and requests run in it: the first SSLObject
    takes the socket, so that no handshake in memory can write to the client."""

    __slots__ = ("socket",)

    def __init__(self, accepted: socket.socket) -> None:
        self.socket: socket.socket | None = accepted

    def take(self) -> socket.socket | None:
        taken, self.socket = self.socket, None
        return taken


# `ssl` has no other way to hand the socket to an SSLObject.
_accepted: ContextVar[_Accepted | None] = ContextVar("accepted", default=None)


def begin_handshake(accepted: socket.socket) -> None:
    """The next TLS handshake of this task is that of the socket."""
    _accepted.set(_Accepted(accepted))


def with_alerts(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """The same context, whose handshakes send alerts."""
    if context is not None:
        context.sslobject_class = _AlertingObject
    return context


class _AlertingObject(ssl.SSLObject):
    _outgoing: ssl.MemoryBIO
    _socket: socket.socket | None

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> _AlertingObject:
        """Called by SSLContext.wrap_bio."""
        made: _AlertingObject = super()._create(incoming, outgoing, *args, **options)  # type: ignore[misc]
        made._outgoing = outgoing
        accepted = _accepted.get()
        made._socket = None if accepted is None else accepted.take()
        return made

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            self._send_alert()
            raise
        self._socket = None

    def _send_alert(self) -> None:
        """Past the loop, which has nothing else to send: the client waits for the answer to its last message."""
        accepted, self._socket = self._socket, None
        alert = self._outgoing.read()
        if accepted is not None and alert:
            try:
                accepted.send(alert, socket.MSG_DONTWAIT)
            except OSError:
                pass  # the client is gone, or reads nothing: it sees that the connection is closed
