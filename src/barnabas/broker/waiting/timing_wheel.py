# Compiled by mypyc: src/compiled.toml lists this module.
"""Kafka's hierarchical timing wheel, for very many timeouts of which most are cancelled before they expire.

The purgatory keeps its timeouts here. Adding and cancelling one costs the same with ten tasks or a million. This module reads no clock and
runs no task: callers pass a monotonic time, and `advance` returns the tasks that are due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

TICK_MS: Final = 1
WHEEL_SIZE: Final = 20

# Far beyond any clock, and small enough that no sum of two of them leaves 64 bits.
EXPIRATION_MS_MAX: Final = 2**61

_NOT_QUEUED: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask:
    """An object with a deadline. A task is in one timer at a time; adding it again moves it."""

    def __init__(self) -> None:
        self.expiration_ms: int = -1
        self.bucket: Bucket | None = None

    @property
    def scheduled(self) -> bool:
        return self.bucket is not None

    def cancel(self) -> None:
        """Removes the task from its timer. It has no effect on a task that `advance` has returned already."""
        if self.bucket is not None:
            self.bucket.remove(self)


class Timer:
    """All wheels, and a queue of the buckets with tasks: the clock jumps from bucket to bucket and never ticks through empty ones."""

    def __init__(self, start_ms: int, tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE) -> None:
        assert tick_ms > 0 and wheel_size > 1
        self._counter = TaskCounter()
        self._wheel = TimingWheel(tick_ms, wheel_size, start_ms, self._counter)
        self._queue: list[tuple[int, int, Bucket]] = []
        self._queued = 0
        # Tasks that were due when they were added. Kafka hands them to its executor; here they wait for the next advance.
        self._due = Bucket(self._counter)

    @property
    def size(self) -> int:
        """The number of waiting tasks, without cancelled ones."""
        return self._counter.tasks

    @property
    def current_time_ms(self) -> int:
        return self._wheel.current_time_ms

    def add(self, task: TimerTask, delay_ms: int, monotonic_ms: int) -> None:
        """Schedules a task `delay_ms` from now. Without a delay it is due at the next `advance`."""
        task.cancel()
        self._catch_up(monotonic_ms)
        task.expiration_ms = min(monotonic_ms + delay_ms, EXPIRATION_MS_MAX)
        if not self._insert(task):
            self._due.add(task)

    def advance(self, monotonic_ms: int) -> list[TimerTask]:
        """The tasks that are due, the oldest first. Other tasks of an expired bucket move from a coarse wheel to a finer one."""
        expired = self._due.take()
        while self._queue and self._queue[0][0] <= monotonic_ms:
            expiration_ms, _, bucket = heappop(self._queue)
            self._wheel.advance(expiration_ms)
            bucket.expiration_ms = _NOT_QUEUED
            for task in bucket.take():
                if not self._insert(task):
                    expired.append(task)
        self._wheel.advance(monotonic_ms)
        return expired

    def next_expiry_ms(self) -> int | None:
        """When `advance` has to be called next: a task is due, or a bucket moves to a finer wheel. None while nothing waits."""
        if self._due.tasks:
            return self.current_time_ms
        while self._queue and not self._queue[0][2].tasks:
            heappop(self._queue)[2].expiration_ms = _NOT_QUEUED
        return self._queue[0][0] if self._queue else None

    def _catch_up(self, monotonic_ms: int) -> None:
        """Moves the clock after idle time, so that a task goes into the wheel that fits its delay and not into a coarser one."""
        if not self._queue or self._queue[0][0] > monotonic_ms:
            self._wheel.advance(monotonic_ms)

    def _insert(self, task: TimerTask) -> bool:
        """Puts a task into the finest wheel that reaches far enough; False if it is due."""
        wheel = self._wheel
        if task.expiration_ms < wheel.current_time_ms + wheel.tick_ms:
            return False
        while task.expiration_ms >= wheel.current_time_ms + wheel.interval_ms:
            wheel = wheel.overflow_wheel()
        bucket = wheel.bucket(task.expiration_ms)
        bucket.add(task)
        begins_ms = task.expiration_ms - task.expiration_ms % wheel.tick_ms
        # A bucket is queued once per round, however many tasks it gets.
        if bucket.expiration_ms != begins_ms:
            bucket.expiration_ms = begins_ms
            self._queued += 1
            heappush(self._queue, (begins_ms, self._queued, bucket))
        return True


class TimingWheel:
    """A ring of buckets, each one tick wide, for the time from now to now + interval. Later tasks go to an overflow wheel, whose tick is
    the interval of this one. It is made when it is first needed."""

    def __init__(self, tick_ms: int, wheel_size: int, start_ms: int, counter: TaskCounter) -> None:
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.interval_ms = tick_ms * wheel_size
        self.current_time_ms = start_ms - start_ms % tick_ms
        self._counter = counter
        self._buckets = [Bucket(counter) for _ in range(wheel_size)]
        self._overflow: TimingWheel | None = None

    def bucket(self, expiration_ms: int) -> Bucket:
        return self._buckets[expiration_ms // self.tick_ms % self.wheel_size]

    def overflow_wheel(self) -> TimingWheel:
        if self._overflow is None:
            self._overflow = TimingWheel(self.interval_ms, self.wheel_size, self.current_time_ms, self._counter)
        return self._overflow

    def advance(self, monotonic_ms: int) -> None:
        if monotonic_ms >= self.current_time_ms + self.tick_ms:
            self.current_time_ms = monotonic_ms - monotonic_ms % self.tick_ms
            if self._overflow is not None:
                self._overflow.advance(self.current_time_ms)


class TaskCounter:
    """The number of tasks in all buckets of a timer."""

    def __init__(self) -> None:
        self.tasks = 0


class Bucket:
    """The tasks of one tick, in the order in which they were added."""

    def __init__(self, counter: TaskCounter) -> None:
        # A dict keeps the order and removes in constant time, as Kafka's linked list does.
        self.tasks: dict[TimerTask, None] = {}
        self.expiration_ms = _NOT_QUEUED
        self._counter = counter

    def add(self, task: TimerTask) -> None:
        self.tasks[task] = None
        task.bucket = self
        self._counter.tasks += 1

    def remove(self, task: TimerTask) -> None:
        del self.tasks[task]
        task.bucket = None
        self._counter.tasks -= 1

    def take(self) -> list[TimerTask]:
        """Empties the bucket."""
        if not self.tasks:
            return []
        taken = list(self.tasks)
        self.tasks = {}
        self._counter.tasks -= len(taken)
        for task in taken:
            task.bucket = None
        return taken
