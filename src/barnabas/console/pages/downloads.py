"""Files that browsers save. Each holds a place of DOWNLOADS until the browser has all of it, or has read nothing for SEND_S seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from barnabas.console.messages.export import DownloadTooLarge, MessagesLeftOut
from barnabas.console.messages.parquet import ParquetFailed
from barnabas.errors import KafkaError

SEND_S: Final = 60.0  # for one piece: a browser that reads nothing for so long loses its place

_log = logging.getLogger(__name__)


class _Stalled(Exception):
    """The browser does not read."""


class Download(StreamingResponse):
    """A file that is broken off if its pieces fail or the browser does not read. The browser then reports a failed download, so that the
    beginning is not taken for the whole file. `end` is called once, after the last piece."""

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], end: Callable[[], None], name: str, *, media_type: str = "application/octet-stream"
    ) -> None:
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._pieces = pieces
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                await self._pieces.aclose()
            finally:
                self._end()

    async def stream_response(self, send: Send) -> None:
        """Streams the pieces; without the end of the response if they fail or the browser does not read them."""

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_S):
                    await send(message)
            except TimeoutError:
                raise _Stalled(f"the browser has read nothing for {SEND_S:.0f} s") from None

        try:
            await super().stream_response(send_in_time)
        except (KafkaError, DownloadTooLarge, MessagesLeftOut, ParquetFailed, _Stalled) as fault:
            _log.warning("A download was broken off: %s", str(fault) or type(fault).__name__)


def file_name(topic: str) -> str:
    """The name of a topic as part of a file's name."""
    return "".join(character if character.isascii() and (character.isalnum() or character in "._-") else "_" for character in topic)[:100]
