"""The memory of a process with its descendants, from Linux's /proc; not available on other systems."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from barnabas import system


def tree_bytes(root: int) -> int | None:
    """The memory of a process and its descendants in bytes; shared pages count once. None if it is not available."""
    if not system.HAS_PROC or not os.path.exists("/proc/self/smaps_rollup"):
        return None
    return sum(map(_bytes, _tree(root)))


def _tree(root: int) -> list[int]:
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            children[_parent(int(entry))].append(int(entry))
    processes = [root]
    for process in processes:
        processes.extend(children[process])
    return processes


def _parent(process: int) -> int:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0  # the process has ended in the meantime
    return int(stat.rpartition(")")[2].split()[1])


def _bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
