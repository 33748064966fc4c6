"""The output of `barnabas demo`: a table of the last windows on a terminal, or one line per window in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.tools.administration.status_text import size_text
from barnabas.tools.command_line.progress import progress_line
from barnabas.tools.command_line.text import coloured, heading
from barnabas.tools.spark.demo_orders import PRODUCTS

TO_THE_TOP: Final = "\x1b[H\x1b[J"
_WINDOWS_SHOWN: Final = 8
_WINDOWS_KEPT: Final = 32


@dataclass
class Tally:
    """The orders counted for each window and product. Old windows are dropped, but their sum is kept."""

    counted: int = 0
    windows: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """A record of the result topic."""
        self.counted += row["orders"]
        self.windows.setdefault(row["window_start"], {})[row["product"]] = row["orders"]
        for oldest in sorted(self.windows)[:-_WINDOWS_KEPT]:
            del self.windows[oldest]


@dataclass
class Figures:
    """The figures of the current moment."""

    sent: int = 0
    processed: int = 0
    rows_per_s: float = 0.0
    batch_s: float = 0.0
    memory: int | None = None
    memory_peak: int = 0

    @property
    def lag(self) -> int:
        return max(0, self.sent - self.processed)

    def text(self) -> str:
        memory = "" if self.memory is None else f"   memory {size_text(self.memory)}"
        return (
            f"sent {self.sent:,}   processed {self.processed:,}   {self.rows_per_s:,.0f} rows/s   lag {self.lag:,}   "
            f"batch {self.batch_s:.1f} s{memory}"
        )


def screen(about: list[str], figures: Figures, tally: Tally, records: int = 0) -> str:
    """`records` is the number of orders after which the demo ends; 0 if it does not."""
    counted = [progress_line("counted", tally.counted, records, "orders", figures.rows_per_s or None)] if records else []
    return TO_THE_TOP + "\n".join([*about, "", figures.text(), *counted, "", *_table(tally)])


def _table(tally: Tally) -> Iterator[str]:
    yield heading("  ".join([f"{'window':8}", *(f"{product:>8}" for product in PRODUCTS), f"{'orders':>10}"]))
    for start in sorted(tally.windows)[-_WINDOWS_SHOWN:]:
        counts = tally.windows[start]
        yield "  ".join([_time(start), *(f"{counts.get(product, 0):8,}" for product in PRODUCTS), _total(counts)])
    if not tally.windows:
        yield coloured("the first window closes when its orders cannot come any more, some ten seconds after it began", "dim")


def line(start: str, counts: Mapping[str, int]) -> str:
    """The line for one window."""
    return f"{_time(start)}  {sum(counts.values()):,} orders: {', '.join(f'{product} {counts[product]:,}' for product in sorted(counts))}"


def _total(counts: Mapping[str, int]) -> str:
    return coloured(f"{sum(counts.values()):10,}", "green")


def _time(start: str) -> str:
    return start[11:19]
