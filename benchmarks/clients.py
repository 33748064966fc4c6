"""This project's clients next to the other Python clients, measured by turns in one run against one Barnabas broker: records of 100 bytes
to 4 partitions with `acks=all`, a linger of 5 ms and batches of 16 KB, then read back without a group.

Each client runs in its own process, produces as fast as its API accepts records and waits for all acknowledgements. Then it reads all
records, by polls of 500 records. `poll_arrow` returns the same records as Arrow batches, without an object for each.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import product

from barnabas import testing
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure, by_turns
from benchmarks.wire import Client

RECORDS = 200_000
FEWER_RECORDS = 40_000  # for clients that would take minutes
SLOW = {"kafka-python", "aiokafka"}
TOPIC = "clients"
PARTITIONS = 4
OURS = ("barnabas", "barnabas-async")
AIMS = {"kafka-python": 5.0, "aiokafka": 5.0, "confluent-kafka": 0.7}
ARROW = "barnabas-arrow"
ARROW_AIM = 1.0
NAMES = {"barnabas": "blocking", "barnabas-async": "asyncio", ARROW: "poll_arrow"}
PRODUCE, CONSUME = "produce", "consume"


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    started = Figure("barnabas.testing: from the call to an answered Metadata", "s", 0.3, smaller_is_better=True)
    by_turns(started, turns, _start_seconds)
    measured: dict[tuple[str, str], list[float]] = {}
    with peers.barnabas() as broker:
        with Client("127.0.0.1", broker.port) as client:
            client.create_topics([f"{TOPIC}-{name}" for name in (*OURS, *AIMS)], PARTITIONS)
        for turn in range(turns + 1):
            for name, doing in product((*OURS, *AIMS), (PRODUCE, CONSUME)):
                _measure(broker, name, doing, turn, measured)
            _measure(broker, ARROW, CONSUME, turn, measured)
    return [
        *(_comparison(ours, other, doing, aim, measured) for other, aim in AIMS.items() for doing in (PRODUCE, CONSUME) for ours in OURS),
        _comparison(ARROW, "confluent-kafka", CONSUME, ARROW_AIM, measured),
        started,
    ]


def _start_seconds() -> float:
    called = time.perf_counter()
    with testing.broker() as broker, Client(broker.host, broker.port) as client:
        client.metadata([])
        return time.perf_counter() - called


def _measure(broker: Peer, name: str, doing: str, turn: int, measured: dict[tuple[str, str], list[float]]) -> None:
    rate = _rate(broker, name, doing)
    if turn > 0:
        measured.setdefault((name, doing), []).append(rate)


def _comparison(ours: str, other: str, doing: str, aim: float, measured: dict[tuple[str, str], list[float]]) -> Comparison:
    name = f"{doing}, {NAMES[ours]}"
    return Comparison(name, "records/s", aim, measured[ours, doing], measured[other, doing], other=other)


def _rate(broker: Peer, name: str, doing: str) -> float:
    """Records a second, as the client's process says at its end."""
    count = FEWER_RECORDS if name in SLOW else RECORDS
    topic = f"{TOPIC}-{OURS[0] if name == ARROW else name}"
    command = [sys.executable, "-m", "benchmarks.client_loads", name, doing, broker.bootstrap, topic, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} could not {doing}: {done.stderr[-1000:]}")
    return float(done.stdout.split()[-1])
