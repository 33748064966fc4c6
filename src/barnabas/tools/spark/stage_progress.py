"""The progress of a Spark job as a bar: the tasks of its stages that are done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from barnabas.tools.command_line.progress import ProgressBar

_LOOK_S: Final = 0.3


class Stages:
    """The stages of the jobs of a session, from looks at Spark's status tracker."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[int, int]] = {}  # done and all tasks of each stage

    def look(self, tracker: Any) -> None:
        active = set(tracker.getActiveStageIds())
        for stage in active:
            info = tracker.getStageInfo(stage)
            if info is not None:
                self._tasks[stage] = (info.numCompletedTasks, info.numTasks)
        for stage in self._tasks.keys() - active:  # a stage that is no longer active is done
            self._tasks[stage] = (self._tasks[stage][1], self._tasks[stage][1])

    @property
    def done(self) -> int:
        return sum(done for done, _ in self._tasks.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self._tasks.values())


@contextmanager
def showing_stages(spark: Any, what: str) -> Generator[None, None, None]:
    """A context in which a terminal shows how many tasks of Spark are done; elsewhere nothing is shown."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(spark.sparkContext.statusTracker(), what, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(tracker: Any, what: str, over: threading.Event) -> None:
    stages, bar = Stages(), ProgressBar(what, 0, "tasks")
    try:
        while not over.wait(_LOOK_S):
            stages.look(tracker)
            if stages.total:
                bar.at(stages.done, stages.total)
    finally:
        bar.end()
