"""The quotas of clients next to those of Apache Kafka 4.2.0, one broker of each, measured by turns in one run: `make quotas`.

A client that is new to the broker sends as fast as its quota lets it. What it could do is compared with the set rate and with what Apache
Kafka let it do. Both brokers measure rates over eleven windows of a second. A client may use ten seconds' worth of its rate at once, and
then waits; after ten seconds it may be one window, which is 10 %, above the rate, and after eleven it is at the rate. The quota on changes
of topics is measured when the client has used up what it had saved. Throttle times are those of the responses: together, for each second
since the first of them, and the longest.

The request percentage is not the same thing on both brokers: here it is the time of the one event loop, there that of any of the threads
that serve requests. The table shows the processor time of the broker (there of its network and request threads) under Metadata requests for
300 topics, without what it takes while nothing is sent. It contains what neither quota counts: polling and receiving, and in Kafka most
of the sending. The request time is what the quota of this broker counts, by its metric `request-time`, and is compared with the set rate.

Last, a client without a quota writes a record every 5 ms, alone and beside a client that produces with five requests in flight and has a
quota of 100,000 B/s; its 99th percentiles are compared.

While something is measured, the broker and the measured client are scheduled before all other processes, so that a busy machine is no part
of the figures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks import peers, quota_loads
from benchmarks.peers import Peer
from benchmarks.quota_loads import Load
from benchmarks.report import Comparison, Figure
from benchmarks.wire import Client

SECONDS = 11.0  # the windows of the quotas together
TEN_SECONDS = 10.0
BYTES_RATE = 2_000_000
REQUEST_BYTES = 16_384
FETCH_BYTES = 65_536
PERCENTAGE = 10.0
MUTATION_RATE = 5.0
PARTITIONS_PER_TOPIC = 1
WINDOWS_S = 11  # controller.quota.window.num windows of a second
WILD_RATE = 100_000
PAUSE_S = 0.005
IDLE_S = 3.0
TOPIC = "quotas"
_CALM_TOPIC = "calm"
_LOG_BYTES = 1_000_000
TOPICS = 300
_TOPICS_PER_REQUEST = 100
_NETWORK_AND_REQUEST_THREADS = "data-plane-kafk"  # as far as Linux keeps the names of threads

SET = "the set rate"
ALONE = "alone"


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    measured = Measured()
    with peers.measured() as (ours, url), peers.apache_kafka() as theirs:
        for peer in (ours, theirs):
            _prepare(peer)
        for turn in range(turns + 1):
            for peer in (ours, theirs):
                measured.take(peer, turn, counts=turn > 0, url=url if peer is ours else None)
    return measured.comparisons()


class Measured:
    """The comparisons, filled turn by turn."""

    def __init__(self) -> None:
        self.rates = {
            name: _Rate(f"{name}, set to {rate:,.0f} {unit}", unit, rate)
            for name, unit, rate in (
                ("Produce", "B/s", BYTES_RATE),
                ("Fetch", "B/s", BYTES_RATE),
                ("CreateTopics", "partitions/s", MUTATION_RATE),
                ("processor time by request percentage", "%", PERCENTAGE),
            )
        }
        loads = ("Produce", "Fetch", "CreateTopics")
        self.after_ten = {name: Comparison(f"{name}, after 10 s", self.rates[name].unit, None, within=0.1) for name in loads}
        self.throttles = {name: Comparison(f"throttle times of {name}", "ms/s", None, within=0.2) for name in loads}
        self.longest = {name: Comparison(f"longest throttle time of {name}", "ms", None, within=0.2) for name in loads}
        self.request_time = Comparison(f"request time as counted, set to {PERCENTAGE:g} %", "%", None, other=SET, within=0.1)
        self.beside = Comparison("p99 beside a throttled client", "ms", 1.25, smaller_is_better=True, other=ALONE)
        self.beside_both = Comparison("p99 beside a throttled client", "ms", None)
        self.alone_both = Comparison("p99 of that client alone", "ms", None)

    def take(self, peer: Peer, turn: int, *, counts: bool, url: str | None) -> None:
        """All figures of one turn of a broker. The first turn of each does not count. `url` is where this broker has its metrics."""
        is_ours = url is not None
        loads = {
            "Produce": _with_quota(peer, f"producer-{turn}", "producer_byte_rate", BYTES_RATE, _produce),
            "Fetch": _with_quota(peer, f"consumer-{turn}", "consumer_byte_rate", BYTES_RATE, _fetch),
            "CreateTopics": _with_quota(peer, f"changer-{turn}", "controller_mutation_rate", MUTATION_RATE, _change),
        }
        busy, counted = _busy_percent(peer, turn, url)
        alone = _p99(peer)
        beside = _beside(peer, turn)
        _show(peer, turn, loads, busy, alone, beside)
        if not counts:
            return
        for name, load in loads.items():
            self.rates[name].add(load.rate, is_ours)
            _add(self.after_ten[name], load.rate_over(TEN_SECONDS), is_ours)
            _add(self.throttles[name], load.throttle_share, is_ours)
            _add(self.longest[name], load.longest_throttle_ms, is_ours)
        self.rates["processor time by request percentage"].add(busy, is_ours)
        _add(self.beside_both, beside, is_ours)
        _add(self.alone_both, alone, is_ours)
        if counted is not None:
            self.request_time.ours.append(counted)
            self.request_time.theirs.append(PERCENTAGE)
        if is_ours:
            self.beside.ours.append(beside)
            self.beside.theirs.append(alone)

    def comparisons(self) -> list[Figure | Comparison]:
        rates = self.rates.values()
        to_kafka = [*self.after_ten.values(), *self.throttles.values(), *self.longest.values(), self.beside_both, self.alone_both]
        return [*(rate.to_kafka for rate in rates), *to_kafka, *(rate.to_set_rate for rate in rates), self.request_time, self.beside]


class _Rate:
    """A rate of ours, compared with Apache Kafka's and with what was set."""

    def __init__(self, name: str, unit: str, rate: float) -> None:
        self.unit = unit
        self.rate = rate
        self.to_kafka = Comparison(name, unit, None)
        self.to_set_rate = Comparison(name, unit, None, other=SET, within=None if unit == "%" else 0.1)

    def add(self, value: float, is_ours: bool) -> None:
        _add(self.to_kafka, value, is_ours)
        if is_ours:
            self.to_set_rate.ours.append(value)
            self.to_set_rate.theirs.append(self.rate)


