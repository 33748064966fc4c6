"""Batches for a topic with a codec of its own: each is opened, and compressed anew by the broker."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import LZ4
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "recompressed"
RECORDS = 60_000
TIMES = 10


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC, 1, {"compression.type": "gzip"})
    records = b"".join(batches.record(b"%d value " % index * 8, offset_delta=index) for index in range(RECORDS))
    large = batches.produce(TOPIC, [batches.batch(records, RECORDS, LZ4)])
    yield
    await send(bootstrap, [large] * TIMES, connections=2)
