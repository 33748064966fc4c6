"""What the log manager calls when something happens to its logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas.storage.log.log import Log


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class LogManagerHooks:
    """`dir_failed` gets the path of a log directory that goes offline. `flush_requested` is called for each flush that a log requests, and
    `flushed` after each flush that has run."""

    dir_failed: Callable[[str], None] = _ignore
    flush_requested: Callable[[], None] = _ignore
    flushed: Callable[[Log], None] = _ignore


NO_HOOKS: Final = LogManagerHooks()
