"""What security costs: authorization next to this broker without any, TLS and SASL next to Apache Kafka 4.2.0 with the same settings.

Both secured brokers have 1,000 ACLs, of which the authorizer consults those of the client; this broker without security has the same
listeners. For this comparison the broker has one core and the load generator the other: where the scheduler moves them, both figures double
or halve from turn to turn. A handshake is a new connection: TLS, the SASL exchange of SCRAM-SHA-256, and one Metadata; the client has
computed its salted password before. Everything runs on one machine, by turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import secured_peers
from benchmarks.broker import Load, generate
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.secured_peers import SecuredPeer
from benchmarks.wire import Client

LOAD = Load(1024, 16384, 1, 300)
SECONDS = 2
AUTHORIZATION_TURNS = 3  # of each turn, because the difference is small
HANDSHAKE_SECONDS = 5
OPEN = "Barnabas without security"


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    with secured_peers.barnabas() as ours:
        with secured_peers.without_authorizer() as without:
            authorization = _authorization(ours, without, turns)
        with secured_peers.apache_kafka() as theirs:
            return [*authorization, *_encryption(ours, theirs, turns), _handshakes(ours, theirs, turns)]


def _authorization(ours: SecuredPeer, without: SecuredPeer, turns: int) -> list[Comparison]:
    produce = Comparison(f"produce {LOAD}, {secured_peers.ACLS:,} ACLs", "MB/s", 0.97, other=OPEN)
    cpu = Comparison(f"{produce.name}: CPU of the broker", "µs a request", 1.03, smaller_is_better=True, other=OPEN)
    consume = Comparison(f"consume {LOAD}, {secured_peers.ACLS:,} ACLs", "MB/s", 0.97, other=OPEN)
    for turn in range(AUTHORIZATION_TURNS * turns + 1):
        pairs = ((ours.peer, produce.ours, cpu.ours, consume.ours), (without.peer, produce.theirs, cpu.theirs, consume.theirs))
        for peer, produced, computed, consumed in pairs if turn % 2 else reversed(pairs):
            with _a_core_each(peer):
                rates = _produce_and_consume(peer, peer.port, f"authorized-{turn}")
            if turn > 0:
                produced.append(rates.produced_mb_s)
                computed.append(rates.cpu_us)
                consumed.append(rates.consumed_mb_s)
    return [produce, cpu, consume]


def _encryption(ours: SecuredPeer, theirs: SecuredPeer, turns: int) -> list[Comparison]:
    produce = Comparison(f"produce {LOAD}, TLS", "MB/s", 1)
    consume = Comparison(f"consume {LOAD}, TLS", "MB/s", 1)
    for turn in range(turns + 1):
        for secured, produced, consumed in ((ours, produce.ours, consume.ours), (theirs, produce.theirs, consume.theirs)):
            tls = ("--tls", str(secured.authority))
            rates = _produce_and_consume(secured.peer, secured.ports["TLS"], f"encrypted-{turn}", *tls)
            if turn > 0:
                produced.append(rates.produced_mb_s)
                consumed.append(rates.consumed_mb_s)
    return [produce, consume]


def _handshakes(ours: SecuredPeer, theirs: SecuredPeer, turns: int) -> Comparison:
    rates = Comparison("SASL_SSL handshakes, SCRAM-SHA-256", "connections/s", 1)
    for turn in range(turns + 1):
        for secured, measured in ((ours, rates.ours), (theirs, rates.theirs)):
            rate = _handshake_rate(secured)
            if turn > 0:
                measured.append(rate)
    return rates


@dataclass(frozen=True)
class Rates:
    """`cpu_us` is the CPU time of the broker for each Produce."""

    produced_mb_s: float
    cpu_us: float
    consumed_mb_s: float


def _produce_and_consume(peer: Peer, port: int, name: str, *options: str) -> Rates:
    topic = f"{secured_peers.TOPIC_PREFIX}{name}"
    with Client("127.0.0.1", peer.port) as admin:
        admin.create_topics([topic], configs={"file.delete.delay.ms": "0"})
        before_s = peer.cpu_seconds()
        written = generate(port, "produce", topic, *LOAD.sizes, "--seconds", str(SECONDS), *options)
        cpu_us = (peer.cpu_seconds() - before_s) * 1_000_000
        records = int(written["records"])
        read = generate(port, "consume", topic, *LOAD.sizes, "--records", str(records), "--max-bytes", str(4 << 20), *options)
        admin.delete_topics([topic])
    return Rates(written["mb_s"], cpu_us * LOAD.batch_bytes / (records * LOAD.record_size), read["mb_s"])


@contextmanager
def _a_core_each(peer: Peer) -> Iterator[None]:
    """The broker runs on one core and the load generator, which inherits it from this process, on another."""
    cores = sorted(os.sched_getaffinity(0))
    _pin(peer.process.pid, cores[-1:])
    _pin(os.getpid(), cores[:-1] or cores)
    try:
        yield
    finally:
        _pin(peer.process.pid, cores)
        _pin(os.getpid(), cores)


def _pin(pid: int, cores: list[int]) -> None:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), cores)


def _handshake_rate(secured: SecuredPeer) -> float:
    command = [sys.executable, "-m", "benchmarks.handshakes", str(secured.ports["SASLTLS"]), str(secured.authority), str(HANDSHAKE_SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1500:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    rate: float = document["connections_s"]
    return rate
