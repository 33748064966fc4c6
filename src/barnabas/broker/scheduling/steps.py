"""Counts how long the steps of a coroutine hold the event loop."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class StepTimer(Protocol):
    """Between `begin` and `end` the work holds the event loop. `begin` returns False where a step runs already. A step may contain a step
    of another timer, whose time does not count for the outer one: that is paused and resumed."""

    def begin(self) -> bool: ...

    def end(self) -> None: ...

    def pause(self, perf_ns: int) -> None: ...

    def resume(self, perf_ns: int) -> None: ...


class TimedWork(Coroutine[Any, Any, T]):
    """A coroutine for a task. Each of its steps, from one wait to the next, is a step of the timer."""

    def __init__(self, timer: StepTimer, work: Coroutine[Any, Any, T]) -> None:
        self._timer = timer
        self._work = work

    def send(self, value: Any) -> Any:
        is_step = self._timer.begin()
        try:
            return self._work.send(value)
        finally:
            if is_step:
                self._timer.end()

    def throw(self, *error: Any) -> Any:
        is_step = self._timer.begin()
        try:
            return self._work.throw(*error)
        finally:
            if is_step:
                self._timer.end()

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()


def timed(timer: StepTimer | None, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """The same work, whose steps are steps of the timer if there is one."""
    return work if timer is None else TimedWork(timer, work)
