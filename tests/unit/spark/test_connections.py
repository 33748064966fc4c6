"""The clients that a worker keeps from task to task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

import pytest

from pyspark_barnabas.connections import CLIENTS_MAX, IDLE_S_MAX, Client, ClientCache, Role


class Kept:
    """Takes the place of a client: it is only held and closed."""

    def __init__(self, settings: Mapping[str, str], role: Role) -> None:
        self.settings = settings
        self.role = role
        self.last_used = 0.0
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> ClientCache:
    return ClientCache(lambda settings, role: cast(Client, Kept(settings, role)), clock)


def is_closed(client: Client) -> bool:
    return cast(Kept, client).is_closed


def test_the_same_settings_get_the_same_client(cache: ClientCache) -> None:
    first = cache.acquire({"a": "1", "b": "2"}, "consumer")
    assert cache.acquire({"b": "2", "a": "1"}, "consumer") is first
    assert cache.acquire({"a": "1", "b": "3"}, "consumer") is not first
    assert cache.acquire({"a": "1", "b": "2"}, "producer") is not first


def test_what_is_not_used_for_long_is_closed_when_somebody_asks_again(cache: ClientCache, clock: Clock) -> None:
    idle, busy = cache.acquire({"a": "1"}, "consumer"), cache.acquire({"a": "2"}, "consumer")
    cache.release(idle)
    clock.now = IDLE_S_MAX + 1
    cache.acquire({"a": "3"}, "consumer")
    assert is_closed(idle)
    assert not is_closed(busy)


def test_there_are_never_more_than_a_few_unless_all_are_in_use(cache: ClientCache) -> None:
    kept = []
    for number in range(CLIENTS_MAX + 2):
        client = cache.acquire({"n": str(number)}, "consumer")
        cache.release(client)
        kept.append(client)
    assert [is_closed(client) for client in kept] == [True, True] + [False] * CLIENTS_MAX


def test_a_client_in_use_is_never_closed(cache: ClientCache) -> None:
    used = [cache.acquire({"n": str(number)}, "consumer") for number in range(CLIENTS_MAX + 2)]
    assert not any(map(is_closed, used))


def test_a_child_process_makes_its_own(cache: ClientCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cache.acquire({"a": "1"}, "consumer")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    second = cache.acquire({"a": "1"}, "consumer")
    assert second is not first
    assert not is_closed(first)
