"""The plot of a soak, for docs/performance.md: memory, descriptors and latencies over time, with a line at each restart."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.soak.samples import Sample


def write_plot(path: Path, samples: Sequence[Sample], restarts: Sequence[float]) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")  # only `make soak` has it
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, (memory, descriptors, latency) = pyplot.subplots(3, 1, sharex=True, figsize=(9, 8), layout="constrained")
    for number in sorted({number for sample in samples for number in sample.brokers}):
        there = [sample for sample in samples if number in sample.brokers]
        minutes = [sample.second / 60 for sample in there]
        memory.plot(minutes, [sample.brokers[number].memory_mb for sample in there], label=f"broker {number}")
        descriptors.plot(minutes, [sample.brokers[number].descriptors for sample in there], label=f"broker {number}")
    answered = [sample for sample in samples if sample.acknowledged]
    minutes = [sample.second / 60 for sample in answered]
    latency.plot(minutes, [sample.p50_ms for sample in answered], label="median")
    latency.plot(minutes, [sample.p99_ms for sample in answered], label="p99")
    latency.set_yscale("log")
    for axes, title in ((memory, "resident memory, MB"), (descriptors, "descriptors"), (latency, "produce to acknowledgement, ms")):
        axes.set_ylabel(title)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize="small")
        if axes is not latency:
            axes.set_ylim(bottom=0)
        for second in restarts:
            axes.axvline(second / 60, color="grey", linewidth=0.6, linestyle=":")
    latency.set_xlabel("minutes; a dotted line is the restart of a broker")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
