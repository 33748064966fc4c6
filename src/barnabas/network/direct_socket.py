# Compiled by mypyc: src/compiled.toml lists this module.
"""The socket of a connection, written past its transport: the kernel sends a file with sendfile, without copying it to memory.

The transports of the event loop have no sendfile and own their descriptor. So a second descriptor of the same socket is opened while a
response is streamed, and the loop watches that one. It must be used only while the transport has nothing left to send, or bytes would be
reordered; and never on a TLS connection, where the bytes of the file must be encrypted.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, Final

from barnabas import system

# The next bytes belong to the same packet: a few bytes of header do not wake the reader on their own.
MORE_TO_COME: Final[int] = system.MSG_MORE


class DirectSocket:
    __slots__ = ("_socket", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self.descriptor = self._socket.fileno()

    def send(self, buffers: Sequence[bytes | bytearray | memoryview], *, more: bool) -> int:
        """Returns the number of bytes that the kernel accepted, 0 if the socket is not writable."""
        try:
            return self._socket.sendmsg(buffers, (), MORE_TO_COME if more else 0)
        except BlockingIOError:
            return 0

    def send_file(self, descriptor: int, position: int, size: int) -> int:
        """Returns the number of bytes that the kernel accepted, 0 if the socket is not writable."""
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
    """None if the bytes must go through the transport: it uses TLS, or there is no sendfile, no socket, or no descriptor left."""
    if not system.HAS_SENDFILE or transport.get_extra_info("sslcontext") is not None:
        return None
    its_socket = transport.get_extra_info("socket")
    if its_socket is None:
        return None
    try:
        return DirectSocket(its_socket.fileno())
    except OSError:
        return None
