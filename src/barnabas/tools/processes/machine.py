"""Decides about all broker processes of a machine: when they are ready, when a start has failed, and in which order they stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.tools.processes.messages import Announcement
from barnabas.tools.processes.process_life import SILENCE_MS_MAX, LifeState, ProcessLife

CHECK_MS_MAX: Final = SILENCE_MS_MAX // 4


@dataclass(frozen=True)
class ReadyMachine:
    """What all brokers announced, in the order of their numbers."""

    announcements: Sequence[Announcement]

    @property
    def cluster_id(self) -> str:
        return self.announcements[0].cluster_id

    @property
    def node_ids(self) -> list[int]:
        return [announcement.node_id for announcement in self.announcements]

    @property
    def listeners(self) -> list[str]:
        return [listener for announcement in self.announcements for listener in announcement.listeners]

    @property
    def advertised(self) -> list[str]:
        return [address for announcement in self.announcements for address in announcement.advertised]

    @property
    def bootstrap(self) -> str:
        """The first listener of each broker, as clients take it."""
        return ",".join(announcement.advertised[0] for announcement in self.announcements)

    @property
    def metrics(self) -> list[str]:
        return [announcement.metrics for announcement in self.announcements if announcement.metrics is not None]


class Machine:
    def __init__(self, node_ids: Mapping[int, int]) -> None:
        """`node_ids` by number of the process."""
        self.lives = {number: ProcessLife(number, node_id) for number, node_id in node_ids.items()}
        self._checked_ms: int | None = None
        self.was_ready = False  # all at once, since the start of the parent
        self.store_problem: Callable[[], str] = str  # why the metadata store of the parent cannot save changes; empty if it can

    def ready(self) -> ReadyMachine | None:
        """All brokers, once each is ready."""
        announcements = [life.announcement for life in self.lives.values() if life.state is LifeState.READY]
        if len(announcements) < len(self.lives):
            return None
        self.was_ready = True
        return ReadyMachine([announcement for announcement in announcements if announcement is not None])

    def is_start_hopeless(self, life: ProcessLife, code: int | None) -> bool:
        """Whether the end of a process ends the start of all: it says by its exit code what the user must mend. A process that a signal has
        ended, or one that was ready before, is started again."""
        return not self.was_ready and not life.was_ready and (code is None or code > 0)

    def stop_order(self) -> list[int]:
        """The first process last: it is the one that clients of a single broker know."""
        return sorted(self.lives, reverse=True)

    def hanging(self, monotonic_ms: int) -> list[ProcessLife]:
        """Called every few seconds. After a longer pause the parent itself was suspended: it has reports of its processes to read first."""
        last_ms, self._checked_ms = self._checked_ms, monotonic_ms
        if last_ms is None or monotonic_ms - last_ms > CHECK_MS_MAX:
            return []
        return [life for life in self.lives.values() if life.is_hanging(monotonic_ms)]

    def problems(self) -> list[str]:
        """Empty if all brokers are ready."""
        problems = [f"node {life.node_id}: {life.problem}" for life in self.lives.values() if life.problem]
        store = self.store_problem()
        return [store, *problems] if store else problems

    def status(self) -> str:
        """One line for `systemctl status`."""
        ready = sum(not life.problem for life in self.lives.values())
        return "; ".join([f"{ready} of {len(self.lives)} brokers ready", *self.problems()])
