# Compiled by mypyc: src/compiled.toml lists this module.
"""A histogram of integers whose update is one increment in a list: no object for a sample, no clock, no lock.

Bucket widths grow with the values: values up to 31 are exact, and above them a bucket is a sixteenth of its power of two wide, so a
quantile is at most 3.2 % from the true one. There are two windows. `rotate` ends the current one, so that the quantiles describe recent
samples, as those of Kafka's histograms do. `count` never decreases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mypy_extensions import i64

BUCKETS_MAX: Final = 528  # up to 2**36: 19 hours in microseconds, 64 GB in bytes. Larger samples count as this
VALUE_MAX: Final = (1 << 36) - 1
_EXACT: Final = 32
_GROWN_BY: Final = 32


def bucket_of(value: int) -> int:
    """The bucket of a value."""
    sample = min(max(value, 0), VALUE_MAX)
    shift = max(0, sample.bit_length() - 5)
    return 16 * shift + (sample >> shift)


# The buckets of all values below _TABLE. That of a larger value is the one of its leading bits, and 16 more for each bit that is left out;
# `record` leaves out 7 at a time, so that at least 32 remains.
_TABLE: Final = 4096
_buckets: Final[list[int]] = [bucket_of(value) for value in range(_TABLE)]


def lower_bound(bucket: int) -> int:
    """The least value of a bucket."""
    if bucket < _EXACT:
        return bucket
    shift = bucket // 16 - 1
    return (bucket - 16 * shift) << shift


def middle(bucket: int) -> float:
    """The value that stands for all samples of a bucket."""
    if bucket < _EXACT:
        return float(bucket)
    return lower_bound(bucket) + (1 << (bucket // 16 - 1)) / 2 - 0.5


class Histogram:
    """Grows with the largest sample, up to BUCKETS_MAX buckets in each of its two windows."""

    __slots__ = ("_current", "_older", "_previous")

    def __init__(self) -> None:
        self._current: list[int] = [0] * _GROWN_BY
        self._previous: list[int] = []
        self._older = 0  # the number of samples before the two windows

    def record(self, sample: i64) -> None:
        skipped: i64 = 0
        if sample >= 4096:  # _TABLE
            if sample > 68719476735:  # VALUE_MAX
                sample = 68719476735
            while sample >= 4096:
                sample >>= 7
                skipped += 112
        elif sample < 0:
            sample = 0
        bucket = _buckets[sample] + skipped
        counts = self._current
        if bucket >= len(counts):
            counts.extend([0] * (bucket + _GROWN_BY - len(counts)))
        counts[bucket] += 1

    @property
    def count(self) -> int:
        """The number of all samples."""
        return self._older + sum(self._previous) + sum(self._current)

    def rotate(self) -> None:
        """Ends the current window. The one before it is forgotten, apart from its number of samples."""
        self._older += sum(self._previous)
        self._previous = self._current
        self._current = [0] * _GROWN_BY

    def counts(self) -> list[int]:
        """The number of samples in each bucket, of both windows."""
        return _added(self._previous, self._current)


def _added(first: Sequence[int], second: Sequence[int]) -> list[int]:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    added = list(longer)
    for at, count in enumerate(shorter):
        if count:
            added[at] += count
    return added


def with_zeros(counts: list[int], total: int) -> list[int]:
    """The counts of a histogram whose zeros were not recorded, for `total` samples."""
    added = list(counts) or [0]
    added[0] += max(0, total - sum(added))
    return added


def merged(histograms: Sequence[Histogram]) -> tuple[int, list[int]]:
    """The number of all samples of several histograms, and the samples of their windows by bucket."""
    count = 0
    counts: list[int] = []
    for histogram in histograms:
        count += histogram.count
        counts = _added(counts, histogram.counts())
    return count, counts


def quantiles(counts: Sequence[int], levels: Sequence[float]) -> list[float]:
    """The values at these quantiles, which must be in ascending order. 0 for a histogram without samples."""
    total = sum(counts)
    if total == 0:
        return [0.0] * len(levels)
    values: list[float] = []
    seen = 0
    bucket = -1
    for quantile in levels:
        rank = max(1.0, quantile * total)
        while seen < rank and bucket < len(counts) - 1:
            bucket += 1
            seen += counts[bucket]
        values.append(middle(bucket))
    return values
