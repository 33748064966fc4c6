"""A network client for tests: settings as keyword arguments, started and closed by `async with`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

from barnabas.client.clock import Clock, SystemClock
from barnabas.client.config.common_config import common, finish
from barnabas.client.config.config import ClientConfig
from barnabas.client.loop_thread import new_event_loop
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.config_def import table

T = TypeVar("T")


def config_of(settings: dict[str, object]) -> ClientConfig:
    config = ClientConfig(table(common()), settings)
    finish(config)
    return config


@asynccontextmanager
async def network(bootstrap: str, *, clock: Clock | None = None, **settings: object) -> AsyncGenerator[NetworkClient, None]:
    """Settings are written with `_` for the dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = config_of({"bootstrap.servers": bootstrap, "client.id": "network-test"} | named)
    clock = clock or SystemClock()
    metadata = Metadata(config, clock=clock, random=Random(1))
    metrics = Metrics(clock, tags={"client-id": "network-test"})
    client = NetworkClient(config, metadata, clock=clock, metrics=metrics, random=Random(1))
    await client.start()
    try:
        yield client
    finally:
        await client.close()


def on_loop(
    test: Callable[..., Coroutine[Any, Any, T]],
    *arguments: Any,
    make_loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
    **keywords: Any,
) -> T:
    """Runs a test's coroutine on the loop that clients use, for a minute at most."""

    async def limited() -> T:
        async with asyncio.timeout(60):
            return await test(*arguments, **keywords)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(limited())
