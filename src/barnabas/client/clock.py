# Compiled by mypyc: src/compiled.toml lists this module.
"""The two clocks of a client: the wall clock for record timestamps, and a monotonic clock for timeouts.

Decision code receives times as arguments and reads no clock; only the outer layer holds a `Clock`, and tests supply their own.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Both clocks are in milliseconds. Durations are measured with the monotonic clock, because the wall clock jumps when it is set."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class SystemClock:
    """The clocks of the operating system."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
