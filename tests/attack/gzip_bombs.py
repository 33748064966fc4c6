"""Sixty batches of 92 KB that unfold into 94 MB each, all at once: a second of CPU for every megabyte sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import GZIP
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "bombs"
VALUE_BYTES = 94_000_000
BOMBS = 60
CONNECTIONS = 10


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC)
    bomb = batches.produce(TOPIC, [batches.batch(batches.record(bytes(VALUE_BYTES)), 1, GZIP)])
    yield
    await send(bootstrap, [bomb] * BOMBS, connections=CONNECTIONS)
