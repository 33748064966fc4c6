"""A soak: a mixed load on three brokers, of which two are restarted in turn. The first runs through; its memory, its descriptors and the
latencies must stay flat, and every acknowledged number must be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from tests import cluster
from tests.integration.cluster import asking
from tests.integration.cluster.describing import Description, until
from tests.soak.flatness import Bound, Verdict, verdict
from tests.soak.load import PAIRS, PARTITIONS, TOPIC, Administrator, Numbers, Readers, Transactions
from tests.soak.samples import Latencies, Sample, Sampler

RUNS_THROUGH = 1  # this broker is never restarted
READ_S = 120
MEMORY = Bound(0.10, 10)  # MB
DESCRIPTORS = Bound(0.10, 30)
LATENCY = Bound(0.50, 10)  # ms
SETTINGS = {
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    "zookeeper.session.timeout.ms": "10000",
    "num.partitions": "3",
}


class Soak:
    def __init__(self, directory: Path, zookeeper: str, say: Callable[[str], None] = lambda _: None) -> None:
        self.restarts: list[float] = []
        self._cluster = cluster.Cluster(directory, zookeeper, SETTINGS)
        self._say = say

    @property
    def samples(self) -> list[Sample]:
        return self._sampler.samples

    def run(self, seconds: float, sample_s: float, restart_s: float) -> None:
        """Restarts begin every `restart_s` seconds, once all replicas are in sync again."""
        three = self._cluster
        try:
            three.start()
            described = Description(three.bootstrap)
            described.create(TOPIC, PARTITIONS, 3, min_insync_replicas="2", segment_bytes=str(1 << 20), retention_bytes=str(6 << 20))
            described.create(PAIRS, 2, 3, min_insync_replicas="2", segment_bytes=str(1 << 20), retention_bytes=str(2 << 20))
            self._play(seconds, sample_s, restart_s)
            tracebacks = three.tracebacks()
            assert tracebacks == [], tracebacks[0]
        finally:
            three.end()

    def _play(self, seconds: float, sample_s: float, restart_s: float) -> None:
        bootstrap, latencies = self._cluster.bootstrap, Latencies()
        numbers = [Numbers(bootstrap, partition, latencies.note) for partition in range(PARTITIONS)]
        readers, transactions, administrator = Readers(bootstrap), Transactions(bootstrap), Administrator(bootstrap)
        workers = [*numbers, readers, transactions, administrator]
        self._sampler = Sampler(list(self._cluster.brokers.values()), latencies)
        for worker in workers:
            worker.start()
        began = time.monotonic()
        turns = cycle(broker for broker in self._cluster.brokers.values() if broker.id != RUNS_THROUGH)
        next_restart = began + restart_s
        while (now := time.monotonic()) < began + seconds:
            sample = self._sampler.take()
            self._say(_line(sample))
            if now >= next_restart and asking.all_in_sync(self._cluster.brokers.values()):
                self._restart(next(turns), now - began)
                next_restart = time.monotonic() + restart_s
            time.sleep(max(0.0, now + sample_s - time.monotonic()))
        self._finish(numbers, readers)
        for worker in (transactions, administrator):
            worker.stop()
        failures = [failure for worker in workers for failure in worker.failures]
        assert failures == [], failures[:5]
        for worker in workers:
            assert worker.rounds > 0

    def _restart(self, broker: cluster.BrokerProcess, second: float) -> None:
        self._say(f"restarting broker {broker.id}")
        self.restarts.append(second)
        assert broker.stop() == 0
        broker.start()
        broker.wait_ready()

    def _finish(self, numbers: list[Numbers], readers: Readers) -> None:
        """Every acknowledged number is read."""
        for writer in numbers:
            writer.stop()
        acknowledged = {writer.partition: writer.acknowledged for writer in numbers}
        until(lambda: readers.failures != [] or readers.next_numbers == acknowledged, f"all of {acknowledged} is read", READ_S)
        readers.stop()

    def verdicts(self, *, with_latencies: bool) -> list[Verdict]:
        own = [sample.brokers[RUNS_THROUGH] for sample in self.samples if RUNS_THROUGH in sample.brokers]
        found = [
            verdict(f"memory of broker {RUNS_THROUGH}, MB", [sample.memory_mb for sample in own], MEMORY),
            verdict(f"descriptors of broker {RUNS_THROUGH}", [each.descriptors for each in own], DESCRIPTORS),
        ]
        if with_latencies:
            answered = [sample for sample in self.samples if sample.acknowledged]
            found.append(verdict("median of acknowledgements, ms", [each.p50_ms for each in answered], LATENCY))
            found.append(verdict("p99 of acknowledgements, ms", [each.p99_ms for each in answered], Bound(1.0, 100)))
        return found


def _line(sample: Sample) -> str:
    brokers = "  ".join(f"{number}: {each.memory_mb:.0f} MB, {each.descriptors} fds" for number, each in sorted(sample.brokers.items()))
    return f"{sample.second:6.0f} s  {brokers}  ack p50 {sample.p50_ms:.1f} ms, p99 {sample.p99_ms:.1f} ms, {sample.acknowledged} records"
