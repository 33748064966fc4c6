"""A world in one thread: processes, their scheduled callbacks, and a clock that jumps from one event to the next.

Everything that is random in a real system is drawn from one random source: which runnable process runs next, how long a message travels,
when a disk operation completes. So one seed is one history, and running it twice gives the same history, as `trace` proves. Nothing waits.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.simulation.loop import Handle, ProcessLoop

START_S: Final = 1_700_000_000.0  # the wall-clock time at the start of a history
STEPS_PER_INSTANT_MAX: Final = 1_000_000  # in one moment of simulated time: more means an endless loop


class Stuck(Exception):
    """No event is left, or the same moment never ends: the awaited condition cannot become true."""


class World:
    """Each process runs its callbacks in the order they were scheduled; the random source chooses the next process."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0.0  # seconds since the start
        self.failures: list[tuple[str, BaseException]] = []  # uncaught exceptions, with the name of the process
        self.trace = 0  # a checksum of everything that has happened
        self.steps = 0
        self._processes: list[ProcessLoop] = []
        self._all_processes: list[ProcessLoop] = []  # including those that have ended
        self._timers: list[tuple[float, int, Handle]] = []
        self._order = 0
        self._steps_of_instant = 0

    def add(self, process: ProcessLoop) -> None:
        self._processes.append(process)
        self._all_processes.append(process)

    def end(self) -> None:
        """The history is over: disposes of all its tasks, so that none is left to the garbage collector."""
        for process in self._all_processes:
            process.dispose()

    def remove(self, process: ProcessLoop) -> None:
        if process in self._processes:
            self._processes.remove(process)

    def at(self, when: float, handle: Handle) -> None:
        """Makes the handle's process run it at that time, or as soon as it can."""
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))

    def pause(self, process: ProcessLoop) -> None:
        """The process runs nothing until it is resumed; its events wait."""
        self.note("pause", process.name)
        self.remove(process)

    def is_paused(self, process: ProcessLoop) -> bool:
        return process.is_alive and process not in self._processes

    def resume(self, process: ProcessLoop) -> None:
        if process.is_alive and process not in self._processes:
            self.note("resume", process.name)
            self._processes.append(process)

    def run_until(self, is_done: Callable[[], bool], limit_s: float = 3600.0) -> None:
        """Runs until `is_done`. Raises Stuck if that is impossible, or takes longer than `limit_s` of simulated time."""
        deadline = self.now + limit_s
        while not is_done():
            if not self.step(deadline):
                if self._next_timer() is None:
                    raise Stuck(f"seed {self.seed}: no event is left at {self.now:.3f} s")
                raise Stuck(f"seed {self.seed}: it did not come to that within {limit_s:g} s")

    def run_for(self, seconds: float) -> None:
        deadline = self.now + seconds
        while self.step(deadline):
            pass
        self.now = max(self.now, deadline)

    def step(self, until: float = math.inf) -> bool:
        """Runs one callback of one process. False if none is due before `until`."""
        while True:
            self._fire_due()
            ready = [process for process in self._processes if process.ready]
            if ready:
                break
            if self._next_timer() is None or self._timers[0][0] > until:
                return False
            self.now = max(self.now, self._timers[0][0])
            self._steps_of_instant = 0
        self._steps_of_instant += 1
        if self._steps_of_instant > STEPS_PER_INSTANT_MAX:
            raise Stuck(f"seed {self.seed}: {STEPS_PER_INSTANT_MAX} steps at {self.now:.3f} s and no end")
        process = ready[0] if len(ready) == 1 else ready[self.random.randrange(len(ready))]
        handle = process.ready.popleft()
        self.trace = zlib.crc32(f"{self.now:.9f} {process.name} {handle.name}".encode(), self.trace)
        self.steps += 1
        process.run(handle)
        return True

    def note(self, *what: object) -> None:
        """Adds something to the history, so that two runs that differ in it differ in their trace."""
        self.trace = zlib.crc32(repr((round(self.now, 9), *what)).encode(), self.trace)

    def _fire_due(self) -> None:
        while self._next_timer() is not None and self._timers[0][0] <= self.now:
            _, _, handle = heapq.heappop(self._timers)
            handle.process.ready.append(handle)

    def _next_timer(self) -> Handle | None:
        """The next timer that is not cancelled and whose process is alive."""
        while self._timers:
            handle = self._timers[0][2]
            if not handle.cancelled() and handle.process.is_alive:
                return handle
            heapq.heappop(self._timers)
        return None
