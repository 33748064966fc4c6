"""The broker next to Apache Kafka 4.2.0 (KRaft, 1 GB heap): both run on one machine and are measured by turns in one run.

There are two clients: librdkafka's `rdkafka_performance` (linger.ms=5, acks=all, one partition), and a raw generator that replays
prebuilt frames with five in flight on one connection and checks every response for errors. A round that does not count warms the JVM. A
ratio of 2 means twice Kafka's figure. The second table compares the raw generator with a bare sink (`benchmarks/sink.py`), which
receives, writes to a file and acknowledges on one thread and does nothing else: an aim above the sink's figure is out of reach on this
machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks import librdkafka, peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import Client

LATENCY_SECONDS = 20
MEMORY_AIM_MB = 120
RAW_SECONDS = 4
SINK_TOPIC = "bench-sink"


@dataclass(frozen=True)
class Load:
    """Records of one size in batches of one size; `megabytes` is what takes Apache Kafka a few seconds."""

    record_size: int
    batch_bytes: int
    produce_aim: float
    megabytes: int

    def __str__(self) -> str:
        batch = f"{self.batch_bytes >> 20} MB" if self.batch_bytes >= 1 << 20 else f"{self.batch_bytes >> 10} KB"
        return f"{self.record_size} B records in {batch} batches"

    @property
    def sizes(self) -> list[str]:
        return ["--record-size", str(self.record_size), "--batch-bytes", str(self.batch_bytes)]

    @property
    def records(self) -> int:
        return self.megabytes * 1_000_000 // self.record_size


LOADS = [
    Load(1024, 16384, 4, 300),
    Load(100, 16384, 2.5, 150),
    Load(100, 1024, 4, 20),
    Load(1024, 1 << 20, 3, 600),
]


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    with peers.apache_kafka() as theirs, peers.barnabas() as ours:
        both = Both(ours, theirs, turns)
        return [*both.starts(), *(row for load in LOADS for row in both.throughput(load)), *both.latency(), *both.memory()]


class Both:
    def __init__(self, ours: Peer, theirs: Peer, turns: int) -> None:
        self._ours, self._theirs, self._turns = ours, theirs, turns
        self._topics = 0

    def starts(self) -> list[Figure]:
        starts = Figure("start to first answered Metadata", "s", 0.7, smaller_is_better=True)
        for _ in range(self._turns):
            with peers.barnabas() as peer:
                starts.turns.append(peer.start_seconds)
        starts.limit_name, starts.limits = "Apache Kafka", [self._theirs.start_seconds]
        return [starts]

    def throughput(self, load: Load) -> list[Figure | Comparison]:
        """Produce and consume, by both clients. Each turn has a topic of its own, which is deleted after it."""
        produce = Comparison(f"produce {load}, librdkafka", "MB/s", load.produce_aim)
        consume = Comparison(f"consume {load}, librdkafka", "MB/s", 1.2)
        raw_produce = Comparison(f"produce {load}, raw", "MB/s", load.produce_aim)
        raw_consume = Comparison(f"consume {load}, raw", "MB/s", 1.2)
        has_librdkafka = librdkafka.is_there()
        sink: list[float] = []
        for turn in range(self._turns + 1):
            sink.append(_sink_rate(load))
            for peer in (self._ours, self._theirs):
                rates = self._one_turn(peer, load, has_librdkafka)
                if turn > 0:
                    for comparison, rate in zip((produce, consume, raw_produce, raw_consume), rates, strict=True):
                        (comparison.ours if peer is self._ours else comparison.theirs).append(rate)
        aim = load.produce_aim * median(raw_produce.theirs)
        raw_limit = Figure(f"produce {load}, raw", "MB/s", aim, raw_produce.ours, limit_name="bare sink", limits=sink[1:])
        return [*([produce, consume] if has_librdkafka else []), raw_produce, raw_consume, raw_limit]

    def _one_turn(self, peer: Peer, load: Load, has_librdkafka: bool) -> list[float]:
        produce = consume = 0.0
        if has_librdkafka:
            with self._topic(peer) as topic:
                produce = librdkafka.produce(peer.bootstrap, topic, load.record_size, load.records, load.batch_bytes)
                consume = librdkafka.consume(peer.bootstrap, topic, load.records)
        with self._topic(peer) as topic:
            written = generate(peer.port, "produce", topic, *load.sizes, "--seconds", str(RAW_SECONDS))
            read = generate(
                peer.port, "consume", topic, *load.sizes, "--records", str(int(written["records"])), "--max-bytes", str(4 << 20)
            )
        return [produce, consume, written["mb_s"], read["mb_s"]]

    def latency(self) -> list[Comparison]:
        """5,000 records of 100 B a second, five every millisecond, with a reader at the end of the log."""
        names = {"ack_p50_ms": "produce → ack, median", "ack_p99_ms": "produce → ack, p99"}
        names |= {"read_p50_ms": "produce → consume, median", "read_p99_ms": "produce → consume, p99"}
        figures = {key: Comparison(f"{name}, 5,000 records/s", "ms", 1, smaller_is_better=True) for key, name in names.items()}
        for turn in range(self._turns + 1):
            for peer in (self._ours, self._theirs):
                with self._topic(peer) as topic:
                    seconds = LATENCY_SECONDS if turn > 0 else 5
                    measured = generate(peer.port, "latency", topic, "--record-size", "100", "--seconds", str(seconds))
                for key, figure in figures.items():
                    if turn > 0:
                        (figure.ours if peer is self._ours else figure.theirs).append(measured[key])
        return list(figures.values())

    def memory(self) -> list[Figure | Comparison]:
        """After all of the above."""
        ours, theirs = self._ours.memory_mb(), self._theirs.memory_mb()
        alone = Figure("memory after this load", "MB", MEMORY_AIM_MB, [ours], smaller_is_better=True)
        return [Comparison("memory after this load", "MB", 0.2, [ours], [theirs], smaller_is_better=True), alone]

    def _topic(self, peer: Peer) -> _Topic:
        self._topics += 1
        return _Topic(peer, f"bench-{self._topics}")


class _Topic:
    """Made and deleted again, so that neither broker keeps gigabytes of what was measured."""

    def __init__(self, peer: Peer, name: str) -> None:
        self._peer, self._name = peer, name

    def __enter__(self) -> str:
        with Client("127.0.0.1", self._peer.port) as client:
            client.create_topics([self._name], configs={"max.message.bytes": "10000000", "file.delete.delay.ms": "0"})
        return self._name

    def __exit__(self, *_: object) -> None:
        with Client("127.0.0.1", self._peer.port) as client:
            client.delete_topics([self._name])


def generate(port: int, mode: str, topic: str, *options: str) -> dict[str, Any]:
    """Runs the raw generator in a process of its own and gives what it measured."""
    command = [sys.executable, "-m", "benchmarks.generator", mode, str(port), topic, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1500:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _sink_rate(load: Load) -> float:
    """MB/s that the raw generator gets rid of, when nothing is done with it but what must be."""
    command = [sys.executable, "-m", "benchmarks.sink", SINK_TOPIC]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout is not None
        port = int(sink.stdout.readline())
        rate: float = generate(port, "produce", SINK_TOPIC, *load.sizes, "--seconds", str(RAW_SECONDS))["mb_s"]
        return rate
