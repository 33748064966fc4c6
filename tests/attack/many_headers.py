"""Batches of a few kilobytes, each with 300 records of 50,000 headers: every record could be honest, but all have 15 million headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import ZSTD
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC = "headers"
RECORDS, HEADERS = 300, 50_000
TIMES = 5


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC)
    records = b"".join(batches.record(headers=HEADERS, offset_delta=index) for index in range(RECORDS))
    bomb = batches.produce(TOPIC, [batches.batch(records, RECORDS, ZSTD)])
    yield
    await send(bootstrap, [bomb] * TIMES)
