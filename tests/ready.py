"""Waits until a stream can be read. `select.select` refuses descriptors above 1023, which a long test run has."""

from __future__ import annotations

import select
from typing import IO, Any


def is_readable(stream: IO[Any], timeout_s: float) -> bool:
    """Whether a line or the end of the stream is there within this time."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
