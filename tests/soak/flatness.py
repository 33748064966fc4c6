"""Whether a series of samples stays flat: the median of its last third next to that of its middle third. The first third is warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Bound(NamedTuple):
    """How much the last third may be above the middle one: a share of it, and so many units in addition."""

    share: float
    units: float


class Verdict(NamedTuple):
    name: str
    middle: float
    last: float
    is_flat: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.middle:.1f} in the middle, {self.last:.1f} at the end, {'flat' if self.is_flat else 'NOT FLAT'}"


def verdict(name: str, samples: Sequence[float], bound: Bound) -> Verdict:
    third = len(samples) // 3
    assert third, f"{name}: {len(samples)} samples are too few"
    middle, last = median(samples[third : 2 * third]), median(samples[2 * third :])
    return Verdict(name, middle, last, last <= middle * (1 + bound.share) + bound.units)
