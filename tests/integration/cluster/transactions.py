"""Sixteen transactional clients on three brokers: 12 partitions of three replicas, each client commits and begins again at once.

The clients are librdkafka's, which add partitions themselves and wait until the last transaction is complete (transaction version 1), this
project's, which leave that to the broker and begin the next transaction while the markers of the last one are being written (version 2,
KIP-890), and bare requests of version 2, which show every error code. Every second transaction begins with a commit of an offset, every
fifth is aborted. No client may get an error, and a reader of what was committed gets each record once, in order.
`python -m tests.integration.cluster.transactions --runs 20` is the long form.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import confluent_kafka

from barnabas.client import AsyncProducer, ConsumerGroupMetadata, TopicPartition
from barnabas.client.errors import KafkaError
from tests import cluster, zookeeper
from tests.chaos import topics
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.wire_transactions import WireError, WireProducer

LIBRDKAFKA, BARNABAS, WIRE = "librdkafka", "barnabas", "wire"
KINDS = (LIBRDKAFKA, BARNABAS, WIRE)
CLIENTS = 16
PARTITIONS = 12
STEP = 4  # a transaction writes to every fourth partition: three of them, each led by another broker
ABORTED_EVERY = 5
TOPIC, SOURCE = "written", "source"
TIMEOUT_S = 60


class Client:
    """What one client does, and what it was told. `transactions` are those that it has committed."""

    def __init__(self, kind: str, number: int) -> None:
        self.name = f"{kind}-{number}"
        self.kind = kind
        self.number = number
        self.transactions: list[int] = []
        self.errors: list[str] = []

    def partitions(self, transaction: int) -> list[int]:
        return [(self.number + transaction + first) % PARTITIONS for first in range(0, PARTITIONS, STEP)]

    def value(self, transaction: int) -> bytes:
        return f"{self.name} {transaction}".encode()

    def ended(self, transaction: int) -> None:
        if not is_aborted(transaction):
            self.transactions.append(transaction)

    @property
    def offset(self) -> int:
        """The last that it has committed of its partition of the source."""
        return max((transaction for transaction in self.transactions if has_offset(transaction)), default=-1)


def is_aborted(transaction: int) -> bool:
    return transaction % ABORTED_EVERY == ABORTED_EVERY - 1


def has_offset(transaction: int) -> bool:
    return transaction % 2 == 1


def transact_with_librdkafka(bootstrap: str, client: Client, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": client.name, "linger.ms": 0})
    reader = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": client.name})
    group = reader.consumer_group_metadata()
    reader.close()
    try:
        producer.init_transactions(TIMEOUT_S)
        for transaction in range(count):
            producer.begin_transaction()
            if has_offset(transaction):
                place = confluent_kafka.TopicPartition(SOURCE, client.number % PARTITIONS, transaction)
                producer.send_offsets_to_transaction([place], group, TIMEOUT_S)
            for partition in client.partitions(transaction):
                producer.produce(TOPIC, client.value(transaction), partition=partition)
            if is_aborted(transaction):
                producer.flush(TIMEOUT_S)
                producer.abort_transaction(TIMEOUT_S)
            else:
                producer.commit_transaction(TIMEOUT_S)
            client.ended(transaction)
    except confluent_kafka.KafkaException as error:
        client.errors.append(f"{client.name}, transaction {len(client.transactions)}: {error}")


async def transact_with_barnabas(bootstrap: str, client: Client, count: int) -> None:
    group = ConsumerGroupMetadata(client.name)
    try:
        async with AsyncProducer({"bootstrap.servers": bootstrap, "transactional.id": client.name}) as producer:
            await producer.init_transactions()
            for transaction in range(count):
                producer.begin_transaction()
                if has_offset(transaction):
                    place = {TopicPartition(SOURCE, client.number % PARTITIONS): transaction}
                    await producer.send_offsets_to_transaction(place, group)
                sent = [
                    await producer.send(TOPIC, client.value(transaction), partition=partition)
                    for partition in client.partitions(transaction)
                ]
                for each in sent:
                    await each
                if is_aborted(transaction):
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
                client.ended(transaction)
    except KafkaError as error:
        client.errors.append(f"{client.name}, transaction {len(client.transactions)}: {error!r}")


async def transact_by_requests(bootstrap: str, client: Client, count: int) -> None:
    producer = WireProducer(bootstrap, client.name, TOPIC, 2, client.name)
    try:
        await producer.start()
        for transaction in range(count):
            place = (SOURCE, client.number % PARTITIONS, transaction) if has_offset(transaction) else None
            values = dict.fromkeys(client.partitions(transaction), client.value(transaction))
            await producer.transact(values, place, commit=not is_aborted(transaction))
            client.ended(transaction)
    except WireError as error:
        client.errors.append(f"{client.name}, transaction {transaction}: {error}")
    finally:
        producer.close()


def transact(bootstrap: str, clients: Sequence[Client], count: int) -> None:
    """All at once: the clients of librdkafka on a thread each, the others on one loop."""

    async def ours() -> None:
        await asyncio.gather(
            *(transact_with_barnabas(bootstrap, client, count) for client in clients if client.kind == BARNABAS),
            *(transact_by_requests(bootstrap, client, count) for client in clients if client.kind == WIRE),
        )

    with ThreadPoolExecutor(len(clients) + 1) as pool:
        running = [pool.submit(transact_with_librdkafka, bootstrap, client, count) for client in clients if client.kind == LIBRDKAFKA]
        running.append(pool.submit(asyncio.run, ours()))
        for each in running:
            each.result()


def check(bootstrap: str, clients: Sequence[Client]) -> None:
    """No errors, each record of a committed transaction once and in order, none of an aborted one, and the offsets."""
    assert [error for client in clients for error in client.errors] == []
    values = topics.values(bootstrap, TOPIC, PARTITIONS, topics.COMMITTED)
    for client in clients:
        for partition in range(PARTITIONS):
            wanted = [
                client.value(transaction).decode() for transaction in client.transactions if partition in client.partitions(transaction)
            ]
            assert [value for value in values[partition] if value.startswith(f"{client.name} ")] == wanted
        assert topics.committed(bootstrap, client.name, SOURCE, PARTITIONS)[client.number % PARTITIONS] == client.offset


def is_in_sync(described: Description, topic: str) -> bool:
    return all(len(described.isr(topic, partition)) == 3 for partition in range(PARTITIONS))


def run(three: cluster.Cluster, kinds: Sequence[str], count: int) -> list[Client]:
    """So many transactions by each of the clients, which are of these kinds by turns."""
    described = Description(three.bootstrap)
    for topic in (TOPIC, SOURCE):
        described.create(topic, PARTITIONS)
        until(partial(is_in_sync, described, topic), f"{topic} is in sync")
    clients = [Client(kinds[number % len(kinds)], number) for number in range(CLIENTS)]
    transact(three.bootstrap, clients, count)
    check(three.bootstrap, clients)
    assert three.tracebacks() == []
    return clients


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.cluster.transactions")
    parser.add_argument("--runs", type=int, default=20, help="each with a cluster of its own")
    parser.add_argument("--transactions", type=int, default=150, help="by each client, in a run")
    given = parser.parse_args(arguments)
    mixes = [KINDS, *((kind,) for kind in KINDS)]
    for number in range(given.runs):
        kinds = mixes[number % len(mixes)]
        with tempfile.TemporaryDirectory(prefix="barnabas-transactions-") as name:
            directory = Path(name)
            (directory / "zookeeper").mkdir()
            with zookeeper.running(directory / "zookeeper") as ensemble, cluster.running(directory, ensemble.address) as three:
                began = time.monotonic()
                run(three, kinds, given.transactions)
                took = time.monotonic() - began
        print(
            f"run {number + 1}: {CLIENTS} clients of {' and '.join(kinds)}, {CLIENTS * given.transactions} transactions: {took:.1f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
