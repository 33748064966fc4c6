"""The interface between a log and its owner, for work that is done later, on a thread, or for the whole log directory.

A Log never waits, never sleeps and never starts a thread. The LogManager of a broker does that for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log


class LogHost(Protocol):
    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        """Calls `delete` after `delay_ms`; readers may still hold the files until then."""

    def flush_later(self, log: Log, offset: int) -> None:
        """Makes all records below `offset` durable soon, off the event loop."""

    def note_gaps(self, log: Log) -> None:
        """Makes durable, before it returns, that the log has gaps that are not losses. Raises OSError."""

    def disk_failed(self, directory: str, message: str, error: OSError) -> None:
        """Takes the log directory offline; the other directories stay online."""


class DirectHost:
    """The host of a single log in a tool or a test: it does everything at once."""

    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        delete()

    def flush_later(self, log: Log, offset: int) -> None:
        log.flush_below(offset)

    def note_gaps(self, log: Log) -> None:
        return None

    def disk_failed(self, directory: str, message: str, error: OSError) -> None:
        return None
