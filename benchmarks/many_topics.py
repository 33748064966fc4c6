"""1,000 topics of 10 partitions on one broker with a limit of 20,000 open files: starting with them, describing them, producing to one."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import peers
from benchmarks.broker import generate
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import Client

TOPICS = 1000
PARTITIONS = 10
FILES_MAX = 20_000
_TOPICS_PER_REQUEST = 100


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    created = Figure(f"creating {TOPICS:,} topics of {PARTITIONS} partitions", "s", 60, smaller_is_better=True)
    started = Figure("starting with them, to the first answered Metadata", "s", 10, smaller_is_better=True)
    described = Figure("Metadata for all of them", "s", 0.5, smaller_is_better=True)
    opened = Figure("files open with all of them", "files", FILES_MAX, smaller_is_better=True)
    rate = Figure("produce 1 KB records to one of them, share of the rate with it alone", "", 0.9)
    with TemporaryDirectory(prefix="barnabas-bench-") as directory:
        data = Path(directory)
        with peers.barnabas(data, FILES_MAX) as peer:
            created.turns.append(_create(peer))
        for _ in range(turns):
            with peers.barnabas(data, FILES_MAX) as peer:
                started.turns.append(peer.start_seconds)
        with peers.barnabas(data, FILES_MAX) as crowded, peers.barnabas() as alone:
            described.turns.extend(_describe(crowded) for _ in range(turns))
            with Client("127.0.0.1", alone.port) as client:
                client.create_topics([_name(0)])
            for turn in range(turns + 1):
                rates = [generate(peer.port, "produce", _name(0), "--seconds", "4")["mb_s"] for peer in (crowded, alone)]
                if turn > 0:
                    rate.turns.append(rates[0] / rates[1])
            opened.turns.append(crowded.open_files())
    return [created, started, described, rate, opened]


def _name(number: int) -> str:
    return f"topic-{number:04}"


def _create(peer: Peer) -> float:
    began = time.perf_counter()
    with Client("127.0.0.1", peer.port) as client:
        for first in range(0, TOPICS, _TOPICS_PER_REQUEST):
            client.create_topics([_name(number) for number in range(first, first + _TOPICS_PER_REQUEST)], PARTITIONS)
    return time.perf_counter() - began


def _describe(peer: Peer) -> float:
    with Client("127.0.0.1", peer.port) as client:
        began = time.perf_counter()
        response = client.metadata(None)
        took = time.perf_counter() - began
    assert sum(len(topic.partitions) for topic in response.topics) >= TOPICS * PARTITIONS
    return took
