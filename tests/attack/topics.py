"""Metadata requests with 40,000 names of topics that do not exist: a broker that creates topics for who asks would create them all."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from benchmarks.wire import Client
from tests.attack.wire import address, frame, send

NAMES = 40_000
REQUESTS = 40
VERSION = 9
TOPICS_MAX = 1_000  # burst and rate allow fewer in the time of the attack


async def attack(bootstrap: str) -> AsyncGenerator[None, None]:
    portion = NAMES // REQUESTS
    names = [[f"nobody-{number}-{index}" for index in range(portion)] for number in range(REQUESTS)]
    frames = [frame(MetadataRequest([MetadataRequestTopic(name=name) for name in each]), VERSION) for each in names]
    yield
    await send(bootstrap, frames, connections=4)
    with Client(*address(bootstrap)) as client:
        count = len(client.metadata(None).topics)
    assert count <= TOPICS_MAX, f"{count} topics were created"
