"""Finds requests without a response by reading the wire: all requests of all clients and brokers, whatever code sends them.

On one connection there is one response per request, in the order of the requests, so counting frames is enough. A request behind
another that waits, such as a heartbeat behind a JoinGroup, cannot get its response yet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.registry import APIS

if TYPE_CHECKING:
    from barnabas.simulation.world import World


class Unanswered(NamedTuple):
    api: str
    between: str
    asked_at: float
    waited_s: float

    def __str__(self) -> str:
        return f"{self.api} {self.between} was not answered in {self.waited_s:.1f} s"


class Conversations:
    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[Conversation, None] = {}  # in the order in which they began
        self._given_up: list[Unanswered] = []

    def begin(self, client: str, server: str) -> Conversation:
        conversation = Conversation(self, self._world, client, server)
        self._open[conversation] = None
        return conversation

    def end(self, conversation: Conversation, given_up: Unanswered | None) -> None:
        if conversation in self._open:
            del self._open[conversation]
            self._given_up += [given_up] if given_up is not None else []

    def unanswered(self, since: float, longer_than_s: float) -> list[Unanswered]:
        """Requests sent since `since` that still wait, or that the client abandoned, after more than `longer_than_s`."""
        waiting = [request for conversation in self._open if (request := conversation.waiting()) is not None]
        return [request for request in (*self._given_up, *waiting) if request.asked_at >= since and request.waited_s > longer_than_s]


class Conversation:
    """The requests and responses of one connection."""

    def __init__(self, conversations: Conversations, world: World, client: str, server: str) -> None:
        self._conversations = conversations
        self._world = world
        self._between = f"from {client} to {server}"
        self._requests = Frames()
        self._responses = Frames()
        self._waiting: deque[int] = deque()  # API keys
        self._first_since = 0.0  # when the first of them became the first

    def client_sent(self, data: bytes) -> None:
        for frame in self._requests.cut(data):
            if not self._waiting:
                self._first_since = self._world.now
            self._waiting.append(int.from_bytes(frame[:2], "big"))

    def server_sent(self, data: bytes) -> None:
        for _ in self._responses.cut(data):
            self._waiting.popleft()  # raises if no request waits
            self._first_since = self._world.now

    def waiting(self) -> Unanswered | None:
        """The first request that waits for its response."""
        if not self._waiting:
            return None
        return Unanswered(APIS[self._waiting[0]].name, self._between, self._first_since, self._world.now - self._first_since)

    def closed_by_client(self) -> None:
        """The client gives up its waiting requests."""
        self._conversations.end(self, self.waiting())

    def closed_by_server(self) -> None:
        """Closing counts as the response."""
        self._conversations.end(self, None)


class Frames:
    """Splits a stream of bytes into frames, by the size in front of each."""

    def __init__(self) -> None:
        self._uncut = b""

    def cut(self, data: bytes) -> list[bytes]:
        self._uncut += data
        frames = []
        while len(self._uncut) >= 4:
            end = 4 + int.from_bytes(self._uncut[:4], "big")
            if len(self._uncut) < end:
                break
            frames.append(self._uncut[4:end])
            self._uncut = self._uncut[end:]
        return frames
