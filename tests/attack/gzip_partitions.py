"""One request with a small batch for each of 60 partitions, each of which unfolds into just less than a megabyte."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import GZIP
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "unfolding"
PARTITIONS = 60
VALUE_BYTES = 1_000_000
TIMES = 10


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC, PARTITIONS)
    small = batches.batch(batches.record(bytes(VALUE_BYTES)), 1, GZIP)
    yield
    await send(bootstrap, [batches.produce(TOPIC, [small] * PARTITIONS)] * TIMES, connections=2)
