"""The thread behind a blocking client."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from barnabas.client.errors import IllegalState, Timeout
from barnabas.client.loop_thread import LoopThread


@pytest.fixture
def thread() -> LoopThread:
    made = LoopThread("test-thread")
    made.start()
    return made


async def name_of_thread() -> str:
    return threading.current_thread().name


async def forever() -> None:
    await asyncio.Event().wait()


def test_runs_coroutines_and_gives_what_they_give(thread: LoopThread) -> None:
    assert thread.run(name_of_thread()) == "test-thread"
    thread.close()


def test_raises_what_they_raise(thread: LoopThread) -> None:
    async def fail() -> None:
        raise Timeout("the coroutine's own")

    with pytest.raises(Timeout, match="the coroutine's own"):
        thread.run(fail(), timeout=60)
    thread.close()


def test_a_coroutine_that_takes_too_long_is_cancelled(thread: LoopThread) -> None:
    cancelled = threading.Event()

    async def endless() -> None:
        try:
            await forever()
        finally:
            cancelled.set()

    with pytest.raises(Timeout):
        thread.run(endless(), timeout=0.05)
    assert cancelled.wait(60)
    thread.close()


def test_waiting_on_the_loops_own_thread_is_refused(thread: LoopThread) -> None:
    async def nested() -> None:
        thread.run(forever())

    with pytest.raises(IllegalState, match="would wait for itself"):
        thread.run(nested())
    thread.close()


def test_closing_cancels_what_runs_and_ends_the_thread(thread: LoopThread) -> None:
    running = thread.submit(forever())
    thread.close()
    assert running.cancelled() or running.exception(5) is not None
    assert "test-thread" not in [other.name for other in threading.enumerate()]
    thread.close()
    with pytest.raises(IllegalState, match="closed"):
        thread.run(forever())
    with pytest.raises(IllegalState, match="closed"):
        thread.call_soon(print)


def test_before_the_start_nothing_runs() -> None:
    thread = LoopThread("never")
    with pytest.raises(IllegalState, match="not been started"):
        thread.run(forever())
    thread.close()


def test_calls_from_other_threads(thread: LoopThread) -> None:
    called = threading.Event()
    thread.call_soon(called.set)
    assert called.wait(60)
    thread.close()


def test_a_child_process_is_told_to_make_its_own(thread: LoopThread) -> None:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            thread.run(forever())
        except IllegalState as error:
            os.write(theirs, str(error).encode())
        thread.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert b"after a fork, make a client in the child" in os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)
    thread.close()
