"""Helpers of the tools that run for long: a throttle, the table of a client's metrics, Java's date patterns, and signal handling."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

_SLEEP_MIN_NS: Final = 2_000_000
_NS_PER_S: Final = 1_000_000_000


class ThroughputThrottler:
    """Limits a loop to `rate` operations a second by sleeping; a negative rate means no limit, as in Kafka."""

    def __init__(self, rate: float, start_ms: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._rate = rate
        self._start_ms = start_ms
        self._sleep = sleep
        self._each_ns = int(_NS_PER_S / rate) if rate > 0 else 0
        self._deficit_ns = 0

    def wait(self, done: int, now_ms: int) -> None:
        """Must be called after each operation."""
        if self._rate < 0:
            return
        elapsed_s = (now_ms - self._start_ms) / 1000
        if elapsed_s <= 0 or done / elapsed_s <= self._rate:
            return
        while self._rate == 0:
            self._sleep(3600.0)
        self._deficit_ns += self._each_ns
        if self._deficit_ns >= _SLEEP_MIN_NS:
            self._sleep(self._deficit_ns / _NS_PER_S)
            self._deficit_ns = 0


def print_metrics(metrics: Mapping[Any, Any]) -> None:
    """A client's metrics by name, as --print-metrics shows them."""
    if not metrics:
        return
    named = {f"{name.group}:{name.name}:{_tags(name.tag_map)}": metric.metric_value() for name, metric in metrics.items()}
    width = max(map(len, named))
    print(f"\n{'Metric Name':{width}}   Value")
    for name, value in sorted(named.items()):
        print(f"{name:{width}} : {value:.3f}" if isinstance(value, float) else f"{name:{width}} : {value}")


def _tags(tags: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in tags.items()) + "}"


def java_date(pattern: str, ms: int) -> str:
    """Formats a time in the local zone by a pattern of java.text.SimpleDateFormat; quoted text in the pattern is copied."""
    moment = datetime.fromtimestamp(ms // 1000)
    texts = []
    for match in re.finditer(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|[^A-Za-z']+", pattern):
        if match[2] is not None:
            texts.append(_field(match[2], moment, ms % 1000))
        elif match[1] is not None:
            texts.append(match[1].replace("''", "'") or "'")
        else:
            texts.append(match[0])
    return "".join(texts)


def _field(letters: str, moment: datetime, millis: int) -> str:
    width = len(letters)
    numbers = {"M": moment.month, "d": moment.day, "H": moment.hour, "m": moment.minute, "s": moment.second, "S": millis}
    numbers |= {"h": moment.hour % 12 or 12, "k": moment.hour or 24, "K": moment.hour % 12, "D": moment.timetuple().tm_yday}
    letter = letters[0]
    if letter == "y":
        return f"{moment.year % 100:02}" if width == 2 else f"{moment.year:0{width}}"
    if letter == "M" and width >= 3:
        return moment.strftime("%B" if width > 3 else "%b")
    if letter in numbers:
        return f"{numbers[letter]:0{width}}"
    named = {"a": "%p", "E": "%A" if width > 3 else "%a", "z": "%Z", "Z": "%z"}
    if letter not in named:
        raise ValueError(f"Illegal pattern character '{letter}'")
    return moment.astimezone().strftime(named[letter])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def on_signals(stop: Callable[[], None]) -> None:
    """Calls `stop` on SIGTERM and SIGINT. Outside the main thread, as in tests, no handler is installed."""
    if threading.current_thread() is threading.main_thread():
        for number_of_signal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number_of_signal, lambda *_: stop())
