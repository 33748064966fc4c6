# Compiled by mypyc: src/compiled.toml lists this module.
"""The two clocks of a broker: the wall clock, which goes into records and files, and a monotonic one for intervals and deadlines.

Nothing below the broker reads either: they are given times. The simulator gives the broker a clock of its own.
"""

from __future__ import annotations

import time

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """Both in milliseconds. Wall time is only for records and files and for what is compared with their timestamps: it jumps when the clock
    of the machine is set."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
