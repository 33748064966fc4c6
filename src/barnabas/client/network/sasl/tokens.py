"""Tokens of OAUTHBEARER: their sources, and their renewal before they expire.

A source returns a token: a callable of the user, an OAuth 2 endpoint (client credentials, or a signed assertion from a file), a file, or,
for tests, an unsigned token created from sasl.jaas.config. `TokenLogin` caches it, and gets the next one in time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import inspect
import json
import logging
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import SaslAuthentication
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas

_log = logging.getLogger(__name__)

EXTENSION_PREFIX: Final = "extension_"
CLAIM_PREFIX: Final = "unsecuredLoginStringClaim_"
TRIES_MAX: Final = 5
RESPONSE_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True)
class Token:
    """`expires_ms` is wall-clock time; None for a token without an expiry time, which is requested for each connection."""

    value: str = field(repr=False)
    expires_ms: int | None = None
    issued_ms: int | None = None


Source = Callable[[], Awaitable[Token]]


class TokenLogin:
    """Returns a valid token. The first call after most of its lifetime (sasl.login.refresh.*) starts to get the next one."""

    def __init__(self, config: ClientConfig, source: Source, clock: Clock, random: Random | None = None) -> None:
        self.extensions = _extensions(config)
        self._source = source
        self._clock = clock
        self._random = random or Random()
        self._factor: float = config["sasl.login.refresh.window.factor"]
        self._jitter: float = config["sasl.login.refresh.window.jitter"]
        self._buffer_ms: int = 1000 * config["sasl.login.refresh.buffer.seconds"]
        self._min_period_ms: int = 1000 * config["sasl.login.refresh.min.period.seconds"]
        self._backoff = ExponentialBackoff(
            config["sasl.login.retry.backoff.ms"], config["sasl.login.retry.backoff.max.ms"], random=self._random
        )
        self._token: Token | None = None
        self._refresh_at_ms = 0
        self._getting: asyncio.Task[Token] | None = None

    async def token(self) -> str:
        """The value of a valid token. Raises SaslAuthentication if none can be obtained."""
        now_ms = self._clock.now_ms()
        token = self._token
        if token is None or token.expires_ms is None or now_ms >= token.expires_ms:
            token = await asyncio.shield(self._get())
        elif now_ms >= self._refresh_at_ms:
            self._get()  # the old token is still valid
        return token.value

    async def close(self) -> None:
        if self._getting is not None:
            self._getting.cancel()
            await asyncio.gather(self._getting, return_exceptions=True)

    def _get(self) -> asyncio.Task[Token]:
        if self._getting is None or self._getting.done():
            self._getting = asyncio.get_running_loop().create_task(self._try())
            self._getting.add_done_callback(_retrieve_exception)
        return self._getting

    async def _try(self) -> Token:
        for attempt in range(TRIES_MAX):
            try:
                token = await self._source()
            except InvalidConfig:
                raise
            except Exception as error:
                _log.warning("Getting a token for OAUTHBEARER failed: %s", error)
                if attempt == TRIES_MAX - 1 or isinstance(error, SaslAuthentication):
                    raise SaslAuthentication(f"No token for OAUTHBEARER could be obtained: {error}") from error
                await asyncio.sleep(self._backoff.backoff_ms(attempt) / 1000)
            else:
                self._token = token
                self._refresh_at_ms = self._refresh_time(token)
                return token
        raise AssertionError("the last try raises")

    def _refresh_time(self, token: Token) -> int:
        """The refresh time: after most of the lifetime; at least the buffer before its end, unless the token is too short-lived; and not
        too soon."""
        now_ms = self._clock.now_ms()
        if token.expires_ms is None:
            return now_ms
        start_ms = token.issued_ms if token.issued_ms is not None else now_ms
        share = self._factor + self._jitter * self._random.random()
        wanted_ms = start_ms + int((token.expires_ms - start_ms) * share)
        if now_ms + self._min_period_ms + self._buffer_ms > token.expires_ms:
            return wanted_ms
        return max(min(wanted_ms, token.expires_ms - self._buffer_ms), now_ms + self._min_period_ms)


def token_source(config: ClientConfig, clock: Clock) -> Source:
    """The first source that the settings name; raises InvalidConfig if there is none."""
    handler = config.instance("sasl.login.callback.handler.class") or config.instance("sasl.oauthbearer.jwt.retriever.class")
    if handler is not None:
        return lambda: _from_handler(handler)
    url = config["sasl.oauthbearer.token.endpoint.url"]
    if url is not None:
        return _endpoint(config, url)
    jaas = config["sasl.jaas.config"]
    options = {} if jaas is None else parse_jaas(jaas).options
    if any(option.startswith(CLAIM_PREFIX) for option in options):
        return lambda: _unsecured(options, clock)
    raise InvalidConfig(
        "sasl.mechanism OAUTHBEARER needs a token: set sasl.login.callback.handler.class to a callable that gives one, "
        "or sasl.oauthbearer.token.endpoint.url"
    )


def token_of(text: str) -> Token:
    """A JWT with its own times; any other text is a token of unknown lifetime."""
    parts = text.strip().split(".")
    if len(parts) == 3:
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        except (ValueError, binascii.Error):
            claims = None
        if isinstance(claims, dict):
            return Token(text.strip(), _milliseconds(claims.get("exp")), _milliseconds(claims.get("iat")))
    return Token(text.strip())


def _milliseconds(seconds: object) -> int | None:
    return int(seconds * 1000) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else None


async def _from_handler(handler: Callable[[], object]) -> Token:
    result = await asyncio.to_thread(handler)  # in a thread, because it may block
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, Token):
        return result
    if isinstance(result, str):
        return token_of(result)
    if isinstance(result, tuple) and len(result) == 2:  # the form of confluent-kafka's oauth_cb: token, expiry in seconds
        return Token(str(result[0]), _milliseconds(result[1]))
    raise InvalidConfig("The callable for OAUTHBEARER tokens must return a str, (str, expiry in seconds) or a Token")


async def _unsecured(options: Mapping[str, str], clock: Clock) -> Token:
    """An unsigned token, as Java creates it for tests; brokers accept it only if they are configured to."""
    now_ms = clock.now_ms()
    life_ms = 1000 * int(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    claims: dict[str, Any] = {name[len(CLAIM_PREFIX) :]: value for name, value in options.items() if name.startswith(CLAIM_PREFIX)}
    claims |= {"iat": now_ms / 1000, "exp": (now_ms + life_ms) / 1000}
    header = _base64(json.dumps({"alg": "none"}))
    return Token(f"{header}.{_base64(json.dumps(claims))}.", now_ms + life_ms, now_ms)


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _endpoint(config: ClientConfig, url: str) -> Source:
    scheme = urllib.parse.urlsplit(url).scheme.lower()
    if scheme == "file":
        path = Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path))

        async def read() -> Token:
            return token_of(await asyncio.to_thread(path.read_text))

        return read
    if scheme not in ("http", "https"):
        raise InvalidConfig(f"The configured URL for the sasl.oauthbearer.token.endpoint.url, {url}, must be https://, http:// or file://")
    grant = _Grant(config, url)
    return grant.get


class _Grant:
    """Requests a token from an OAuth 2 endpoint: with the client's id and secret, or with a signed assertion."""

    def __init__(self, config: ClientConfig, url: str) -> None:
        jaas = config["sasl.jaas.config"]
        options = {} if jaas is None else parse_jaas(jaas).options
        self._url = url
        self._client_id = config["sasl.oauthbearer.client.credentials.client.id"] or options.get("clientId")
        self._secret = config["sasl.oauthbearer.client.credentials.client.secret"] or options.get("clientSecret")
        self._scope = config["sasl.oauthbearer.scope"] or options.get("scope")
        self._urlencode: bool = config["sasl.oauthbearer.header.urlencode"]
        self._assertion = config["sasl.oauthbearer.assertion.file"]
        timeouts = (config["sasl.login.connect.timeout.ms"], config["sasl.login.read.timeout.ms"])
        self._timeout_s = max([timeout for timeout in timeouts if timeout], default=10000) / 1000
        if self._assertion is None and config["sasl.oauthbearer.assertion.private.key.file"] is not None:
            raise InvalidConfig(
                "Assertions are not signed here: sign one elsewhere and name it in sasl.oauthbearer.assertion.file, or set "
                "sasl.login.callback.handler.class to a callable that gives the token"
            )
        if self._assertion is None and (not self._client_id or not self._secret):
            raise InvalidConfig(
                "sasl.oauthbearer.token.endpoint.url needs sasl.oauthbearer.client.credentials.client.id and .client.secret"
            )

    async def get(self) -> Token:
        return await asyncio.to_thread(self._post)

    def _post(self) -> Token:
        request = urllib.request.Request(self._url, self._body(), self._headers(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                answer = json.loads(response.read(RESPONSE_BYTES_MAX))
        except urllib.error.HTTPError as error:
            with error:
                details = error.read(500).decode("utf-8", "replace")
            message = f"{self._url} answered {error.code}: {details}"
            # A client error is permanent; a server error may be temporary.
            raise (SaslAuthentication(message) if 400 <= error.code < 500 and error.code != 429 else OSError(message)) from error
        except ValueError as error:
            raise SaslAuthentication(f"{self._url} did not answer with JSON: {error}") from error
        value = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(value, str) or not value:
            raise SaslAuthentication(f"{self._url} answered without an access_token")
        return token_of(value)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", "Cache-Control": "no-cache"}
        if self._assertion is None:
            client_id, secret = str(self._client_id), str(self._secret)
            if self._urlencode:
                client_id, secret = urllib.parse.quote_plus(client_id), urllib.parse.quote_plus(secret)
            headers["Authorization"] = "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        return headers

    def _body(self) -> bytes:
        fields = {"grant_type": "client_credentials"}
        if self._assertion is not None:
            assertion = Path(self._assertion).read_text().strip()
            fields = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        if self._scope:
            fields["scope"] = self._scope
        return urllib.parse.urlencode(fields).encode()


def _extensions(config: ClientConfig) -> dict[str, str]:
    jaas = config["sasl.jaas.config"]
    options = {} if jaas is None else parse_jaas(jaas).options
    return {name[len(EXTENSION_PREFIX) :]: value for name, value in options.items() if name.startswith(EXTENSION_PREFIX)}


def _retrieve_exception(task: asyncio.Task[Token]) -> None:
    """Retrieves the exception, so that asyncio does not report it as never retrieved. The next caller gets an error of its own."""
    if not task.cancelled():
        task.exception()
