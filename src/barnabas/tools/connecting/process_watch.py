"""Notices that the process behind an address has ended, also if it is back at once: a connection that was open is closed.

No response says whether a broker has restarted. A broker may close an idle connection, or one without a TLS handshake; therefore the
watch opens a new one every two seconds, and takes only the end of a young one for the end of the process.
"""

from __future__ import annotations

import socket
from typing import Final

_RENEW_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 2.0


class ProcessWatch:
    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None
        self._opened_s = 0.0
        self.has_ended = False

    def look(self, monotonic_s: float) -> bool:
        """Whether the process has ended since the first look. To be called several times in two seconds."""
        if self.has_ended:
            return True
        if self._socket is not None and self._is_closed(self._socket):
            self.has_ended = True
        elif self._socket is None or monotonic_s - self._opened_s >= _RENEW_S:
            self._renew(monotonic_s)
        return self.has_ended

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _renew(self, monotonic_s: float) -> None:
        self.close()
        try:
            self._socket = socket.create_connection(self._address, _CONNECT_TIMEOUT_S)
        except ConnectionRefusedError:
            self.has_ended = True
            return
        except OSError:
            return  # tried again at the next look
        self._socket.setblocking(False)
        self._opened_s = monotonic_s

    def _is_closed(self, connection: socket.socket) -> bool:
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