def _add(comparison: Comparison, value: float, is_ours: bool) -> None:
    (comparison.ours if is_ours else comparison.theirs).append(value)


def _show(peer: Peer, turn: int, loads: dict[str, Load], busy: float, alone: float, beside: float) -> None:
    rates = ", ".join(
        f"{name} {load.rate:,.2f}/s ({load.rate_over(TEN_SECONDS):,.2f} after 10 s), throttled {load.throttle_share:.0f} ms/s, "
        f"at most {load.longest_throttle_ms} ms"
        for name, load in loads.items()
    )
    print(f"turn {turn}, {peer.name}: {rates}; {busy:.2f} % busy; p99 {alone:.2f} ms alone, {beside:.2f} ms beside", flush=True)


def _prepare(peer: Peer) -> None:
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics([TOPIC, _CALM_TOPIC])
        for first in range(0, TOPICS, _TOPICS_PER_REQUEST):
            client.create_topics([f"topic-{number}" for number in range(first, first + _TOPICS_PER_REQUEST)])
        frame = quota_loads.produce_frame(TOPIC, client.client_id, REQUEST_BYTES)
        for _ in range(_LOG_BYTES // REQUEST_BYTES):
            client.socket.sendall(frame)
            client.next_frame()


def _with_quota(peer: Peer, client_id: str, name: str, rate: float, load: Callable[[Peer, str], Load]) -> Load:
    """What a client can do under a quota. The broker and the client are not disturbed, so that the quota is what bounds them."""
    quota_loads.set_quota(peer.port, client_id, name, rate)
    try:
        with _undisturbed(peer.process.pid), _undisturbed(os.getpid()):
            done = load(peer, client_id)
    finally:
        quota_loads.set_quota(peer.port, client_id, name, None)
    if not done.throttles_ms:
        raise RuntimeError(f"{peer.name} did not throttle {client_id}, whose {name} is {rate:g}: the machine is too slow for this rate")
    return done


def _produce(peer: Peer, client_id: str) -> Load:
    return quota_loads.produce(peer.port, client_id, TOPIC, REQUEST_BYTES, SECONDS)


def _fetch(peer: Peer, client_id: str) -> Load:
    return quota_loads.fetch(peer.port, client_id, TOPIC, FETCH_BYTES, SECONDS)


def _change(peer: Peer, client_id: str) -> Load:
    return quota_loads.mutations(peer.port, client_id, client_id, PARTITIONS_PER_TOPIC, MUTATION_RATE, WINDOWS_S, SECONDS)


def _busy_percent(peer: Peer, turn: int, url: str | None) -> tuple[float, float | None]:
    """The processor time that the requests of a client take, in percent of one core, and what this broker counts as their time."""
    idle_from = _busy_seconds(peer)
    time.sleep(IDLE_S)
    idle = (_busy_seconds(peer) - idle_from) / IDLE_S
    busy: list[float] = []
    counted: list[float] = []

    def load(peer: Peer, client_id: str) -> Load:
        began, busy_before = time.perf_counter(), _busy_seconds(peer)
        done = quota_loads.requests(peer.port, client_id, SECONDS)
        busy.append((_busy_seconds(peer) - busy_before) / (time.perf_counter() - began) - idle)
        if url is not None:
            counted.append(_request_time(url, client_id))
        return done

    _with_quota(peer, f"asker-{turn}", "request_percentage", PERCENTAGE, load)
    return busy[0] * 100, counted[0] if counted else None


def _request_time(url: str, client_id: str) -> float:
    """The metric `request-time` of a client, in percent of the time of the event loop."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        text = response.read().decode()
    [value] = re.findall(rf'^kafka_server_request_request_time{{[^}}]*client_id="{client_id}"[^}}]*}} (\S+)$', text, re.MULTILINE)
    return float(value)


@contextmanager
def _undisturbed(pid: int) -> Iterator[None]:
    """No other process gets the processor while a thread of this one can run. Only root may do that; for another user the load of a machine
    is part of the figures."""
    _schedule(pid, os.SCHED_RR, 1)
    try:
        yield
    finally:
        _schedule(pid, os.SCHED_OTHER, 0)


def _schedule(pid: int, policy: int, priority: int) -> None:
    with suppress(PermissionError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))


def _busy_seconds(peer: Peer) -> float:
    """Of Apache Kafka's network and request threads; of our broker, which is one event loop."""
    tasks = Path(f"/proc/{peer.process.pid}/task")
    names = {task: (task / "comm").read_text().strip() for task in tasks.iterdir()}
    kafka = [task for task, name in names.items() if name.startswith(_NETWORK_AND_REQUEST_THREADS)]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in kafka or names) / 1e9


def _beside(peer: Peer, turn: int) -> float:
    client_id = f"wild-{turn}"
    quota_loads.set_quota(peer.port, client_id, "producer_byte_rate", WILD_RATE)
    command = [sys.executable, "-m", "benchmarks.quota_loads", str(peer.port), TOPIC, client_id, str(TEN_SECONDS + 4)]
    wild = subprocess.Popen(command, env=os.environ)
    try:
        time.sleep(2)  # it starts, and uses up what it may send at once
        return _p99(peer)
    finally:
        wild.kill()
        wild.wait()
        quota_loads.set_quota(peer.port, client_id, "producer_byte_rate", None)


def _p99(peer: Peer) -> float:
    """Of a client that other processes do not disturb either."""
    with _undisturbed(peer.process.pid), _undisturbed(os.getpid()):
        milliseconds = quota_loads.latencies(peer.port, _CALM_TOPIC, PAUSE_S, TEN_SECONDS)
    return sorted(milliseconds)[int(len(milliseconds) * 0.99)]
