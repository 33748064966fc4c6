"""Bounds on what runs at the same time for all visitors: a scan holds fetched data, a download runs for long, a tail without end."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Final, Protocol

from barnabas.errors import KafkaError

SCANS_MAX: Final = 4
DOWNLOADS_MAX: Final = 2
TAILS_MAX: Final = 20
WAIT_S: Final = 5.0
_ASK_AGAIN_S: Final = 0.02


class Busy(KafkaError):
    """All places are taken; retry after a while."""

    retriable = True


class Places:
    """`async with places:` waits for a place, at most WAIT_S seconds, and raises Busy."""

    def __init__(self, places_max: int, what: str) -> None:
        self._places_max = places_max
        self._what = what
        self.taken = 0

    async def take(self) -> None:
        """Takes a place; `free` gives it back."""
        until = time.monotonic() + WAIT_S
        while self.taken >= self._places_max:
            if time.monotonic() >= until:
                raise Busy(f"This console has at most {self._places_max} {self._what} at the same time")
            await asyncio.sleep(_ASK_AGAIN_S)
        self.taken += 1

    def free(self) -> None:
        """Gives a place back."""
        self.taken -= 1

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()


SCANS: Final = Places(SCANS_MAX, "searches")
DOWNLOADS: Final = Places(DOWNLOADS_MAX, "downloads")
TAILS: Final = Places(TAILS_MAX, "live tails")


CLOSE_S: Final = 2.0


class _Closable(Protocol):
    async def close(self, timeout: Any = None, /) -> Any: ...


_closing: set[asyncio.Task[None]] = set()


def close_later(client: _Closable) -> asyncio.Task[None]:
    """Closes a client in a task of its own: a response whose visitor has left is cancelled, and could not wait for it."""
    task = asyncio.create_task(_close(client))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    return task


async def all_closed() -> None:
    """Waits until the clients of `close_later` are closed, before the console ends."""
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(task for task in _closing if task.get_loop() is loop))


async def _close(client: _Closable) -> None:
    try:
        await client.close(CLOSE_S)
    except KafkaError:
        pass  # it is not used any more
