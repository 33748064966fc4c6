"""Transactions per second on three brokers next to three of Apache Kafka 3.9.1 (ZooKeeper) and 4.2 (KRaft), measured by turns in one run.

There are 16 clients and 12 partitions of three replicas, with `min.insync.replicas=2`. A transaction writes one record of 100 B to each
of three partitions, and the client begins the next one as soon as it has the response to EndTxn. Clients are librdkafka's, and bare
requests in the order of the Java client: with transaction version 1, which both versions of Apache Kafka support, and with version 2,
which only 4.2 supports. Clients, brokers and ZooKeeper share the cores, and the other clusters are idle. Every cluster has run each load
for a minute before: the JVM compiles code that runs for long, and its throughput is then several times that of the first seconds.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka

from benchmarks import cluster_peers
from benchmarks.cluster_peers import Trio
from benchmarks.report import Comparison, Figure
from tests import zookeeper
from tests.integration.cluster.wire_transactions import WireProducer

CLIENTS = 16
PARTITIONS = 12
STEP = 4  # to every fourth partition goes a record of a transaction
VALUE = b"v" * 100
SECONDS = 10
WARM_UP_SECONDS = 60
TIMEOUT_S = 60


@dataclass(frozen=True)
class Load:
    name: str
    committed: Callable[[Trio, str, float], int]  # topic, until when
    versions: tuple[str, ...]  # of Apache Kafka that know it


def run(megabytes: int, turns: int, seconds: float = SECONDS) -> list[Figure | Comparison]:
    del megabytes  # what is written is not counted in bytes
    with _three() as (ours, *others):
        compared = [(load, other, _comparison(load, other)) for load in LOADS for other in others if other.name in load.versions]
        for load in LOADS:
            for trio in (ours, *others):
                if trio is ours or trio.name in load.versions:
                    _a_second(trio, load, WARM_UP_SECONDS, "first")
        for turn in range(turns + 1):
            for load in LOADS:
                mine = _a_second(ours, load, seconds, turn)
                for each, other, comparison in compared:
                    if each is load:
                        theirs = _a_second(other, load, seconds, turn)
                        print(f"turn {turn}, {load.name}: {mine:.0f} to {theirs:.0f} of {other.name}", file=sys.stderr, flush=True)
                        if turn > 0:
                            comparison.ours.append(mine)
                            comparison.theirs.append(theirs)
    return [comparison for _, _, comparison in compared]


def _comparison(load: Load, other: Trio) -> Comparison:
    return Comparison(f"{CLIENTS} clients, {load.name}", "transactions/s", 1, other=other.name)


@contextmanager
def _three() -> Iterator[tuple[Trio, Trio, Trio]]:
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    try:
        with ExitStack() as stack:
            server = stack.enter_context(zookeeper.running(directory / "zookeeper"))
            older = stack.enter_context(cluster_peers.apache_kafka(directory, server.address))
            older.name = OLDER
            newer = stack.enter_context(cluster_peers.apache_kafka_raft(directory))
            yield stack.enter_context(cluster_peers.barnabas(directory, server.address)), older, newer
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _a_second(trio: Trio, load: Load, seconds: float, turn: int | str) -> float:
    topic = f"{load.name.replace(' ', '-').replace(',', '')}-{turn}"
    trio.create([topic], PARTITIONS)
    committed = load.committed(trio, topic, seconds)
    trio.delete([topic])
    return committed / seconds


def _partitions(client: int, transaction: int) -> list[int]:
    return [(client + transaction + first) % PARTITIONS for first in range(0, PARTITIONS, STEP)]


def _by_librdkafka(trio: Trio, topic: str, seconds: float) -> int:
    producers = [
        confluent_kafka.Producer({"bootstrap.servers": trio.bootstrap, "transactional.id": f"librdkafka-{number}", "linger.ms": 0})
        for number in range(CLIENTS)
    ]

    def commit_until(number: int, until: float) -> int:
        producer, count = producers[number], 0
        while time.perf_counter() < until:
            producer.begin_transaction()
            for partition in _partitions(number, count):
                producer.produce(topic, VALUE, partition=partition)
            producer.commit_transaction(TIMEOUT_S)
            count += 1
        return count

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda producer: producer.init_transactions(TIMEOUT_S), producers))
        until = time.perf_counter() + seconds
        return sum(pool.map(commit_until, range(CLIENTS), [until] * CLIENTS))


def _by_requests(transaction_version: int) -> Callable[[Trio, str, float], int]:
    async def commit(trio: Trio, topic: str, seconds: float) -> int:
        producers = [WireProducer(trio.bootstrap, f"wire-{number}", topic, transaction_version) for number in range(CLIENTS)]
        try:
            await asyncio.gather(*(producer.start() for producer in producers))
            until = time.perf_counter() + seconds
            return sum(await asyncio.gather(*(_commit_until(until, number, producer) for number, producer in enumerate(producers))))
        finally:
            for producer in producers:
                producer.close()

    return lambda trio, topic, seconds: asyncio.run(commit(trio, topic, seconds))


async def _commit_until(until: float, number: int, producer: WireProducer) -> int:
    count = 0
    while time.perf_counter() < until:
        await producer.transact(dict.fromkeys(_partitions(number, count), VALUE))
        count += 1
    return count


OLDER, NEWER = "Apache Kafka 3.9.1", "Apache Kafka 4.2"
LOADS = (
    Load("librdkafka", _by_librdkafka, (OLDER, NEWER)),
    Load("requests of transaction version 1", _by_requests(1), (OLDER, NEWER)),
    Load("requests of transaction version 2", _by_requests(2), (NEWER,)),
)
