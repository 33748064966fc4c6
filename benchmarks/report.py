"""How a figure is measured and shown: several turns, alternating with the limit it is compared with, in one run.

A shared machine changes its speed from minute to minute. A figure alone says little; next to a limit measured in the same minutes it says
how much of what the machine could do was used.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Figure:
    """One measured thing. Rates are per second; `aim` is in the same unit."""

    name: str
    unit: str
    aim: float
    turns: list[float] = field(default_factory=list)
    limit_name: str = ""
    limits: list[float] = field(default_factory=list)
    smaller_is_better: bool = False

    @property
    def value(self) -> float:
        return statistics.median(self.turns)

    @property
    def best(self) -> float:
        return min(self.turns) if self.smaller_is_better else max(self.turns)

    @property
    def reached(self) -> bool:
        return self.best <= self.aim if self.smaller_is_better else self.best >= self.aim

    def row(self) -> list[str]:
        limit = f"{self.limit_name} {_number(statistics.median(self.limits))}" if self.limits else ""
        spread = f"{_number(min(self.turns))} – {_number(max(self.turns))}"
        sign = "≤" if self.smaller_is_better else "≥"
        return [
            self.name,
            f"{_number(self.value)} {self.unit}",
            spread,
            f"{sign} {_number(self.aim)}",
            limit,
            "yes" if self.reached else "no",
        ]


@dataclass
class Comparison:
    """The same thing measured on two systems by turns; what counts is the ratio, turn by turn."""

    name: str
    unit: str
    aim: float | None  # of the ratio, ours to theirs
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    smaller_is_better: bool = False
    other: str = "Apache Kafka"  # whose the other figures are
    within: float | None = None  # instead of `aim`: how far the ratio may be from 1

    @property
    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    @property
    def reached(self) -> bool:
        ratio = statistics.median(self.ratios)
        if self.within is not None:
            return abs(ratio - 1) <= self.within
        if self.aim is None:
            return True
        return ratio <= self.aim if self.smaller_is_better else ratio >= self.aim

    def row(self) -> list[str]:
        sign = "≤" if self.smaller_is_better else "≥"
        return [
            self.name,
            f"{_number(statistics.median(self.ours))} {self.unit}",
            f"{_number(statistics.median(self.theirs))} {self.unit}",
            f"{statistics.median(self.ratios):.2f}",
            f"{min(self.ratios):.2f} – {max(self.ratios):.2f}",
            f"1 ± {self.within:g}" if self.within is not None else f"{sign} {self.aim:g}" if self.aim is not None else "",
            ("yes" if self.reached else "no") if self.aim is not None or self.within is not None else "",
        ]


@dataclass
class Latency:
    """How long requests of one kind take, in milliseconds: the median and the 99th percentile, each with its aim."""

    name: str
    median_aim: float
    p99_aim: float
    times: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """Of fewer than 100 requests, the longest."""
        return sorted(self.times)[max(-(-99 * len(self.times) // 100) - 1, 0)]

    @property
    def reached(self) -> bool:
        return statistics.median(self.times) <= self.median_aim and self.p99 <= self.p99_aim

    def row(self) -> list[str]:
        return [
            self.name,
            f"{len(self.times):,}",
            f"{_number(statistics.median(self.times))} ms",
            f"{_number(self.p99)} ms",
            f"{_number(max(self.times))} ms",
            f"≤ {self.median_aim:,g} ms, ≤ {self.p99_aim:,g} ms",
            "yes" if self.reached else "no",
        ]


HEADER = ["what", "median", "spread", "aim", "limit in the same run (median)", "best turn reaches it"]


def by_turns(figure: Figure, turns: int, measure: Callable[[], float], limit: Callable[[], float] | None = None) -> Figure:
    """Measures a figure and its limit alternately. The first turn of each is thrown away: it pays for cold memory."""
    for turn in range(turns + 1):
        value = measure()
        bound = limit() if limit is not None else None
        if turn > 0:
            figure.turns.append(value)
            if bound is not None:
                figure.limits.append(bound)
    return figure


def table(figures: Sequence[Figure | Comparison | Latency]) -> str:
    """As Markdown, padded so that it reads well on a terminal too; comparisons first, a table for each other system."""
    comparisons = [figure for figure in figures if isinstance(figure, Comparison)]
    tables = [
        _markdown(
            ["what", "Barnabas", other, "ratio", "spread", "aim", "reached"],
            [comparison.row() for comparison in comparisons if comparison.other == other],
        )
        for other in dict.fromkeys(comparison.other for comparison in comparisons)
    ]
    latencies = [figure.row() for figure in figures if isinstance(figure, Latency)]
    if latencies:
        tables.append(_markdown(["what", "requests", "median", "p99", "longest", "aim of median and p99", "reached"], latencies))
    alone = [figure.row() for figure in figures if isinstance(figure, Figure)]
    return "\n\n".join([*tables, *([_markdown(HEADER, alone)] if alone else [])])


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in [header, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
