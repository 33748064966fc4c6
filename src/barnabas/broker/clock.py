"""The two clocks of a broker: the wall clock, which goes into records and files, and a steady one for everything that waits.

Nothing below the broker reads either: they are given times. The simulator gives the broker a clock of its own.
"""

from __future__ import annotations

import time

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """Both in milliseconds. Only the steady one may be used to measure: the wall clock jumps when the machine is told the time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
