"""Server-sent events: what moves on a page. console.js has the other half.

An event is a name and a text. `fragment` replaces the content of the element that the page names, `append` and `prepend` add to it, and
`fragments` has elements whose content replaces that of the elements with their ids. `samples` goes to a chart, `status` is a text for the
element of data-status-target, and `done` ends the stream. A comment every 15 seconds finds out whether the browser is still there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from starlette.responses import StreamingResponse

from barnabas.errors import KafkaError

KEEP_ALIVE_S: Final = 15.0
STREAMS_MAX: Final = 200  # of all visitors; a browser has one or two for each tab that is in view


_log = logging.getLogger(__name__)


def encoded(event: str, data: str) -> bytes:
    """One event on the wire."""
    lines = "".join(f"data: {line}\n" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return f"event: {event}\n{lines}\n".encode("utf-8", "replace")


class EventStreams:
    """The streams of the whole console, whose number is bounded."""

    def __init__(self, streams_max: int = STREAMS_MAX) -> None:
        self._streams_max = streams_max
        self._open = 0

    @property
    def is_full(self) -> bool:
        return self._open >= self._streams_max

    def response(self, source: AsyncIterator[tuple[str, str]], is_open: Callable[[], bool] = lambda: True) -> StreamingResponse:
        """The stream of a source. It ends when `is_open` is false, before the next event or comment: the visitor's login has ended."""
        return StreamingResponse(self._stream(source, is_open), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def _stream(self, source: AsyncIterator[tuple[str, str]], is_open: Callable[[], bool]) -> AsyncIterator[bytes]:
        self._open += 1
        following: asyncio.Future[tuple[str, str]] | None = None
        try:
            yield b"retry: 3000\n\n"
            while True:
                following = following or asyncio.ensure_future(anext(source))
                done, _ = await asyncio.wait((following,), timeout=KEEP_ALIVE_S)
                if not is_open():
                    yield encoded("status", "The login has ended: log in again")
                    yield encoded("done", "")
                    return
                if not done:
                    yield b": still here\n\n"
                    continue
                try:
                    event, data = following.result()
                except StopAsyncIteration:
                    yield encoded("done", "")
                    return
                except KafkaError as error:
                    _log.info("A live page lost its cluster: %s", error)
                    return  # the browser comes back after three seconds
                following = None
                yield encoded(event, data)
        finally:
            self._open -= 1
            if following is not None:
                following.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                    await following
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
