"""The registry: families of metrics, each with a name, a kind, one line of meaning, and a function that returns its series.

Series are read for each scrape or report, from the objects that count. So a series exists exactly as long as the partition, API or listener
that it describes, nothing has to be removed, and what no reader asks for costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

# The quantiles that Kafka's histograms have.
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

SERIES_PER_SLICE: Final = 500  # of a family whose series are in memory

Labels = tuple[str, ...]  # the values, in the order of the family's label names


class Kind(Enum):
    METER = "meter"  # a count of events that never decreases
    GAUGE = "gauge"  # a value at the time of the read
    HISTOGRAM = "histogram"  # a count of samples, and the quantiles of the recent ones


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram as it was read: the number of all samples, and the values at QUANTILES."""

    count: int
    quantiles: tuple[float, ...]


Value = float | Distribution
Series = tuple[Labels, Value]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `group`, `type` and `name` are the parts of its MBean in Kafka: `kafka.server`, `BrokerTopicMetrics`, `BytesInPerSec`.

    `read` returns the series, one after the other. Reading all of them may take long; the caller may stop between two and go on later.
    `series_per_slice` is how many take about a millisecond."""

    group: str
    type: str
    name: str
    kind: Kind
    meaning: str
    read: Callable[[], Iterable[Series]]
    labels: tuple[str, ...] = ()
    series_per_slice: int = SERIES_PER_SLICE

    @property
    def key(self) -> tuple[str, str, str, tuple[str, ...]]:
        return self.group, self.type, self.name, self.labels


class Registry:
    """The families in the order in which they were added. Two may differ in their labels only: the series of all topics and of each."""

    def __init__(self) -> None:
        self._families: dict[tuple[str, str, str, tuple[str, ...]], Family] = {}

    def add(self, families: Iterable[Family]) -> None:
        for family in families:
            if family.key in self._families:
                raise ValueError(f"The metric {family.group}:{family.type}.{family.name} with the labels {family.labels} is there twice")
            self._families[family.key] = family

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families.values())

    def __len__(self) -> int:
        return len(self._families)


def single(value: Callable[[], float]) -> Callable[[], Iterable[Series]]:
    """The `read` of a family with one series, which has no labels."""
    return lambda: (((), value()),)
