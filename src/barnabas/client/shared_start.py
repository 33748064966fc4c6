"""The start of a client on asyncio: the first call begins it, and all calls that come before its end wait for the same one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.client.errors import IllegalState


class SharedStart:
    """`start` runs in a task of its own, so that a caller that is cancelled does not end it for the others.

    Where it fails, all who wait get its error, and the next call tries again.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.is_done = False
        self._start = start
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self) -> None:
        """Returns when it is done. Raises its error, or IllegalState after `close`."""
        if self.is_done:
            return
        if self._is_closed:
            raise _closed()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._is_closed:
                raise _closed() from None
            raise

    async def close(self) -> None:
        """Ends a start that is under way."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._start()
            self.is_done = True
        finally:
            self._task = None


def _closed() -> IllegalState:
    return IllegalState("The client has already been closed")
