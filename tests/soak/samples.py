"""Samples of a soak: memory and descriptors of each broker process, and the latencies of acknowledgements since the last sample."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tests.cluster import BrokerProcess

_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)


class BrokerSample(NamedTuple):
    memory_mb: float
    descriptors: int


class Sample(NamedTuple):
    """`brokers` has no entry for a broker that is just being restarted."""

    second: float
    brokers: dict[int, BrokerSample]
    p50_ms: float
    p99_ms: float
    acknowledged: int


class Latencies:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: list[float] = []

    def note(self, seconds: float) -> None:
        with self._lock:
            self._seconds.append(seconds)

    def take(self) -> list[float]:
        with self._lock:
            taken, self._seconds = sorted(self._seconds), []
            return taken


class Sampler:
    def __init__(self, brokers: list[BrokerProcess], latencies: Latencies) -> None:
        self.samples: list[Sample] = []
        self._brokers = brokers
        self._latencies = latencies
        self._began = time.monotonic()

    def take(self) -> Sample:
        taken = self._latencies.take()
        brokers = {broker.id: found for broker in self._brokers if (found := look_at(broker)) is not None}
        sample = Sample(time.monotonic() - self._began, brokers, 1000 * share_of(taken, 0.5), 1000 * share_of(taken, 0.99), len(taken))
        self.samples.append(sample)
        return sample


def share_of(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def look_at(broker: BrokerProcess) -> BrokerSample | None:
    if not broker.is_running:
        return None
    try:
        resident = _RESIDENT.search(Path(f"/proc/{broker.pid}/status").read_text())
        descriptors = len(os.listdir(f"/proc/{broker.pid}/fd"))
    except OSError:
        return None
    return None if resident is None else BrokerSample(int(resident[1]) / 1024, descriptors)
