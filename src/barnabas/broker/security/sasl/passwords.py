"""Checks a name and a password that a client has sent in clear, as HTTP Basic authentication does, against the users of the SASL listeners.

The users are those of PLAIN and SCRAM of all SASL listeners. A SCRAM password costs some milliseconds of a processor, so its check runs on
a thread, and what a client can make the broker compute is bounded: checks run one after the other, a failed one is followed by a pause, and
few may wait. A password that was right is remembered by a keyed hash, so that a scraper is not checked at each scrape.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from barnabas.broker.security.sasl.listener import SaslListener
from barnabas.broker.security.sasl.mechanism import Mechanism, SaslFailure
from barnabas.broker.security.sasl.plain import Plain
from barnabas.broker.security.sasl.scram import Scram
from barnabas.security.errors import AuthenticationError
from barnabas.security.scram import ScramCredential

REMEMBERED_MAX: Final = 64
HANDLER_VALID_MS: Final = 60_000  # how long a password is remembered that a callback handler has verified
WAITING_MAX: Final = 8
FAILURE_PAUSE_MS: Final = 100  # at least: ten wrong passwords a second

_PASSWORD_MECHANISMS: Final = (Plain, Scram)


class TooManyChecks(Exception):
    """WAITING_MAX checks wait already."""


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """A mechanism of a listener whose passwords are accepted."""

    listener_name: str
    mechanism_name: str
    mechanism: Mechanism
    listener: SaslListener


@dataclass(frozen=True, slots=True)
class _Remembered:
    """`credential` is that of a SCRAM user of the metadata store: a changed password ends the memory. Others end at `until_ms`."""

    source: PasswordSource
    credential: ScramCredential | None
    until_ms: int


def password_sources(listeners: Mapping[str, SaslListener]) -> list[PasswordSource]:
    """PLAIN before SCRAM, because its check is cheap. Listeners that share the users of a SCRAM mechanism are one source."""
    sources: dict[object, PasswordSource] = {}
    for listener_name, listener in listeners.items():
        for name, mechanism in listener.config.mechanisms.items():
            if isinstance(mechanism, _PASSWORD_MECHANISMS):
                shared = (name, None) if isinstance(mechanism, Scram) and not mechanism.blocks else (name, listener_name)
                sources.setdefault(shared, PasswordSource(listener_name, name, mechanism, listener))
    return sorted(sources.values(), key=lambda source: isinstance(source.mechanism, Scram))


class Passwords:
    """`failure_delay_ms` is connection.failed.authentication.delay.ms. `threads` computes."""

    def __init__(
        self, sources: list[PasswordSource], threads: Executor, monotonic_ms: Callable[[], int], failure_delay_ms: int = FAILURE_PAUSE_MS
    ) -> None:
        self._sources = sources
        self._threads = threads
        self._monotonic_ms = monotonic_ms
        self._pause_s = max(failure_delay_ms, FAILURE_PAUSE_MS) / 1000
        self._secret = secrets.token_bytes(32)
        self._remembered: dict[bytes, _Remembered] = {}  # by the keyed hash of name and password; the one unused for longest is first
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def verify(self, username: str, password: str) -> PasswordSource | None:
        """The source of the user; None if there is no such user, or if that is not the password: both take the same time. Raises
        TooManyChecks."""
        key = self._key(username, password)
        source = self._recall(key, username)
        if source is not None:
            return source
        if self._waiting >= WAITING_MAX:
            raise TooManyChecks
        self._waiting += 1
        try:
            async with self._turn:
                source = self._recall(key, username) or await self._check(key, username, password)
                if source is None:
                    await asyncio.sleep(self._pause_s)
                return source
        finally:
            self._waiting -= 1

    async def _check(self, key: bytes, username: str, password: str) -> PasswordSource | None:
        loop = asyncio.get_running_loop()
        for source in self._sources:
            mechanism = source.mechanism
            credential: ScramCredential | None = None
            if isinstance(mechanism, Scram) and not mechanism.blocks:
                credential = mechanism.user(username)
                compared = credential or mechanism.unknown(username)
                is_right = await loop.run_in_executor(self._threads, mechanism.is_password_of, compared, password)
                is_right = is_right and credential is not None
            elif isinstance(mechanism, Scram):
                is_right = await loop.run_in_executor(self._threads, _is_scram, mechanism, username, password)
            elif mechanism.blocks:
                is_right = await loop.run_in_executor(self._threads, _is_plain, mechanism, username, password)
            else:
                is_right = _is_plain(mechanism, username, password)
            if is_right:
                if mechanism.blocks or credential is not None:
                    self._remember(key, _Remembered(source, credential, self._monotonic_ms() + HANDLER_VALID_MS))
                return source
        return None

    def _key(self, username: str, password: str) -> bytes:
        name = username.encode()
        return hmac.digest(self._secret, len(name).to_bytes(4, "big") + name + password.encode(), "sha256")

    def _recall(self, key: bytes, username: str) -> PasswordSource | None:
        known = self._remembered.pop(key, None)
        if known is None:
            return None
        mechanism = known.source.mechanism
        if known.credential is not None:
            is_valid = isinstance(mechanism, Scram) and mechanism.user(username) == known.credential
        else:
            is_valid = self._monotonic_ms() < known.until_ms
        if not is_valid:
            return None
        self._remembered[key] = known
        return known.source

    def _remember(self, key: bytes, known: _Remembered) -> None:
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[key] = known


def _is_plain(mechanism: Mechanism, username: str, password: str) -> bool:
    exchange = mechanism.begin()
    try:
        exchange.evaluate(f"\0{username}\0{password}".encode())
    except (AuthenticationError, SaslFailure):
        return False
    return exchange.is_complete and exchange.authorization_id == username


def _is_scram(mechanism: Scram, username: str, password: str) -> bool:
    """With a callback handler, which may wait for the credential."""
    credential = mechanism.user(username)
    is_right = mechanism.is_password_of(credential or mechanism.unknown(username), password)
    return is_right and credential is not None
