"""A batch of a few kilobytes with one record of 45 million headers: opening it is cheap, walking over its headers is not."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import ZSTD
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "headers"
HEADERS = 45_000_000
TIMES = 5


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC)
    bomb = batches.produce(TOPIC, [batches.batch(batches.record(headers=HEADERS), 1, ZSTD)])
    yield
    await send(bootstrap, [bomb] * TIMES)
