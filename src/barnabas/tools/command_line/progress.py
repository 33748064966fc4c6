"""Progress where people wait: one bar for all tools, with rate and time left.

It is drawn on a terminal's stderr, so that a pipe and a file get nothing of it. A tool that has to say something there prints plain lines
itself.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from typing import Final

BYTES: Final = "bytes"  # the unit whose amounts are shown as sizes
_BAR: Final = 30
_REDRAW_S: Final = 0.2
_WINDOW_S: Final = 30.0  # the rate is that of the last seconds: an average since the start reacts too slowly
_SAMPLES_MAX: Final = 200
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class RedrawnLine:
    """A line on stderr that each text replaces, cut to the width of the terminal: a wrapped line cannot be overwritten. Without a terminal
    nothing is shown."""

    def __init__(self) -> None:
        self.is_visible = sys.stderr.isatty()
        self._width = 0

    def show(self, text: str) -> None:
        if self.is_visible:
            line = text[: shutil.get_terminal_size().columns - 1]
            print(f"\r{line:{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def clear(self) -> None:
        if self._width:
            print(f"\r{'':{self._width}}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class ProgressBar:
    """`what` says what is done and `unit` what is counted, such as `records`; `bytes` are shown as sizes. It is drawn after `after_s`."""

    def __init__(self, what: str, total: int, unit: str, *, after_s: float = 0.0) -> None:
        self.done = 0
        self._what = what
        self._total = total
        self._unit = unit
        self._line = RedrawnLine()
        self._rate = ProgressRate()
        self._begins = time.monotonic() + after_s
        self._drawn = float("-inf")
        self._rate.at(0, time.monotonic())

    def add(self, amount: int) -> None:
        """So much more is done."""
        self.at(self.done + amount)

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done by now; `total` replaces the total."""
        self.done = done
        self._total = self._total if total is None else total
        now = time.monotonic()
        if self._line.is_visible and now >= self._begins and now - self._drawn >= _REDRAW_S:
            self._drawn = now
            self._rate.at(done, now)
            self._line.show(progress_line(self._what, done, self._total, self._unit, self._rate.per_s()))

    def end(self) -> None:
        """Removes the bar."""
        self._line.clear()


class ProgressRate:
    """How fast something grows, over the last thirty seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES_MAX)

    def at(self, done: int, monotonic_s: float) -> None:
        self._samples.append((monotonic_s, done))
        while len(self._samples) > 2 and self._samples[0][0] < monotonic_s - _WINDOW_S:
            self._samples.popleft()

    def per_s(self) -> float | None:
        """None while nothing is known."""
        if len(self._samples) < 2:
            return None
        (since, first), (now, last) = self._samples[0], self._samples[-1]
        return (last - first) / (now - since) if now > since and last > first else None


def progress_line(what: str, done: int, total: int, unit: str, per_s: float | None) -> str:
    """`backup ████···  40%  1.2 GiB of 3.0 GiB, 100.0 MiB/s, 18 s left`"""
    share = min(done / total, 1.0) if total > 0 else 1.0
    if unit == BYTES:
        amounts = f"{size_text(done)} of {size_text(total)}"
        rate = "" if per_s is None else f", {size_text(per_s)}/s"
    else:
        amounts = f"{done:,} of {total:,} {unit}"
        rate = "" if per_s is None else f", {per_s:,.0f}/s" if per_s >= 10 else f", {per_s:,.1f}/s"
    left = "" if per_s is None or done >= total else f", {duration_text((total - done) / per_s)} left"
    return f"{what} {bar(share)} {share:4.0%}  {amounts}{rate}{left}"


def bar(share: float) -> str:
    full = round(min(max(share, 0.0), 1.0) * _BAR)
    return "█" * full + "·" * (_BAR - full)


def duration_text(seconds: float) -> str:
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


def size_text(size: float) -> str:
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
