"""How a test run is divided between the processes of pytest-xdist: by folder, because the tests of a folder share what is slow to start.

pytest-xdist's `load` gives single tests to whichever process is free, so that each process starts every broker, JVM and Spark of the suite.
Here a process takes whole files. It stays with the folder it has begun, then begins one that no process has begun, and only then takes
files of a folder that another process works on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Folders in the order in which they begin, the longest first. A file that is named here is a folder of its own: it starts all it needs.
LONGEST_FIRST: Final = (
    "tests/spark",
    "tests/integration/client",
    "tests/integration/tools_ours",
    "tests/spark/pipelines/test_pipeline_declarative.py",
    "tests/integration/groups",
    "tests/simulation/test_cluster.py",
    "tests/integration/cluster",
    "tests/docs/test_pages.py",
    "tests/spark/test_standalone.py",
    "tests/integration",
    "tests/spark_crash",
    "tests/integration/console",
    "tests/integration/idempotence",
    "tests/integration/transactions",
    "tests/integration/metrics",
    "tests/spark/test_demo.py",
    "tests/fuzz",
    "tests/spark/pipelines/test_pipeline_tool.py",
    "tests/chaos",
    "tests/soak",
    "tests/crash",
    "tests/integration/clients",
    "tests/integration/security",
    "tests/integration/console",
    "tests/integration/kerberos",
    "tests/integration/tools",
)
LAST: Final = "tests/unit"  # its files share nothing: any process takes them at no cost


def folder_of(file: str) -> str:
    """The folder whose conftest.py starts what the tests of this file share: `tests/integration/client`, `tests/spark`, `tests/unit`."""
    if file in LONGEST_FIRST:
        return file
    parts = file.split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] == ["integration"] else 2])


def rank(folder: str) -> int:
    """Folders with a lower one begin earlier."""
    if folder in LONGEST_FIRST:
        return LONGEST_FIRST.index(folder)
    return len(LONGEST_FIRST) + (folder == LAST)


def next_file(waiting: Iterable[str], begun: Mapping[str, set[str]], process: str) -> str:
    """Which of the waiting files a process takes. `begun` has the processes that work on a folder, or did."""

    def preference(file: str) -> tuple[int, int, int]:
        folder = folder_of(file)
        processes = begun.get(folder, set())
        return 0 if process in processes else 1 if not processes else 2, rank(folder), len(processes)

    return min(waiting, key=preference)


class FolderTimes:
    """Adds up what the tests of each folder took: which folders have to begin early, and which process had nothing to do at the end.

    A file that is named in LONGEST_FIRST counts as a folder.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def took(self, file: str, seconds: float, process: str, ended: float) -> None:
        folder = folder_of(file)
        self._seconds[folder] = self._seconds.get(folder, 0.0) + seconds
        self._ended[process] = max(ended, self._ended.get(process, 0.0))

    def lines(self) -> list[str]:
        """Folders of a second and more, the longest first, then the processes that had nothing to do before the end."""
        folders = sorted(((seconds, folder) for folder, seconds in self._seconds.items() if seconds >= 1), reverse=True)
        last = max(self._ended.values(), default=0.0)
        idle = [f"{last - ended:8.0f} s  {process} had ended" for process, ended in sorted(self._ended.items()) if last - ended >= 1]
        return [*(f"{seconds:8.0f} s  {folder}" for seconds, folder in folders), *idle]


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives files to processes, as `next_file` chooses them."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._begun: dict[str, set[str]] = {}

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        process = node.gateway.id
        file = next_file(self.workqueue, self._begun, process)
        self._begun.setdefault(folder_of(file), set()).add(process)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)
