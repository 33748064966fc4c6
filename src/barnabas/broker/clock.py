# Compiled by mypyc: src/compiled.toml lists this module.
"""The two clocks of a broker: the wall clock for records and files, and the monotonic clock for intervals and deadlines.

The layers below the broker read no clock: callers pass them the time. The simulator gives the broker its own Clock.
"""

from __future__ import annotations

import time

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """Both clocks are in milliseconds. Wall time is only for the timestamps of records and files and for comparison with them: it jumps
    when the clock of the machine is set."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def perf_ns(self) -> int:
        """Nanoseconds of a monotonic clock, for the duration of a call."""
        return time.perf_counter_ns()
