"""What docs/clients.md says of other clients, compared with them. That its examples run is a test of tests/docs."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka import Producer as TheirProducer

from barnabas.client import Producer
from barnabas.testing import EmbeddedBroker, broker
from tests.documentation import python_blocks

DEADLINE_S = 30


@pytest.fixture
def kafka() -> Generator[EmbeddedBroker, None, None]:
    with broker(topics={"orders": 3}) as running:
        yield running


def test_the_partitioner_shown_puts_keys_where_confluent_kafka_puts_them(kafka: EmbeddedBroker) -> None:
    block = next(block for block in python_blocks("docs/clients.md") if "class ConsistentRandom" in block.source)
    names: dict[str, Any] = {}
    exec(block.source.partition("\nwith ")[0], names)
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
