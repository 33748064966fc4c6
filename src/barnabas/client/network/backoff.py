"""Exponential back-off with jitter: the wait doubles with each attempt up to a limit, and varies by a fifth so that clients do not retry
together.

The class only computes the wait; the caller waits. The random source is given.
"""

from __future__ import annotations

import math
from random import Random
from typing import Final

MULTIPLIER: Final = 2
JITTER: Final = 0.2


class ExponentialBackoff:
    """`random(1 - jitter, 1 + jitter) * initial * multiplier ^ attempts`, never more than the limit; all in milliseconds.

    A limit below the initial interval makes the interval constant.
    """

    def __init__(
        self, initial_ms: int, max_ms: int, *, random: Random | None = None, multiplier: int = MULTIPLIER, jitter: float = JITTER
    ) -> None:
        self.initial_ms = min(initial_ms, max_ms)
        self.max_ms = max_ms
        self.multiplier = multiplier
        self.jitter = jitter
        self._random = random or Random()
        # The power at which the limit is reached.
        self._power_max = math.log(max_ms / max(initial_ms, 1)) / math.log(multiplier) if max_ms > initial_ms else 0.0

    def backoff_ms(self, attempts: int) -> int:
        """The wait after `attempts` earlier failures; 0 gives the initial interval."""
        if self._power_max == 0:
            return self.initial_ms
        term = self.initial_ms * self.multiplier ** min(attempts, self._power_max)
        factor = self._random.uniform(1 - self.jitter, 1 + self.jitter) if self.jitter else 1.0
        return min(int(factor * term), self.max_ms)
