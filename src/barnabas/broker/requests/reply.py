# Compiled by mypyc: src/compiled.toml lists this module.
"""The reply to one request: what every handler returns. It is completed exactly once, before the handler returns or later.

- `Reply.now(request, response)`: the handler has the response.
- `Reply.awaiting(request, awaitable)`: a coroutine returns the response. The dispatcher runs it as a task.
- `Reply(request)`: a callback completes the reply, during the call of the handler or at any later time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request

M = TypeVar("M", bound=Message)
N = TypeVar("N", bound=Message)


class Reply(Generic[M]):
    """`response` and `awaitable` are for the dispatcher, which sends the response. With neither of them, `complete` sends it."""

    __slots__ = ("awaitable", "is_complete", "is_waiting", "request", "response")

    def __init__(self, request: Request[Message], response: M | None = None, awaitable: Awaitable[M | None] | None = None) -> None:
        self.request = request
        self.response = response
        self.awaitable = awaitable
        self.is_complete = False
        self.is_waiting = False  # the handler has returned, and nothing works on the reply

    @staticmethod
    def now(request: Request[Message], response: N) -> Reply[N]:
        return Reply(request, response)

    @staticmethod
    def awaiting(request: Request[Message], awaitable: Awaitable[N | None]) -> Reply[N]:
        """The awaitable returns the response, or None where a callback completes the reply."""
        return Reply(request, None, awaitable)

    async def result(self) -> M | None:
        """The response that the dispatcher has to send; None where a callback completes the reply."""
        return self.response if self.awaitable is None else await self.awaitable

    def wait(self) -> None:
        """The dispatcher calls this when a callback has to complete the reply. From here on the request takes no place in the queue."""
        if not self.is_complete:
            self.is_waiting = True
            self.request.wait()

    def complete(self, response: M) -> None:
        """Sends the response. A second completion raises RuntimeError."""
        self._end()
        self.request.respond(response)

    def complete_with_frame(self, buffers: Sequence[bytes]) -> None:
        """As `complete`, for a response that is already written."""
        self._end()
        self.request.exchange.respond(buffers)

    def complete_without_response(self) -> None:
        """The client expects no response: Produce with acks=0."""
        self._end()
        usage = self.request.usage
        if usage is not None:
            usage.is_exempt = True
            usage.charge()
        self.request.exchange.no_response()

    def close_connection(self) -> None:
        """Completes the reply to a request whose response cannot carry the error."""
        self._end()
        self.request.exchange.close_connection()

    def _end(self) -> None:
        if self.is_complete:
            raise RuntimeError(f"{self.request} was answered twice")
        self.is_complete = True
