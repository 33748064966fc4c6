"""Something that takes long is made once for all the processes of a test run, and read by each of them."""

from __future__ import annotations

import fcntl
from collections.abc import Callable

import pytest


def once(factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[], str]) -> str:
    """What `make` gave to whichever process asked first; the others wait for it. A failure is not kept: the next one tries again."""
    shared = factory.getbasetemp() if worker_id == "master" else factory.getbasetemp().parent
    result = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            unfinished = shared / f"{name}.unfinished"
            unfinished.write_text(make())
            unfinished.rename(result)
    return result.read_text()
