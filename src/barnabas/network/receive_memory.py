"""The memory of requests that are still arriving, on all connections together.

A large request is received into a buffer that grows with the bytes received, up to socket.request.max.bytes: a hundred peers that send most
of a request and then nothing would hold 10 GB. When the limit is exceeded, the connection whose request has been arriving for longest is
closed: the request of a well-behaved client is complete within moments.
"""

from __future__ import annotations

from typing import Protocol


class Receiver(Protocol):
    def stop_receiving(self) -> None:
        """Close the connection without waiting for the rest of the request."""


class ReceiveMemory:
    """`used` is the sum of the bytes that the receivers hold."""

    __slots__ = ("_held", "limit", "times_full", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.times_full = 0
        self._held: dict[Receiver, int] = {}  # in the order in which the requests began

    def hold(self, receiver: Receiver, size: int) -> None:
        """The request arriving on this connection now holds `size` bytes. A single one may be larger than the limit."""
        self.used += size - self._held.get(receiver, 0)
        self._held[receiver] = size
        while self.used > self.limit and len(self._held) > 1:
            oldest = next(iter(self._held))
            self.release(oldest)
            self.times_full += 1
            oldest.stop_receiving()

    def release(self, receiver: Receiver) -> None:
        """The request is complete, or its connection is closed."""
        self.used -= self._held.pop(receiver, 0)
