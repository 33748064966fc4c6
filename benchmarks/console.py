"""The console before a broker with 1,000 topics of 10 partitions, 500 groups with a member each, and a topic of 100 million records.

A request is measured by the browser, from its first byte to the last byte of the response; meanwhile live pages are open and a producer
writes to all topics. The memory is that of the same console, through all requests and then some minutes of use (`--minutes`, 2): every
page, searches, downloads, live pages. Its last third is compared with its middle third.

Produce is that of the raw generator with and without five consoles by turns, each a process of its own with its overview and the live tail
of the topic open. The broker has a core of its own. On the other core the generator goes before the consoles, so that the figure is what
consoles cost the broker; its processor time for each MB is in the table too.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from barnabas.console.app import make_app
from barnabas.console.cluster.reader import NOT_YET
from barnabas.console.config import ClusterConfig, ConsoleConfig
from benchmarks import console_cluster, peers
from benchmarks.broker import generate
from benchmarks.console_cluster import LARGE, PARTITIONS, Traffic
from benchmarks.console_peer import Browser, ConsolePeer, console
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure, Latency
from benchmarks.wire import Client
from tests.soak.flatness import Bound, verdict

MEDIAN_MS: Final = 200
P99_MS: Final = 1000
ROWS_MS: Final = 1000
ROUNDS: Final = 20  # of all pages in a turn
SEARCHES: Final = 2  # of each kind in a turn
TURNS_MIN: Final = 5
CONSOLES: Final = 5
ABSENT: Final = "absent"  # no value has this word
PRODUCE_S: Final = 3
MEMORY_MAX_MB: Final = 120
MEMORY_BOUND: Final = Bound(0.02, 2)
WATCHED: Final = ("/overview/events", "/topics-events", "/groups-events")
BATCHES: Final = ((1024, 16_384), (100, 1024))  # the size of a record and of a batch, in bytes
WITHOUT: Final = "Barnabas without consoles"
_LOOKED: Final = re.compile(rb"looked at ([\d,]+) of ([\d,]+) offsets")
_ROW: Final = b'<td class="message-value">'
_READY_S: Final = 120.0
_LIVE: Final = ("events", "live", "download")  # what the addresses end with that are no pages
_DOWNLOAD_RECORDS: Final = 5_000
_SAMPLE_S: Final = 0.5
_NICENESS: Final = 19  # of consoles that share a core with the generator
_TOPIC: Final = console_cluster.topic(123)
_GROUP: Final = console_cluster.group(45)

minutes = 2.0  # of --minutes
large_records = console_cluster.LARGE_RECORDS


def run(megabytes: int, turns: int) -> list[Figure | Comparison | Latency]:
    turns = max(turns, TURNS_MIN)
    with ExitStack() as cleanup:
        directory = Path(cleanup.enter_context(TemporaryDirectory(prefix="barnabas-bench-")))
        peer, large = cleanup.enter_context(console_cluster.filled(directory, large_records))
        cleanup.enter_context(Traffic(peer))
        first, broker_id = _first_pages(peer, turns), _broker_id(peer)
        measured = cleanup.enter_context(console(peer.bootstrap))
        memory = cleanup.enter_context(Memory(measured))
        _await_sample(measured)
        pages = _pages(measured, broker_id, turns)
        searches = Searches(measured.browser(), large)
        found = searches.measured(turns)
        _use(measured, broker_id, searches)
        used = memory.figures()
    return [*_produce(turns), first, *pages, *found, *used]


# -- pages


def _first_pages(peer: Peer, turns: int) -> Latency:
    """Of consoles that have just started: nothing of the cluster is known yet."""
    latency = Latency("the first page of a console that has just started", P99_MS, P99_MS)
    for turn in range(turns + 1):
        with console(peer.bootstrap) as fresh:
            took, body = fresh.browser().timed("/")
            assert b"topics" in body
            if turn > 0:
                latency.times.append(took)
    return latency


def _pages(measured: ConsolePeer, broker_id: int, turns: int) -> list[Latency]:
    """Each page of the console, one after the other, again and again."""
    paths = page_paths(broker_id)
    latencies = {pattern: Latency(pattern, MEDIAN_MS, P99_MS) for pattern in paths}
    browser = measured.browser()
    with measured.live(WATCHED):
        for number in range((turns + 1) * ROUNDS):
            for pattern, path in paths.items():
                took, _ = browser.timed(path)
                if number >= ROUNDS:
                    latencies[pattern].times.append(took)
    browser.close()
    together = Latency("all pages together", MEDIAN_MS, P99_MS, [took for latency in latencies.values() for took in latency.times])
    return [together, *latencies.values()]


def page_paths(broker_id: int) -> dict[str, str]:
    """An address for each page of the console, by the pattern of its route. A page that is new has to be measured too."""
    cluster = ClusterConfig("local", {"bootstrap.servers": "localhost:9092"})
    routes = make_app(ConsoleConfig((cluster,))).state.routes
    values = {"partition": "3", "offset": "7", "name": _TOPIC}
    paths: dict[str, str] = {}
    for route in routes:
        if route.method != "GET" or route.path.endswith(_LIVE) or route.path == "/login":
            continue
        own = {
            **values,
            **({"name": _GROUP} if route.path.startswith("/groups/") else {}),
            "id": {"brokers": str(broker_id), "pipelines": console_cluster.QUERY_ID}.get(
                route.segments[0], console_cluster.TRANSACTIONAL_ID
            ),
        }
        paths[route.path] = route.path.format(**{name: quote(value, safe="") for name, value in own.items()})
    return paths


def _await_sample(measured: ConsolePeer) -> None:
    """Until groups and log directories were read for the first time."""
    browser, until = measured.browser(), time.monotonic() + _READY_S
    while NOT_YET.encode() in browser.get("/groups") or NOT_YET.encode() in browser.get("/"):
        if time.monotonic() > until:
            raise RuntimeError(f"The console has not read the cluster within {_READY_S:.0f} s")
        time.sleep(0.1)
    browser.close()


def _broker_id(peer: Peer) -> int:
    with Client("127.0.0.1", peer.port) as client:
        broker_id: int = client.metadata([]).brokers[0].node_id
    return broker_id


# -- searches in the large topic


class Page(NamedTuple):
    """The answer to a search: its time, how many offsets it says that it has looked at, and whether it has rows."""

    took_ms: float
    looked: int
    has_rows: bool


class Searches:
    """Searches that begin somewhere else each time."""

    def __init__(self, browser: Browser, large: console_cluster.LargeTopic) -> None:
        self._browser = browser
        self._large = large
        self._chance = random.Random(22)

    def measured(self, turns: int) -> list[Latency | Figure]:
        """The time of each kind. Every page says how far it has looked."""
        kinds = {name: Latency(f"{self._large.records:,} records, {name}", ROWS_MS, ROWS_MS) for name in self.queries()}
        looked = Figure("offsets that a page with a filter that nothing matches has looked at", "offsets", 10_000)
        without = Figure("pages without rows although some match", "", 0, smaller_is_better=True)
        for turn in range(turns + 1):
            empty = 0
            for _ in range(SEARCHES):
                for name, query in self.queries().items():
                    page = self.search(query)
                    is_absent = ABSENT in query.get("filter", "")
                    empty += not page.has_rows and not is_absent
                    if turn > 0:
                        kinds[name].times.append(page.took_ms)
                        looked.turns += [page.looked] if is_absent else []
            if turn > 0:
                without.turns.append(empty)
        return [*kinds.values(), looked, without]

    def search(self, query: dict[str, str]) -> Page:
        """Raises RuntimeError if the page does not say how far it has looked."""
        took_ms, body = self._browser.timed(f"/topics/{LARGE}/messages?{urlencode(query)}")
        looked = _LOOKED.search(body)
        if looked is None:
            raise RuntimeError(f"The page of {query} does not say how far it has looked")
        return Page(took_ms, int(looked[1].replace(b",", b"")), _ROW in body)

    def queries(self) -> dict[str, dict[str, str]]:
        offset = self._chance.randrange(self._large.records // PARTITIONS - 1000)
        moment = self._chance.randrange(self._large.first_ms, self._large.end_ms - 10_000)
        partition = str(self._chance.randrange(PARTITIONS))
        at_offset = {"start": "offset", "offset": str(offset)}
        return {
            "newest first": {},
            "from the beginning": {"start": "beginning"},
            "at an offset": at_offset,
            "at an offset of one partition": {**at_offset, "partition": partition},
            "at a time": {"start": "time", "time": str(moment)},
            "a text in one of 10,000, newest first": {"filter": console_cluster.RARE},
            "a text in one of 10,000, at a time": {"filter": console_cluster.RARE, "start": "time", "time": str(moment)},
            "a JSON path": {"kind": "path", "filter": "$.total > 990"},
            "an expression": {"kind": "expression", "filter": 'value["total"] > 990 and value["state"] == "paid"', **at_offset},
            "a text that is nowhere": {"filter": ABSENT},
            "an expression that nothing matches": {"kind": "expression", "filter": f'value["state"] == "{ABSENT}"'},
        }


# -- memory


class Memory:
    """Samples of a console's memory, from its first page on."""

    def __init__(self, measured: ConsolePeer) -> None:
        self._measured = measured
        self._is_over = threading.Event()
        self._began = time.monotonic()
        self._samples: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def figures(self) -> list[Figure]:
        took = f"{(time.monotonic() - self._began) / 60:.0f} minutes of use"
        found = verdict("memory", self._samples, MEMORY_BOUND)
        highest = Figure(f"memory of the console, highest in {took}", "MB", MEMORY_MAX_MB, [max(self._samples)], smaller_is_better=True)
        most = found.middle * (1 + MEMORY_BOUND.share) + MEMORY_BOUND.units
        flat = Figure("memory of the console, last third", "MB", round(most, 1), [found.last], "the middle third", [found.middle], True)
        return [highest, flat]

    def _run(self) -> None:
        while not self._is_over.wait(_SAMPLE_S):
            self._samples.append(self._measured.memory_mb())


