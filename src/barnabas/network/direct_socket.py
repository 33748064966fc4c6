# Compiled by mypyc: src/compiled.toml lists this module.
"""The socket of a connection, written past its transport: this is how the kernel sends a file that never comes into memory.

The event loop's transports know no sendfile, and own their descriptor. So a second descriptor of the same socket is opened for as long as a
response is streamed, which the loop lets us wait on. It must be used only while the transport holds nothing back, or bytes would change
places; and never on a TLS connection, where what is sent is not what is in the file.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, Final

# What comes next belongs to the same packet: a few bytes of header do not wake the reader on their own.
MORE_TO_COME: Final[int] = getattr(socket, "MSG_MORE", 0)


class DirectSocket:
    __slots__ = ("_socket", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self.descriptor = self._socket.fileno()

    def send(self, buffers: Sequence[bytes | bytearray | memoryview], *, more: bool) -> int:
        """How much of them was taken, 0 where the peer has to be waited for."""
        try:
            return self._socket.sendmsg(buffers, (), MORE_TO_COME if more else 0)
        except BlockingIOError:
            return 0

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        """How much of it was taken, 0 where the peer has to be waited for."""
        try:
            sent = os.sendfile(self.descriptor, descriptor, position, size)
        except BlockingIOError:
            return 0
        if sent == 0:
            raise OSError("A file was truncated while it was being sent")
        return sent

    def close(self) -> None:
        self._socket.close()


def of_transport(transport: Any) -> DirectSocket | None:
    """None where bytes must go through the transport: it speaks TLS, or there is no socket, or no descriptor left to open."""
    if transport.get_extra_info("sslcontext") is not None:
        return None
    its_socket = transport.get_extra_info("socket")
    if its_socket is None:
        return None
    try:
        return DirectSocket(its_socket.fileno())
    except OSError:
        return None
