# Compiled by mypyc: src/compiled.toml lists this module.
"""The two clocks of a client: the wall clock, which goes into records, and a steady one for everything that waits.

What decides is given times and reads no clock; the edge has a `Clock`, and a test one of its own.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Both in milliseconds. Only the steady one may be used to measure: the wall clock jumps when the machine is told the time."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class SystemClock:
    """The machine's own."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
