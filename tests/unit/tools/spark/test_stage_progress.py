"""How far a Spark job is, from its stages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from barnabas.tools.spark.stage_progress import Stages


class Tracker:
    def __init__(self, **stages: tuple[int, int]) -> None:
        self._stages = {int(name[1:]): tasks for name, tasks in stages.items()}

    def getActiveStageIds(self) -> list[int]:
        return list(self._stages)

    def getStageInfo(self, stage: int) -> Any:
        done, total = self._stages[stage]
        return SimpleNamespace(numCompletedTasks=done, numTasks=total)


def test_stages_add_up_and_one_that_has_gone_is_done() -> None:
    stages = Stages()
    stages.look(Tracker(s1=(3, 10)))
    assert (stages.done, stages.total) == (3, 10)
    stages.look(Tracker(s2=(1, 4)))
    assert (stages.done, stages.total) == (11, 14)
    stages.look(Tracker())
    assert (stages.done, stages.total) == (14, 14)
