"""The series of a family whose samples are in a Histogram: its number of samples, and the quantiles of its windows."""

from __future__ import annotations

from typing import Final

from barnabas.metrics.histogram import Histogram, quantiles
from barnabas.metrics.registry import QUANTILES, Distribution

MICROSECONDS: Final = 1000.0  # in a millisecond


def distribution(histogram: Histogram, unit: float = MICROSECONDS) -> Distribution:
    """`unit` is how many of the samples' units are one of the family's."""
    return Distribution(histogram.count, tuple(value / unit for value in quantiles(histogram.counts(), QUANTILES)))
