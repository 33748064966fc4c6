"""Forty batches that unfold into 24 MB of small records each, which a producer could have sent: they are accepted, and no other waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import GZIP
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "large"
RECORDS = 240_000
VALUE = bytes(92)
BATCHES = 40
CONNECTIONS = 10


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC)
    records = b"".join(batches.record(VALUE, offset_delta=index) for index in range(RECORDS))
    large = batches.produce(TOPIC, [batches.batch(records, RECORDS, GZIP)])
    yield
    await send(bootstrap, [large] * BATCHES, connections=CONNECTIONS)
