"""Three brokers next to three of Apache Kafka 3.9.1, all on one machine and on one ZooKeeper (`tickTime` 500 ms), measured by turns in one
run.

Kafka 3.9 is the last version that works with ZooKeeper. With it both clusters have a controller of the same kind and the same session
timeout of 4 s, and neither runs more processes than the other. Its brokers have a heap of 1 GB each. Topics have 3 replicas and
`min.insync.replicas=2`; all settings are the same for both.

- *Produce*: records of 1 KB and of 100 B to 6 partitions with acks=all, by librdkafka's `rdkafka_performance` (linger.ms=5, batches of
  16 KB) and by Kafka's own `kafka-producer-perf-test` (its defaults), at full speed. Client, brokers and ZooKeeper share the cores, and
  the other cluster is idle. The CPU time is that of the brokers for each MB.
- *Rolling restart*: each broker in turn is stopped and started again, while a producer writes a record to each of 3 partitions every 5
  ms. The figure is the longest pause between two acknowledgements of a partition; a record that is not acknowledged fails the run.
- *Failover of a leader*: from SIGKILL to the next acknowledged write of the same producer, librdkafka. If one Metadata response contains
  both the new leader and the absence of the dead broker, librdkafka waits a second, by its debug log, before it requests metadata again
  and continues.
- *Failover of the controller*: 5,000 partitions in 50 topics; from SIGKILL of the controller until both other brokers report a new one
  and a leader for every partition. Most of it is the session timeout, so a second figure starts when ZooKeeper ends the session.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster_peers, librdkafka, perf_test
from benchmarks.cluster_loads import SteadyWriter, controller_failover_s, leader_failover_s, restart_in_turn
from benchmarks.cluster_peers import SESSION_TIMEOUT_MS, Trio
from benchmarks.report import Comparison, Figure
from tests import zookeeper

PARTITIONS = 6
BATCH_BYTES = 16_384
MEGABYTES_MAX = 100  # for one figure
STEADY_PARTITIONS = 3
KILLS_PER_TURN = 10
TOPICS, PARTITIONS_OF_EACH = 50, 100
TOPICS_AT_ONCE = 5  # what a cluster makes within the timeout of a request
QUICK_DELETE = {"file.delete.delay.ms": "0"}

Peer = Callable[[Path, str], AbstractContextManager[Trio]]
PEERS: tuple[Peer, Peer] = (cluster_peers.barnabas, cluster_peers.apache_kafka)


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    figures: list[Figure | Comparison] = []
    with _zookeeper() as (directory, address), _both(directory, address) as (ours, theirs):
        figures += _told(_produce(ours, theirs, min(megabytes, MEGABYTES_MAX), turns))
        figures += _told(_memory(ours, theirs))
        figures += _told(_rolling_restart(ours, theirs, turns))
        figures += _told(_leader_failover(ours, theirs, turns))
    return [*figures, *_told(_controller_failover())]


def _told(figures: Sequence[Figure | Comparison]) -> Sequence[Figure | Comparison]:
    """As soon as they are there: the whole takes its time."""
    for figure in figures:
        print(figure, file=sys.stderr, flush=True)
    return figures


@contextmanager
def _zookeeper() -> Iterator[tuple[Path, str]]:
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    try:
        with zookeeper.running(directory / "zookeeper") as server:
            yield directory, server.address
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _both(directory: Path, address: str) -> Iterator[tuple[Trio, Trio]]:
    with cluster_peers.apache_kafka(directory, address) as theirs, cluster_peers.barnabas(directory, address) as ours:
        yield ours, theirs


# Produce


@dataclass(frozen=True)
class Load:
    client: str
    record_bytes: int
    produce: Callable[[Trio, str, int, int], float]  # topic, number of records, size of one; MB/s


def _by_librdkafka(trio: Trio, topic: str, records: int, record_bytes: int) -> float:
    return librdkafka.produce(trio.bootstrap, topic, record_bytes, records, BATCH_BYTES, partition=None)


def _by_perf_test(trio: Trio, topic: str, records: int, record_bytes: int) -> float:
    return perf_test.produce(trio.bootstrap, topic, records, record_bytes)


LOADS = (
    Load("librdkafka", 1000, _by_librdkafka),
    Load("librdkafka", 100, _by_librdkafka),
    Load("kafka-producer-perf-test", 1000, _by_perf_test),
    Load("kafka-producer-perf-test", 100, _by_perf_test),
)


def _produce(ours: Trio, theirs: Trio, megabytes: int, turns: int) -> list[Comparison]:
    figures: list[Comparison] = []
    for load in LOADS:
        if load.client == "librdkafka" and not librdkafka.is_there():
            continue
        name = f"produce {load.record_bytes} B records, {load.client}"
        rate = Comparison(name, "MB/s", 2)
        cpu = Comparison(f"{name}: CPU of the brokers", "ms/MB", None, smaller_is_better=True)
        for turn in range(turns + 1):
            for trio in (ours, theirs):
                mb_s, ms_per_mb = _one_load(trio, load, megabytes, f"{len(figures)}-{turn}")
                if turn > 0:
                    (rate.ours if trio is ours else rate.theirs).append(mb_s)
                    (cpu.ours if trio is ours else cpu.theirs).append(ms_per_mb)
        figures += [rate, cpu]
    return figures


def _one_load(trio: Trio, load: Load, megabytes: int, number: str) -> tuple[float, float]:
    topic = f"bench-{number}"
    trio.create([topic], PARTITIONS, QUICK_DELETE)
    before = trio.cpu_seconds()
    rate = load.produce(trio, topic, megabytes * 1_000_000 // load.record_bytes, load.record_bytes)
    cpu_ms = (trio.cpu_seconds() - before) * 1000
    trio.delete([topic])
    return rate, cpu_ms / megabytes


def _memory(ours: Trio, theirs: Trio) -> list[Comparison]:
    name = "memory of the three brokers after this load"
    return [Comparison(name, "MB", 0.2, [ours.memory_mb()], [theirs.memory_mb()], smaller_is_better=True)]


# Restarts and failovers


def _rolling_restart(ours: Trio, theirs: Trio, turns: int) -> list[Comparison]:
    pause = Comparison("longest pause in a rolling restart", "ms", 1, smaller_is_better=True)
    for turn in range(turns):
        for trio, pauses in ((ours, pause.ours), (theirs, pause.theirs)):
            topic = f"restarted-{turn}"
            trio.create([topic], STEADY_PARTITIONS)
            with SteadyWriter(trio, topic, STEADY_PARTITIONS) as writer:
                restart_in_turn(trio, topic)
            _require_no_failure(trio, writer)
            pauses.append(writer.longest_pause() * 1000)
    return [pause]


def _leader_failover(ours: Trio, theirs: Trio, turns: int) -> list[Figure | Comparison]:
    seconds: dict[str, list[float]] = {ours.name: [], theirs.name: []}
    for trio in (ours, theirs):
        trio.create(["failed-over"], STEADY_PARTITIONS)
    for _ in range(turns):
        for trio in (ours, theirs):
            with SteadyWriter(trio, "failed-over", STEADY_PARTITIONS) as writer:
                seconds[trio.name] += [leader_failover_s(trio, writer, "failed-over") for _ in range(KILLS_PER_TURN)]
            _require_no_failure(trio, writer)
    at_95 = Figure("95th percentile of a leader's failover", "s", SESSION_TIMEOUT_MS / 1000 + 1, smaller_is_better=True)
    at_95.turns = [_p95(seconds[ours.name])]
    at_95.limit_name, at_95.limits = theirs.name, [_p95(seconds[theirs.name])]
    name = f"failover of a leader, session timeout {SESSION_TIMEOUT_MS / 1000:g} s"
    middle = [statistics.median(seconds[trio.name]) for trio in (ours, theirs)]
    worst = [_p95(seconds[trio.name]) for trio in (ours, theirs)]
    return [
        Comparison(f"{name}, median", "s", None, [middle[0]], [middle[1]], smaller_is_better=True),
        Comparison(f"{name}, p95", "s", None, [worst[0]], [worst[1]], smaller_is_better=True),
        at_95,
    ]


def _controller_failover() -> list[Comparison]:
    """Each cluster alone, and new: the controller that is killed has made all the topics."""
    partitions = f"{TOPICS * PARTITIONS_OF_EACH:,} partitions"
    whole = Comparison(f"failover of the controller, {partitions}", "s", 1, smaller_is_better=True)
    work = Comparison(f"the same since ZooKeeper ended the session, {partitions}", "s", 1, smaller_is_better=True)
    names = [f"many-{number}" for number in range(TOPICS)]
    for peer in PEERS:
        with _zookeeper() as (directory, address), peer(directory, address) as trio:
            for first in range(0, TOPICS, TOPICS_AT_ONCE):
                trio.create(names[first : first + TOPICS_AT_ONCE], PARTITIONS_OF_EACH)
            from_kill, from_expiry = asyncio.run(controller_failover_s(trio, names))
        (whole.ours if peer is PEERS[0] else whole.theirs).append(from_kill)
        (work.ours if peer is PEERS[0] else work.theirs).append(from_expiry)
    return [whole, work]


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def _require_no_failure(trio: Trio, writer: SteadyWriter) -> None:
    if writer.failures:
        raise RuntimeError(f"{trio.name} lost what a producer had sent: {writer.failures[:3]}")