def _use(measured: ConsolePeer, broker_id: int, searches: Searches) -> None:
    """Every page, every search and a download of each format, again and again, beside live pages."""
    until = time.monotonic() + 60 * minutes
    paths, browser = list(page_paths(broker_id).values()), measured.browser()
    tails = [f"/topics/{_TOPIC}/messages/live", f"/topics/{LARGE}/messages/live"]
    formats = [name for name in ("jsonl", "csv", "parquet") if f'value="{name}"'.encode() in browser.get(f"/topics/{LARGE}/messages")]
    with measured.live([*WATCHED, *tails, f"/topics/{_TOPIC}/events", f"/groups/{_GROUP}/events"]):
        while time.monotonic() < until:
            for path in paths:
                browser.get(path)
            for query in searches.queries().values():
                searches.search(query)
            for name in formats:
                wanted = urlencode({"format": name, "records": _DOWNLOAD_RECORDS})
                assert len(browser.get(f"/topics/{LARGE}/messages/download?{wanted}")) > _DOWNLOAD_RECORDS
    browser.close()


# -- produce beside consoles


def _produce(turns: int) -> list[Comparison]:
    broker_cores, other_cores = _cores()
    with _pinned_to(broker_cores), ExitStack() as cleanup:
        peer = cleanup.enter_context(peers.barnabas())
        with _pinned_to(other_cores):
            return _by_turns(peer, turns)


