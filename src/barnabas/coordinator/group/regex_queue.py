"""Resolves the regular expressions of all groups of a broker into topics, in slices, so that no request waits for another's expression.

All groups share one queue, so more groups or expressions get no larger share of the event loop. A slice ends after SLICE_MS, or after
SLICE_STEPS names, and a pause of REST_FACTOR times its duration follows. A group that has used many slices waits behind groups that have
used few: simple expressions are resolved soon, however many costly ones there are. The clock is passed in; this module never reads it
itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from barnabas.coordinator.expression import ExpressionError, compile_expression

SLICE_MS: Final = 5  # one more match may follow: up to 10 ms, by the bound on the program size
SLICE_STEPS: Final = 2_000  # names matched; a simple expression takes 2 µs for each
REST_FACTOR: Final = 4
_SLICE_HANDICAP: Final = 100  # a used slice ranks a group behind this many later submissions

log = logging.getLogger(__name__)

Resolved = dict[str, frozenset[str]]
Defer = Callable[[int, Callable[[], None]], object]  # runs a callback after some milliseconds


class _GroupExpressions:
    """The expressions of one group. `steps` is created in the first slice, with the topics that exist then."""

    __slots__ = ("group_id", "on_resolved", "rank", "regexes", "resolved", "steps")

    def __init__(self, group_id: str, regexes: list[str], on_resolved: Callable[[Resolved], None], rank: int) -> None:
        self.group_id = group_id
        self.regexes = regexes
        self.on_resolved = on_resolved
        self.rank = rank
        self.resolved: Resolved = {}
        self.steps: Iterator[None] | None = None

    def __lt__(self, other: _GroupExpressions) -> bool:
        return self.rank < other.rank


class RegexQueue:
    def __init__(self, defer: Defer, monotonic_ms: Callable[[], int], topic_names: Callable[[], Collection[str]]) -> None:
        self._defer = defer
        self._monotonic_ms = monotonic_ms
        self._topic_names = topic_names
        self._names: tuple[str, ...] | None = None  # shared by all jobs that started since the topics changed
        self._jobs: dict[str, _GroupExpressions] = {}
        self._heap: list[_GroupExpressions] = []  # a cancelled job stays here until it is popped
        self._submitted = 0
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._jobs)

    def is_waiting(self, group_id: str) -> bool:
        return group_id in self._jobs

    def submit(self, group_id: str, regexes: Iterable[str], on_resolved: Callable[[Resolved], None]) -> None:
        """Calls `on_resolved` with the topics of each expression, in a later slice. Replaces an earlier request of the group."""
        self._submitted += 1
        job = _GroupExpressions(group_id, list(regexes), on_resolved, self._submitted)
        self._jobs[group_id] = job
        heappush(self._heap, job)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._defer(0, self._run_slice)

    def cancel(self, group_id: str) -> None:
        if self._jobs.pop(group_id, None) is not None and len(self._heap) > 2 * len(self._jobs) + 16:
            self._heap = list(self._jobs.values())
            heapify(self._heap)

    def topics_changed(self) -> None:
        self._names = None

    def _run_slice(self) -> None:
        started_ms = self._monotonic_ms()
        steps_left = SLICE_STEPS
        while self._heap and steps_left > 0 and self._monotonic_ms() - started_ms < SLICE_MS:
            job = heappop(self._heap)
            if self._jobs.get(job.group_id) is job:
                steps_left = self._work_on(job, steps_left, started_ms + SLICE_MS)
        self._is_scheduled = bool(self._heap)
        if not self._is_scheduled:
            self._names = None
        else:
            self._defer(max(1, REST_FACTOR * (self._monotonic_ms() - started_ms)), self._run_slice)

    def _work_on(self, job: _GroupExpressions, steps_left: int, end_ms: int) -> int:
        """Work on the job until it is done or the slice is over; returns the steps left in the slice."""
        if job.steps is None:
            job.steps = resolution(job.regexes, self._snapshot(), job.resolved)
        for _ in job.steps:
            steps_left -= 1
            if steps_left <= 0 or self._monotonic_ms() >= end_ms:
                job.rank += _SLICE_HANDICAP
                heappush(self._heap, job)
                return steps_left
        del self._jobs[job.group_id]
        job.on_resolved(job.resolved)
        return steps_left - 1

    def _snapshot(self) -> tuple[str, ...]:
        if self._names is None:
            self._names = tuple(self._topic_names())
        return self._names


def resolution(regexes: Iterable[str], topic_names: Collection[str], resolved: Resolved) -> Iterator[None]:
    """Fills `resolved` with the matching topics of each expression; each step matches one name, or compiles one expression.

    An expression that cannot be compiled here (Kafka or a newer release has written it to the log) matches no topic.
    """
    for regex in regexes:
        matches: set[str] = set()
        try:
            expression = compile_expression(regex)
        except ExpressionError as error:
            log.warning("The subscription `%s` matches no topic: %s", regex[:_SHOWN_MAX], error)
        else:
            yield
            for name in topic_names:
                if expression.fullmatch(name) is not None:
                    matches.add(name)
                yield
        resolved[regex] = frozenset(matches)


_SHOWN_MAX: Final = 200
