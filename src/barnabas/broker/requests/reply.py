# Compiled by mypyc: src/compiled.toml lists this module.
"""The answer to a request whose handler passes a callback on: it may be called before the handler returns, or much later, but once.

A handler passes `give` on and returns `now()`: the response, if it is there already, or None; then it is sent when it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.requests.request import Request

M = TypeVar("M", bound=Message)


class Answer(Generic[M]):
    __slots__ = ("_is_awaited", "_request", "_response")

    def __init__(self, request: Request[Message]) -> None:
        self._request = request
        self._response: M | None = None
        self._is_awaited = False

    def give(self, response: M) -> None:
        if self._is_awaited:
            self._request.respond(response)
        else:
            self._response = response

    def now(self) -> M | None:
        """What the handler returns. A request without its response waits from here on, and takes no place in the queue."""
        if self._response is None:
            self._is_awaited = True
            self._request.wait()
        return self._response
