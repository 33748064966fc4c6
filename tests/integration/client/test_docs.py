"""What the pages show is run, block by block, as a newcomer would: each against a broker of its own, with some records in `orders`.

A block has what its page only speaks of: `handle` takes a record and ends the block, unless it asks `stopping()`, which is true once
something was handled or written. Addresses are those of the test; tests that a block defines are called, with Barnabas's fixtures.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka import Producer as TheirProducer

from barnabas.client import Admin, Consumer, OffsetSpec, Producer, TopicPartition
from barnabas.testing import EmbeddedBroker, broker
from tests import schema_registry
from tests.documentation import Block, python_blocks, unmarked_python

PAGES = ("docs/clients.md", "docs/testing.md", "docs/serializers.md", "README.md")
BLOCKS = [block for page in PAGES for block in python_blocks(page)]
DEADLINE_S = 30
PARTITIONS = 3
ORDERS = 30
every_page = pytest.mark.parametrize("page", PAGES)


class Enough(Exception):
    """The block has shown what it can: its loop would go on for ever."""


class Company:
    """What docs/serializers.md writes a serializer for."""


@pytest.fixture
def kafka() -> Generator[EmbeddedBroker, None, None]:
    with broker(topics={"orders": PARTITIONS, "invoices": 1}, group_initial_rebalance_delay_ms=0) as running:
        with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
            for number in range(ORDERS):
                producer.send("orders", b"%d apples" % number, partition=number % PARTITIONS)
        yield running


@pytest.fixture
def registry_url() -> Generator[str, None, None]:
    with schema_registry.running() as registry:
        yield registry.url


class World:
    """The names that blocks use and do not define."""

    def __init__(self, kafka: EmbeddedBroker, block: Block) -> None:
        self.kafka = kafka
        self.handled: list[tuple[Any, ...]] = []
        self._ends_at_first = "stopping()" not in block.source
        self._deadline = time.monotonic() + DEADLINE_S

    def names(self) -> dict[str, Any]:
        given = (self.handle, self.stopping, self.count_orders, self.send, self.read)
        return {"__name__": "shown", "Company": Company} | {function.__name__: function for function in given}

    def handle(self, *seen: Any) -> None:
        self.handled.append(seen)
        if self._ends_at_first:
            raise Enough

    def stopping(self) -> bool:
        assert time.monotonic() < self._deadline, "nothing was handled or written"
        return bool(self.handled) or self._end_of(TopicPartition("invoices", 0)) > 0

    def count_orders(self, bootstrap_servers: str) -> int:
        with Consumer[bytes, bytes](bootstrap_servers=bootstrap_servers) as consumer:
            partitions = [info.topic_partition for info in consumer.partitions_for("orders")]
            return sum(consumer.end_offsets(partitions).values())

    def send(self, bootstrap_servers: str, topic: str, value: bytes) -> None:
        with Producer(bootstrap_servers=bootstrap_servers) as producer:
            producer.send(topic, value).result(DEADLINE_S)

    def read(self, bootstrap_servers: str, topic: str) -> bytes | None:
        with Consumer[bytes, bytes](bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            return next(iter(consumer)).value

    def call(self, function: Any) -> None:
        fixtures = {"broker": self.kafka, "broker_topic": self.kafka.create_topic("of-one-test")}
        function(**{name: fixtures[name] for name in inspect.signature(function).parameters})

    def _end_of(self, partition: TopicPartition) -> int:
        with Admin(bootstrap_servers=self.kafka.bootstrap_servers) as admin:
            return admin.list_offsets({partition: OffsetSpec.latest()})[partition].offset


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.is_run], ids=str)
def test_what_is_shown_runs(block: Block, kafka: EmbeddedBroker, registry_url: str) -> None:
    world = World(kafka, block)
    names = world.names()
    source = block.source.replace("localhost:9092", kafka.bootstrap_servers).replace("http://localhost:8081", registry_url)
    try:
        exec(_compiled(block, source), names)
    except Enough:
        pass
    assert world.handled or "handle(" not in block.source
    for name, shown in list(names.items()):
        if name.startswith("test_"):
            world.call(shown)


@pytest.mark.parametrize("block", [block for block in BLOCKS if not block.is_run], ids=str)
def test_what_needs_more_than_a_broker_at_least_compiles(block: Block) -> None:
    _compiled(block, block.source)


@every_page
def test_no_python_hides_in_a_block_without_a_language(page: str) -> None:
    assert unmarked_python(page) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md"])
def test_the_page_shows_something(page: str) -> None:
    assert python_blocks(page)


def test_the_partitioner_shown_puts_keys_where_confluent_kafka_puts_them(kafka: EmbeddedBroker) -> None:
    block = next(block for block in BLOCKS if "class ConsistentRandom" in block.source)
    names: dict[str, Any] = {}
    exec(_compiled(block, block.source.partition("\nwith ")[0]), names)
    keys = [b"%d" % number for number in range(100)]
    expected: dict[bytes | None, int | None] = {}

    def written(_: object, message: Message) -> None:
        expected[message.key()] = message.partition()

    theirs = TheirProducer({"bootstrap.servers": kafka.bootstrap_servers})
    for key in keys:
        theirs.produce("orders", b"", key=key, on_delivery=written)
    assert theirs.flush(DEADLINE_S) == 0
    with Producer(bootstrap_servers=kafka.bootstrap_servers, partitioner_class=names["ConsistentRandom"]) as producer:
        sent = {key: producer.send("orders", b"", key=key) for key in keys}
        assert {key: delivery.result(DEADLINE_S).partition for key, delivery in sent.items()} == expected


def _compiled(block: Block, source: str) -> Any:
    """With the line numbers of the page."""
    return compile("\n" * (block.line - 1) + source, block.page, "exec")
