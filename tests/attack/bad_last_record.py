"""Batches of a megabyte, of the smallest records there are, of which only the last is wrong: all before it is looked at for nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.records.codecs.compression import NONE
from tests.attack import batches
from tests.attack.wire import create_topic, send

TOPIC, COMPACTED = "last-is-wrong", "last-has-no-key"
RECORDS = 100_000
TIMES = 10


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    create_topic(bootstrap, TOPIC)
    create_topic(bootstrap, COMPACTED, 1, {"cleanup.policy": "compact"})
    records = b"".join(batches.record(offset_delta=index) for index in range(RECORDS))
    damaged = batches.produce(TOPIC, [batches.batch(records[:-1] + b"\x7f", RECORDS, NONE)])
    keyed = b"".join(_keyed(index) for index in range(RECORDS - 1)) + batches.record(offset_delta=RECORDS - 1)
    keyless = batches.produce(COMPACTED, [batches.batch(keyed, RECORDS, NONE)])
    yield
    await send(bootstrap, [damaged, keyless] * TIMES, connections=2)


def _keyed(offset_delta: int) -> bytes:
    body = b"".join((b"\x00\x00", batches.varint(offset_delta), b"\x00\x01\x00"))
    return batches.varint(len(body)) + body
