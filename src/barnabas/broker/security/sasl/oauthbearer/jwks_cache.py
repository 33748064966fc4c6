"""The key set of sasl.oauthbearer.jwks.endpoint.url, read from a file or a URL and refreshed while the broker runs.

A URL must be in barnabas.sasl.oauthbearer.allowed.urls, and redirects are not followed: a setting must not make the broker call any
address.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from collections.abc import Callable
from concurrent.futures import Executor
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import jwt

from barnabas.broker.security.sasl.mechanism import MechanismSettings
from barnabas.broker.security.sasl.oauthbearer.key_set import InvalidKeySet, KeySet
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.config_def import InvalidConfig

ALLOWED_SETTING: Final = "barnabas.sasl.oauthbearer.allowed.urls"
KEY_SET_BYTES_MAX: Final = 1 << 20
START_ATTEMPTS: Final = 4
_TIMEOUT_S: Final = 10
_UNKNOWN_KEY_INTERVAL_MS: Final = 10_000  # the set is read again for an unknown key at most this often

_log = logging.getLogger(__name__)


class JwksCache:
    """`read` gets the text of the set and may block; it runs on `threads`."""

    def __init__(
        self,
        url: str,
        read: Callable[[], bytes],
        threads: Executor,
        monotonic_ms: Callable[[], int],
        refresh_ms: int,
        backoff: ExponentialBackoff,
    ) -> None:
        self._url = url
        self._read = read
        self._threads = threads
        self._monotonic_ms = monotonic_ms
        self._refresh_ms = refresh_ms
        self._backoff = backoff
        self._keys: KeySet | None = None
        self._read_ms = 0
        self._is_stale = asyncio.Event()

    def key(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """None for an unknown key, which may be a new one: then the set is read again, and a later attempt of the client succeeds."""
        key = None if self._keys is None else self._keys.key(key_id, algorithm)
        if key is None and self._monotonic_ms() >= self._read_ms + _UNKNOWN_KEY_INTERVAL_MS:
            self._is_stale.set()
        return key

    async def load(self) -> None:
        """Reads the set for the first time. Raises InvalidConfig."""
        for attempt in range(START_ATTEMPTS):
            try:
                await self._refresh()
                return
            except (OSError, ValueError, InvalidKeySet) as error:
                if attempt == START_ATTEMPTS - 1 or not isinstance(error, OSError):
                    raise InvalidConfig(
                        f"The key set of sasl.oauthbearer.jwks.endpoint.url, {self._url}, cannot be used: {error}. Without it no token can "
                        "be checked: correct the setting, or start the identity provider first"
                    ) from error
            await asyncio.sleep(self._backoff.backoff_ms(attempt) / 1000)

    async def keep_fresh(self) -> None:
        """Runs until it is cancelled. The old set stays in use while a new one cannot be read."""
        failures = 0
        while True:
            if failures:
                await asyncio.sleep(self._backoff.backoff_ms(failures - 1) / 1000)
            else:
                await self._wait()
            try:
                await self._refresh()
                failures = 0
            except (OSError, ValueError, InvalidKeySet) as error:
                failures += 1
                _log.warning("The key set %s could not be read again, the previous one stays in use: %s", self._url, error)

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._is_stale.wait(), self._refresh_ms / 1000)
        except TimeoutError:
            pass

    async def _refresh(self) -> None:
        self._is_stale.clear()
        self._read_ms = self._monotonic_ms()
        self._keys = KeySet.parse(await asyncio.get_running_loop().run_in_executor(self._threads, self._read))


def jwks_cache(settings: MechanismSettings, url: str) -> JwksCache:
    """Raises InvalidConfig for a URL that is neither a file nor allowed."""
    backoff = ExponentialBackoff(
        settings.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        settings.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        random=settings.random,
    )
    refresh_ms = settings.value("sasl.oauthbearer.jwks.endpoint.refresh.ms")
    read = _reader(url, settings.config.items(ALLOWED_SETTING))
    return JwksCache(url, read, settings.threads, settings.clock.monotonic_ms, refresh_ms, backoff)


def _reader(url: str, allowed: tuple[str, ...]) -> Callable[[], bytes]:
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return lambda: _of_file(Path(unquote(parts.path)))
    if parts.scheme not in ("http", "https"):
        raise InvalidConfig(f"sasl.oauthbearer.jwks.endpoint.url is {url}: it must begin with file:, https: or http:")
    if url not in allowed:
        raise InvalidConfig(
            f"sasl.oauthbearer.jwks.endpoint.url is {url}, which is not in {ALLOWED_SETTING}: add it there if the broker may call it"
        )
    return lambda: _of_url(url)


def _of_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(file.read(KEY_SET_BYTES_MAX + 1))


def _of_url(url: str) -> bytes:
    """Raises OSError, also for a response that is not HTTP or ends early: the next attempt may succeed."""
    opener = urllib.request.build_opener(_NoRedirects())
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as response:
            return _bounded(response.read(KEY_SET_BYTES_MAX + 1))
    except HTTPException as error:
        raise OSError(f"no HTTP response: {type(error).__name__}") from error


def _bounded(text: bytes) -> bytes:
    if len(text) > KEY_SET_BYTES_MAX:
        raise InvalidKeySet(f"it has more than {KEY_SET_BYTES_MAX} bytes")
    return text


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to an address that is not allowed."""

    def redirect_request(self, *_: Any) -> None:
        """None makes urllib raise the response as an error."""
