"""Who has asked whom and was not answered, read off the wire: every request of every client and broker, whatever it is made of.

On one connection answers come in the order of the requests, one for each: it is enough to count frames. Who stands behind another that
waits, as a heartbeat behind a member that joins, cannot be answered yet.
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
        """What was asked since then and is still waited for, or was given up by who had asked, after so long."""
        waiting = [each for conversation in self._open if (each := conversation.waiting()) is not None]
        return [each for each in (*self._given_up, *waiting) if each.asked_at >= since and each.waited_s > longer_than_s]


class Conversation:
    """One connection."""

    def __init__(self, conversations: Conversations, world: World, client: str, server: str) -> None:
        self._conversations = conversations
        self._world = world
        self._between = f"from {client} to {server}"
        self._requests = Frames()
        self._responses = Frames()
        self._waiting: deque[int] = deque()  # API keys
        self._first_since = 0.0  # when the first of them had nobody before it any more

    def asked(self, data: bytes) -> None:
        for frame in self._requests.cut(data):
            if not self._waiting:
                self._first_since = self._world.now
            self._waiting.append(int.from_bytes(frame[:2], "big"))

    def answered(self, data: bytes) -> None:
        for _ in self._responses.cut(data):
            self._waiting.popleft()  # raises where there was nothing to answer
            self._first_since = self._world.now

    def waiting(self) -> Unanswered | None:
        """The first that waits for its answer."""
        if not self._waiting:
            return None
        return Unanswered(APIS[self._waiting[0]].name, self._between, self._first_since, self._world.now - self._first_since)

    def closed_by_client(self) -> None:
        """It does not want to know any more."""
        self._conversations.end(self, self.waiting())

    def closed_by_server(self) -> None:
        """That is an answer too."""
        self._conversations.end(self, None)


class Frames:
    """Whole frames of a stream of bytes, by their sizes in front."""

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
