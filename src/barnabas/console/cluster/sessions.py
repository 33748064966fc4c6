"""The sessions of all clusters and users, shared by all visits of the same user. One without a use for a while is closed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Final

from barnabas.console.cluster.session import ClusterSession
from barnabas.console.config import ClusterConfig

IDLE_MS: Final = 10 * 60_000
SESSIONS_MAX: Final = 100
_SWEEP_S: Final = 30

_log = logging.getLogger(__name__)
_Key = tuple[str, str | None, bytes]


class ClusterSessions:
    """Sessions by cluster, user and password: a user with an old password does not get the session of the new one."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._key = secrets.token_bytes(32)
        self._sessions: dict[_Key, ClusterSession] = {}
        self._used_ms: dict[_Key, int] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of_cluster(self, config: ClusterConfig) -> ClusterSession:
        """The session of all visitors of a cluster without a login."""
        return self._of((config.name, None, b""), lambda: ClusterSession(config))

    def of_user(self, config: ClusterConfig, user: str, password: str) -> ClusterSession:
        return self._of((config.name, user, self._digest(password)), lambda: ClusterSession(config, user, password))

    def forget(self, config_name: str, user: str, password: str) -> None:
        """Closes the session of a user whose last login has ended."""
        self._close((config_name, user, self._digest(password)))

    async def sweep(self) -> None:
        """Closes what is idle, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = self._monotonic_ms()
            for key in [key for key, used_ms in self._used_ms.items() if now - used_ms > IDLE_MS]:
                if not self._sessions[key].snapshots.is_watched:
                    self._close(key)

    async def close(self) -> None:
        for key in list(self._sessions):
            self._close(key)
        if self._closing:
            await asyncio.wait(self._closing, timeout=5)

    def _of(self, key: _Key, make: Callable[[], ClusterSession]) -> ClusterSession:
        session = self._sessions.get(key)
        if session is None:
            if len(self._sessions) >= SESSIONS_MAX:
                self._close(min(self._used_ms, key=self._used_ms.__getitem__))
            session = self._sessions[key] = make()
        self._used_ms[key] = self._monotonic_ms()
        return session

    def _close(self, key: _Key) -> None:
        session = self._sessions.pop(key, None)
        self._used_ms.pop(key, None)
        if session is not None:
            task = asyncio.ensure_future(_closed(session))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8", "surrogateescape"), hashlib.sha256)


async def _closed(session: ClusterSession) -> None:
    try:
        await session.close()
    except Exception as error:
        _log.warning("The session of %s to %s was not closed cleanly: %s", session.user, session.name, error)
