"""What metrics cost: a broker whose metrics are scraped every second next to one without metrics, and a scrape of 10,000 partitions.

The brokers run on one machine and are measured by turns. `--before PATH` takes another checkout as the broker without metrics: the code
before a change, with its own virtual environment in `.venv` if it has one. p99 is that of Produce on the broker with 10,000 partitions,
while it is scraped every second and while it is not. The CPU time of the broker for each batch, scrapes included, changes less than the
rates if other programs run beside it.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.broker import generate
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import Client

BATCHES: Final = ((1024, 16_384), (100, 1024))  # the size of a record and of a batch, in bytes
SECONDS: Final = 4
LATENCY_SECONDS: Final = 10
TOPICS: Final = 1000
PARTITIONS: Final = 10
FILES_MAX: Final = 60_000
_TOPICS_PER_REQUEST: Final = 100
_SCRAPE_EVERY_S: Final = 1.0

before: Path | None = None  # the checkout of --before


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    with peers.measured() as (with_metrics, url), peers.without_metrics(before) as without:
        throughput = [figure for sizes in BATCHES for figure in _throughput(with_metrics, url, without, sizes, turns)]
    with peers.measured(FILES_MAX) as (crowded, url):
        _create(crowded)
        return [*throughput, _p99(crowded, url, turns), _scrape_time(url, turns)]


def _throughput(measured: Peer, url: str, without: Peer, sizes: tuple[int, int], turns: int) -> list[Comparison]:
    other = "Barnabas without metrics" if before is None else "the code before"
    what = f"{sizes[1] // 1024} KB batches of {sizes[0]} B records, scraped every second"
    figures = [
        figure
        for verb in ("produce", "fetch")
        for figure in (
            Comparison(f"{verb} {what}", "MB/s", 0.97, other=other),
            Comparison(f"{verb} {what}: CPU of the broker", "µs a batch", 1.03, smaller_is_better=True, other=other),
        )
    ]
    for turn in range(turns + 1):
        for peer in (measured, without) if turn % 2 else (without, measured):
            if peer is measured:
                with scraped(url):
                    rates = _rates(peer, f"metrics-{sizes[1]}-{turn}", sizes)
            else:
                rates = _rates(peer, f"metrics-{sizes[1]}-{turn}", sizes)
            if turn > 0:
                for comparison, rate in zip(figures, rates, strict=True):
                    (comparison.ours if peer is measured else comparison.theirs).append(rate)
    return figures


def _rates(peer: Peer, topic: str, sizes: tuple[int, int]) -> tuple[float, float, float, float]:
    """Of produce and of fetch: MB/s, and the CPU time of the broker for each batch in microseconds."""
    options = ("--record-size", str(sizes[0]), "--batch-bytes", str(sizes[1]))
    with Client("127.0.0.1", peer.port) as admin:
        admin.create_topics([topic], configs={"file.delete.delay.ms": "0"})
        before_s = peer.cpu_seconds()
        written = generate(peer.port, "produce", topic, *options, "--seconds", str(SECONDS))
        written_s = peer.cpu_seconds()
        records = int(written["records"])
        read = generate(peer.port, "consume", topic, *options, "--records", str(records), "--max-bytes", str(4 << 20))
        read_s = peer.cpu_seconds()
        admin.delete_topics([topic])
    us_a_batch = 1_000_000 * sizes[1] / (records * sizes[0])
    return written["mb_s"], (written_s - before_s) * us_a_batch, read["mb_s"], (read_s - written_s) * us_a_batch


def _p99(crowded: Peer, url: str, turns: int) -> Comparison:
    figure = Comparison(
        f"p99 of produce with {TOPICS * PARTITIONS:,} partitions, scraped every second",
        "ms",
        1.2,
        smaller_is_better=True,
        other="Barnabas while it is not scraped",
    )
    for turn in range(turns + 1):
        for is_scraped in (True, False) if turn % 2 else (False, True):
            if is_scraped:
                with scraped(url):
                    p99 = _latency(crowded)
            else:
                p99 = _latency(crowded)
            if turn > 0:
                (figure.ours if is_scraped else figure.theirs).append(p99)
    return figure


def _latency(peer: Peer) -> float:
    topic = f"latency-{time.monotonic_ns()}"
    with Client("127.0.0.1", peer.port) as admin:
        admin.create_topics([topic], configs={"file.delete.delay.ms": "0"})
        p99: float = generate(peer.port, "latency", topic, "--record-size", "100", "--seconds", str(LATENCY_SECONDS))["ack_p99_ms"]
        admin.delete_topics([topic])
    return p99


def _scrape_time(url: str, turns: int) -> Figure:
    figure = Figure(f"scrape of {TOPICS * PARTITIONS:,} partitions", "s", 0.5, smaller_is_better=True)
    for turn in range(turns + 1):
        began = time.perf_counter()
        size = scrape(url)
        took = time.perf_counter() - began
        assert size > TOPICS * PARTITIONS * 100
        if turn > 0:
            figure.turns.append(took)
    return figure


def _create(peer: Peer) -> None:
    with Client("127.0.0.1", peer.port) as client:
        for first in range(0, TOPICS, _TOPICS_PER_REQUEST):
            client.create_topics([f"topic-{number:04}" for number in range(first, first + _TOPICS_PER_REQUEST)], PARTITIONS)


def scrape(url: str) -> int:
    """The size of the text in bytes."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as response:
        return len(response.read())


@contextmanager
def scraped(url: str) -> Iterator[None]:
    """Scrapes every second, from another thread. Raises the error of a scrape at the end."""
    stopped = threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            while not stopped.is_set():
                scrape(url)
                stopped.wait(_SCRAPE_EVERY_S)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    if errors:
        raise errors[0]
