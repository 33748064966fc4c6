"""Logs that a process has left on a simulated disk, and their loading."""

from __future__ import annotations

from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.log import Log
from tests.unit.storage.logs import (
    NOW,
    append,
    batch,
    config,
    make_log,
    restarted,
    values,
)

SETTINGS = config(segment_bytes=300, index_interval_bytes=0)


TEN = [b"%d" % n for n in range(10)]


def fill(disk: SimulatedFiles, *, clean: bool = True, count: int = 10) -> SimulatedFiles:
    """So many records of a batch each, in segments of three, left by a process that has gone."""
    log = make_log(disk, SETTINGS)
    append_to(log, count)
    if clean:
        log.close(NOW)
    return restarted(disk)


def append_to(log: Log, count: int) -> None:
    for _ in range(count):
        append(log, batch([b"%d" % log.log_end_offset], size=100))


def load(disk: SimulatedFiles, **request: object) -> Log:
    return make_log(disk, SETTINGS, **request)  # type: ignore[arg-type]


def stripped(log: Log) -> list[bytes]:
    return [(value or b"").rstrip(b".") for value in values(log)]
