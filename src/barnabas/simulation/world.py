"""A world in one thread: processes, what they are about to do, and a time that jumps from one event to the next.

Everything that would be chance in a real world is drawn from one random source: who of those that could run runs next, how long a message
travels, when a disk answers. So one seed is one history, and running it twice gives the same one, which `trace` proves. Nothing here waits.
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

START_S: Final = 1_700_000_000.0  # the wall clock when a history begins
STEPS_PER_INSTANT_MAX: Final = 1_000_000  # in one moment of simulated time: more, and somebody runs in circles


class Stuck(Exception):
    """Nothing can happen any more, or the same moment never ends; whatever is waited for will not come."""


class World:
    """Processes run their callbacks in the order in which they asked for them; which process is next is a matter of chance."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = 0.0  # seconds since the beginning
        self.failures: list[tuple[str, BaseException]] = []  # what no process caught, with its name
        self.trace = 0  # a checksum of everything that has happened
        self.steps = 0
        self._processes: list[ProcessLoop] = []
        self._all_processes: list[ProcessLoop] = []  # those that have ended too
        self._timers: list[tuple[float, int, Handle]] = []
        self._order = 0
        self._steps_of_instant = 0

    def add(self, process: ProcessLoop) -> None:
        self._processes.append(process)
        self._all_processes.append(process)

    def end(self) -> None:
        """The history is over: nothing of it is left to be collected at a time of its own."""
        for process in self._all_processes:
            process.bury()

    def remove(self, process: ProcessLoop) -> None:
        if process in self._processes:
            self._processes.remove(process)

    def at(self, when: float, handle: Handle) -> None:
        """Has the handle's process run it then, or as soon as it can."""
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))

    def pause(self, process: ProcessLoop) -> None:
        """It does nothing until it is resumed, and does not notice: what comes for it waits."""
        self.note("pause", process.name)
        self.remove(process)

    def is_paused(self, process: ProcessLoop) -> bool:
        return process.is_alive and process not in self._processes

    def resume(self, process: ProcessLoop) -> None:
        if process.is_alive and process not in self._processes:
            self.note("resume", process.name)
            self._processes.append(process)

    def run_until(self, is_done: Callable[[], bool], limit_s: float = 3600.0) -> None:
        """Lets things happen until it is so. Raises Stuck if it cannot come to that, or not within so much simulated time."""
        deadline = self.now + limit_s
        while not is_done():
            if not self.step(deadline):
                if self._next_timer() is None:
                    raise Stuck(f"seed {self.seed}: nothing is left to happen at {self.now:.3f} s")
                raise Stuck(f"seed {self.seed}: it did not come to that within {limit_s:g} s")

    def run_for(self, seconds: float) -> None:
        deadline = self.now + seconds
        while self.step(deadline):
            pass
        self.now = max(self.now, deadline)

    def step(self, until: float = math.inf) -> bool:
        """One callback of one process, at its time. False if there is none before `until`, and none will come by itself."""
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
        """Makes something part of the history, so that two runs that differ in it differ in their trace."""
        self.trace = zlib.crc32(repr((round(self.now, 9), *what)).encode(), self.trace)

    def _fire_due(self) -> None:
        while self._next_timer() is not None and self._timers[0][0] <= self.now:
            _, _, handle = heapq.heappop(self._timers)
            handle.process.ready.append(handle)

    def _next_timer(self) -> Handle | None:
        """Without those that were cancelled, or whose process has ended."""
        while self._timers:
            handle = self._timers[0][2]
            if not handle.cancelled() and handle.process.is_alive:
                return handle
            heapq.heappop(self._timers)
        return None
