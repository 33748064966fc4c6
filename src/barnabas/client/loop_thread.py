"""The thread of a blocking client: it runs an event loop, on which the client's calls run while their callers wait.

The loop is uvloop's if it is installed. The thread is a daemon, so that a program that does not close its client still ends.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from barnabas.client.errors import IllegalState, Timeout

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop of uvloop if it is installed, otherwise of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()  # mypy sees Any if uvloop is not installed, as in an isolated build
    return loop


class LoopThread:
    """Start it with `start`, run coroutines from other threads with `run`, end it with `close`. A child process cannot use its parent's
    thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loop = new_event_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._started = False
        self._closed = False
        self._process_id = os.getpid()
        # Nothing may be submitted to a stopped loop: its result would never arrive. The lock is held only briefly.
        self._door = threading.Lock()

    def start(self) -> None:
        self._started = True
        self._thread.start()

    def is_current(self) -> bool:
        """Whether the caller is the loop's own thread, for instance in a callback. Such a caller must not block."""
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs the coroutine on the loop and returns its result; after `timeout` seconds cancels it and raises Timeout."""
        if self.is_current():
            coroutine.close()
            raise IllegalState(f"A blocking call was made on the thread {self.name} itself, from a callback: it would wait for itself")
        future = self.submit(coroutine)
        try:
            return future.result(timeout)
        except TimeoutError:
            if future.done():
                raise  # raised by the coroutine itself
            future.cancel()
            raise Timeout(f"Timed out after {timeout} s") from None
        except BaseException:
            # The waiting thread was interrupted (Ctrl-C), or the loop ended: no caller will read the result.
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs the coroutine on the loop without waiting for it."""
        try:
            with self._door:
                self._check()
                return asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        except IllegalState:
            coroutine.close()
            raise

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Schedules a callback on the loop from another thread, and wakes the loop."""
        with self._door:
            self._check()
            self.loop.call_soon_threadsafe(callback, *arguments)

    def close(self, timeout: float | None = None) -> None:
        """Cancels running tasks, ends the thread and waits for it, at most `timeout` seconds. May be called again."""
        if os.getpid() != self._process_id:
            self._closed = True  # the thread belongs to the parent process
            return
        with self._door:
            if self._closed:
                return
            self._closed = True
            if not self._started:
                self.loop.close()
                return
            self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_current():
            self._thread.join(timeout)

    def _check(self) -> None:
        if os.getpid() != self._process_id:
            raise IllegalState(
                f"This client was made in process {self._process_id} and its thread {self.name} lives there; after a fork, make a client "
                "in the child (with multiprocessing: use the start method 'spawn', or make the client in the worker)"
            )
        if self._closed or not self._started:
            raise IllegalState("The client has already been closed" if self._closed else "The client has not been started")

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
            self.loop.close()
