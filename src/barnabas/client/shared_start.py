"""The start of an asyncio client: the first call starts it, and all calls before it is complete await the same start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.client.errors import IllegalState


class SharedStart:
    """`start` runs in a task of its own, so that the cancellation of one caller does not cancel it for the others.

    If it fails, all waiting callers receive its error, and the next call tries again.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.is_done = False
        self._start = start
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self) -> None:
        """Waits until the start is complete. Raises its error, or IllegalState after `close`."""
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
        """Cancels a start in progress."""
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
