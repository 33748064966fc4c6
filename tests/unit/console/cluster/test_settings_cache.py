"""Settings are kept for some seconds, and not beyond a change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.cluster.config_entries import Config, ConfigResource, ConfigResourceType
from barnabas.console.cluster.settings_cache import FRESH_MS, RESOURCES_MAX, SettingsCache
from barnabas.errors import KafkaError

BROKER = ConfigResource(ConfigResourceType.BROKER, "1")


class Clock:
    """The time of both clocks."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms

    def now_ms(self) -> int:
        return self.ms


class Admin:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[ConfigResource] = []
        self.fails = False

    async def describe_configs(self, resources: Iterable[ConfigResource], **_: Any) -> dict[ConfigResource, Config]:
        await asyncio.sleep(0)
        self.asked += resources
        if self.fails:
            raise KafkaError("no answer")
        return {resource: Config() for resource in resources}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.fixture
def cache(admin: Admin, clock: Clock) -> SettingsCache:
    return SettingsCache(cast(AsyncAdmin, admin), clock)


def test_a_broker_is_asked_once_in_ten_seconds(cache: SettingsCache, admin: Admin, clock: Clock) -> None:
    async def look() -> None:
        read_ms = (await cache.of(BROKER)).read_ms
        clock.ms += FRESH_MS - 1
        assert (await cache.of(BROKER)).read_ms == read_ms
        clock.ms += 1
        assert (await cache.of(BROKER)).read_ms == clock.ms

    asyncio.run(look())
    assert admin.asked == [BROKER, BROKER]


def test_visitors_who_look_at_the_same_time_share_one_request(cache: SettingsCache, admin: Admin) -> None:
    async def look() -> None:
        first, second = await asyncio.gather(cache.of(BROKER), cache.of(BROKER))
        assert first is second

    asyncio.run(look())
    assert admin.asked == [BROKER]


def test_nothing_is_kept_after_a_change_until_all_brokers_know_it(cache: SettingsCache, admin: Admin, clock: Clock) -> None:
    async def look() -> None:
        await cache.of(BROKER)
        cache.forget()
        await cache.of(BROKER)
        await cache.of(BROKER)
        clock.ms += FRESH_MS
        await cache.of(BROKER)
        await cache.of(BROKER)

    asyncio.run(look())
    assert len(admin.asked) == 4


def test_an_error_is_not_kept(cache: SettingsCache, admin: Admin) -> None:
    async def look() -> None:
        admin.fails = True
        with pytest.raises(KafkaError):
            await cache.of(BROKER)
        admin.fails = False
        await cache.of(BROKER)

    asyncio.run(look())
    assert len(admin.asked) == 2


def test_the_number_of_resources_is_bounded(cache: SettingsCache, admin: Admin) -> None:
    async def look() -> None:
        for number in range(RESOURCES_MAX + 1):
            await cache.of(ConfigResource(ConfigResourceType.TOPIC, f"topic-{number}"))
        await cache.of(ConfigResource(ConfigResourceType.TOPIC, f"topic-{RESOURCES_MAX}"))
        await cache.of(ConfigResource(ConfigResourceType.TOPIC, "topic-0"))

    asyncio.run(look())
    assert len(admin.asked) == RESOURCES_MAX + 2
