"""Checks of passwords: what they accept, what they remember, and what a client cannot make the broker compute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, cast

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.sasl.passwords import WAITING_MAX, Passwords, PasswordSource, TooManyChecks
from barnabas.broker.security.sasl.scram import Scram
from barnabas.security.scram import ScramCredential

NAME = "SCRAM-SHA-256"


class Counting(Scram):
    """Counts the checks, and the users that it was asked for."""

    checks = 0

    def is_password_of(self, credential: ScramCredential, password: str) -> bool:
        self.checks += 1
        return super().is_password_of(credential, password)


class Scene:
    def __init__(self) -> None:
        self.credentials = Credentials()
        self.set("alice", "right")
        self.scram = Counting(NAME, self.credentials, Clock(), Random(1), b"secret")
        source = PasswordSource("EXTERNAL", NAME, self.scram, cast(Any, None))
        self.passwords = Passwords([source], ThreadPoolExecutor(1), Clock().monotonic_ms, 0)

    def set(self, user: str, password: str) -> None:
        self.credentials.set_user(NAME, user, ScramCredential.of_password(NAME, password, b"salt" * 4, 4096))

    async def accepts(self, user: str, password: str) -> bool:
        return await self.passwords.verify(user, password) is not None


async def test_a_right_password_is_computed_once_until_it_changes() -> None:
    scene = Scene()
    assert [await scene.accepts("alice", "right") for _ in range(5)] == [True] * 5
    assert scene.scram.checks == 1
    scene.set("alice", "other")
    assert (await scene.accepts("alice", "right"), await scene.accepts("alice", "other")) == (False, True)
    scene.credentials.set_user(NAME, "alice", None)
    assert not await scene.accepts("alice", "other")


async def test_an_unknown_user_costs_what_a_wrong_password_costs() -> None:
    scene = Scene()
    assert not await scene.accepts("nobody", "right")
    assert scene.scram.checks == 1
    assert not await scene.accepts("alice", "wrong")
    assert scene.scram.checks == 2


async def test_few_checks_wait_and_a_remembered_password_does_not() -> None:
    scene = Scene()
    assert await scene.accepts("alice", "right")
    waiting = [asyncio.ensure_future(scene.accepts("alice", f"wrong {number}")) for number in range(WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyChecks):
        await scene.accepts("alice", "another")
    assert await scene.accepts("alice", "right")
    assert await asyncio.gather(*waiting) == [False] * WAITING_MAX


def test_a_name_and_a_password_do_not_run_together() -> None:
    key: Callable[[str, str], bytes] = Scene().passwords._key
    assert key("ab", "c") != key("a", "bc")
