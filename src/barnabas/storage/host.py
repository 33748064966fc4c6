"""What a log asks of whoever owns it: things that must happen later, elsewhere, or to the whole directory.

A Log decides and writes; it never waits, never sleeps and never starts a thread. The LogManager of a broker does these for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log


class LogHost(Protocol):
    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        """Run `delete` when so much time has passed; readers may still hold the files until then."""

    def flush_later(self, log: Log, offset: int) -> None:
        """Make everything below `offset` durable soon, off the event loop."""

    def note_gaps(self, log: Log) -> None:
        """Make it durable, at once, that records are missing in the log and were not lost. Raises OSError."""

    def disk_failed(self, directory: str, message: str, error: OSError) -> None:
        """Take the log directory offline; the other directories go on."""


class DirectHost:
    """The host of a log that stands alone, in a tool or a test: everything happens at once."""

    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        delete()

    def flush_later(self, log: Log, offset: int) -> None:
        log.flush_below(offset)

    def note_gaps(self, log: Log) -> None:
        return None

    def disk_failed(self, directory: str, message: str, error: OSError) -> None:
        return None