def _by_turns(peer: Peer, turns: int) -> list[Comparison]:
    names = {sizes: f"{sizes[1] // 1024} KB batches of {sizes[0]} B records beside {CONSOLES} consoles" for sizes in BATCHES}
    rates = {sizes: Comparison(f"produce {name}", "MB/s", 0.95, other=WITHOUT) for sizes, name in names.items()}
    costs = {sizes: Comparison(f"processor time of the broker, {name}", "ms/MB", None, other=WITHOUT) for sizes, name in names.items()}
    for turn in range(turns + 1):
        for is_tailed in (True, False) if turn % 2 else (False, True):
            written = _written(peer, f"{turn}-{'tailed' if is_tailed else 'alone'}", is_tailed=is_tailed)
            for sizes, (rate, cost) in written.items() if turn > 0 else ():
                for comparison, value in ((rates[sizes], rate), (costs[sizes], cost)):
                    (comparison.ours if is_tailed else comparison.theirs).append(value)
    return [*rates.values(), *costs.values()]


def _written(peer: Peer, name: str, *, is_tailed: bool) -> dict[tuple[int, int], tuple[float, float]]:
    """MB/s, and ms of the broker's processor time for each MB, by the sizes of records and batches."""
    topics = {sizes: f"produced-{sizes[1]}-{name}" for sizes in BATCHES}
    with Client("127.0.0.1", peer.port) as admin:
        admin.create_topics(list(topics.values()), configs={"file.delete.delay.ms": "0"})
        with _tailing(peer, list(topics.values())) if is_tailed else ExitStack():
            written = {sizes: _rate(peer, topic, sizes) for sizes, topic in topics.items()}
        admin.delete_topics(list(topics.values()))
    return written


def _rate(peer: Peer, topic: str, sizes: tuple[int, int]) -> tuple[float, float]:
    before = peer.cpu_seconds()
    options = ("--record-size", str(sizes[0]), "--batch-bytes", str(sizes[1]), "--seconds", str(PRODUCE_S))
    written = generate(peer.port, "produce", topic, *options)
    megabytes = written["records"] * sizes[0] / 1e6
    return written["mb_s"], 1000 * (peer.cpu_seconds() - before) / megabytes


@contextmanager
def _tailing(peer: Peer, topics: list[str]) -> Iterator[None]:
    """Five consoles with an overview and a live tail of each topic. Every tail shows records; a busy machine may show them late."""
    tails = [f"/topics/{topic}/messages/live" for topic in topics]
    with ExitStack() as cleanup:
        consoles = [cleanup.enter_context(console(peer.bootstrap, _NICENESS)) for _ in range(CONSOLES)]
        pages = [page for one in consoles for page in cleanup.enter_context(one.live(["/overview/events", *tails]))]
        _await(lambda: all(page.events for page in pages))
        yield
        _await(lambda: all(page.events.get(b"prepend") for page in pages if page.path in tails))


def _await(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + _READY_S
    while not happened():
        if time.monotonic() > until:
            raise TimeoutError(f"A live page has shown nothing within {_READY_S:.0f} s")
        time.sleep(0.05)


def _cores() -> tuple[set[int], set[int]]:
    """Those of the broker and those of all others: the same if there is only one."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


@contextmanager
def _pinned_to(cores: set[int]) -> Iterator[None]:
    """What is started meanwhile runs on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
