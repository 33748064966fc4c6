"""HTTP requests to a schema registry: one connection per request, with retries and fallback to the next address.

The caller caches responses, so requests are few and connections are not kept. A request blocks the serializing thread, but not longer than
the timeouts and retries allow. A response larger than any schema is rejected.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from barnabas.client.errors import SerializationError
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_WORTH_ANOTHER_TRY: Final = frozenset((408, 429, 500, 502, 503, 504))


class SchemaRegistryError(SerializationError):
    """An error of the registry with its status and error code; status 0 if no registry could be reached."""

    def __init__(self, message: str, http_status: int = 0, error_code: int = 0) -> None:
        super().__init__(f"{message}; error code: {error_code}" if error_code else message)
        self.http_status = http_status
        self.error_code = error_code


@dataclass(frozen=True)
class RestSettings:
    """The connection settings of registries. `authorization` returns the header's value for each request, so that tokens may change."""

    urls: tuple[str, ...]
    authorization: Callable[[], str | None] = lambda: None
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    timeout_s: float = 60.0
    max_retries: int = 3
    retries_wait_ms: int = 1000
    retries_max_wait_ms: int = 20_000


class RestClient:
    def __init__(self, settings: RestSettings, sleep: Callable[[float], None] = time.sleep, random: Random | None = None) -> None:
        self._settings = settings
        self._sleep = sleep
        self._random = random or Random()
        self._targets = [_Target(url) for url in settings.urls]
        self._first = 0  # the address that responded last

    def request(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """The JSON of the response. Raises SchemaRegistryError."""
        target_path = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        for attempt in range(self._settings.max_retries + 1):
            if attempt:
                self._sleep(self._wait_ms(attempt) / 1000)
            fault, last = self._try_all(method, target_path, payload)
            if not isinstance(fault, SchemaRegistryError):
                return fault
            if not last:
                break
        raise fault

    def _wait_ms(self, attempt: int) -> float:
        longest = min(self._settings.retries_max_wait_ms, self._settings.retries_wait_ms * 2 ** (attempt - 1))
        return self._random.uniform(0, longest)

    def _try_all(self, method: str, path: str, payload: bytes | None) -> tuple[Any, bool]:
        """A response, or the last error and whether a retry may help."""
        fault = SchemaRegistryError("No schema registry is configured: set schema.registry.url")
        for turn in range(len(self._targets)):
            index = (self._first + turn) % len(self._targets)
            target = self._targets[index]
            try:
                status, answer = self._once(target, method, path, payload)
            except (OSError, http.client.HTTPException) as error:
                fault = SchemaRegistryError(f"The schema registry at {target.shown} cannot be reached: {error or type(error).__name__}")
                continue
            if 200 <= status < 300:
                self._first = index
                return _json(answer, target), False
            fault = _refusal(status, answer, target)
            if status not in _WORTH_ANOTHER_TRY:
                return fault, False
        return fault, True

    def _once(self, target: _Target, method: str, path: str, payload: bytes | None) -> tuple[int, bytes]:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json; q=0.9", "Connection": "close", **self._settings.headers}
        authorization = target.authorization or self._settings.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        if payload is not None:
            headers["Content-Type"] = CONTENT_TYPE
        connection = target.connect(self._settings)
        try:
            connection.request(method, f"{target.path}/{path}", payload, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise SchemaRegistryError(f"The schema registry at {target.shown} answered with more than {ANSWER_BYTES_MAX} bytes")
            return response.status, answer
        finally:
            connection.close()


class _Target:
    """One address of a registry; it may contain user and password (https://user:password@host)."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise InvalidConfig(f"Invalid value {url} for configuration schema.registry.url: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidConfig(f"Invalid value {url} for configuration schema.registry.url: write it as http://host:port")
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port
        self.path = parts.path.rstrip("/")
        self.shown = f"{parts.scheme}://{self.host}{'' if port is None else f':{port}'}{self.path}"
        self.authorization = None if parts.username is None else basic(f"{unquote(parts.username)}:{unquote(parts.password or '')}")

    def connect(self, settings: RestSettings) -> http.client.HTTPConnection:
        if self.is_tls:
            context = settings.tls or ssl.create_default_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=settings.timeout_s, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=settings.timeout_s)


def basic(user_and_password: str) -> str:
    return "Basic " + base64.b64encode(user_and_password.encode()).decode()


def _json(answer: bytes, target: _Target) -> Any:
    try:
        return json.loads(answer) if answer else None
    except ValueError:
        raise SchemaRegistryError(f"{target.shown} answered with something that is not JSON; is it a schema registry?") from None


def _refusal(status: int, answer: bytes, target: _Target) -> SchemaRegistryError:
    try:
        details = json.loads(answer)
        return SchemaRegistryError(str(details["message"]), status, int(details["error_code"]))
    except (ValueError, KeyError, TypeError):
        return SchemaRegistryError(f"The schema registry at {target.shown} answered with HTTP status {status}", status)


def rest_settings(configs: Mapping[str, Any]) -> RestSettings:
    """The settings of Confluent's clients; each may also have the prefix `schema.registry.`."""

    def setting(name: str, default: Any = None) -> Any:
        value = configs.get(f"schema.registry.{name}")
        return value if value is not None else configs.get(name, default)

    url = configs.get("schema.registry.url")
    if not url:
        raise InvalidConfig('Missing required configuration "schema.registry.url" which has no default value.')
    urls = [address.strip() for address in url.split(",")] if isinstance(url, str) else list(url)
    prefix = "request.header."
    return RestSettings(
        urls=tuple(address for address in urls if address),
        authorization=_authorization(configs, setting),
        headers={name.removeprefix(prefix): str(value) for name, value in configs.items() if name.startswith(prefix)},
        tls=_tls(configs),
        timeout_s=int(setting("http.read.timeout.ms", 60_000)) / 1000,
        max_retries=int(setting("max.retries", 3)),
        retries_wait_ms=int(setting("retries.wait.ms", 1000)),
        retries_max_wait_ms=int(setting("retries.max.wait.ms", 20_000)),
    )


def _authorization(configs: Mapping[str, Any], setting: Callable[..., Any]) -> Callable[[], str | None]:
    bearer = setting("bearer.auth.credentials.source")
    if bearer is not None:
        token = setting("bearer.auth.token")
        if bearer != "STATIC_TOKEN" or not token:
            raise InvalidConfig(
                "bearer.auth.credentials.source must be STATIC_TOKEN, with bearer.auth.token a token or a function that gives one"
            )
        return lambda: f"Bearer {token() if callable(token) else token}"
    source = setting("basic.auth.credentials.source", "URL")
    user_info = setting("basic.auth.user.info")
    if source == "SASL_INHERIT":
        user_info = _client_credentials(configs)
    elif source == "USER_INFO" and not user_info:
        raise InvalidConfig("basic.auth.credentials.source is USER_INFO, so basic.auth.user.info must be set to name:password")
    elif source not in ("URL", "USER_INFO"):
        raise InvalidConfig(f"Invalid value {source} for configuration basic.auth.credentials.source: one of URL, USER_INFO, SASL_INHERIT")
    return lambda: basic(user_info) if user_info else None


def _client_credentials(configs: Mapping[str, Any]) -> str:
    """The user and password with which the client authenticates to brokers."""
    name, password = configs.get("sasl.username"), configs.get("sasl.password")
    jaas = configs.get("sasl.jaas.config")
    if name is None and jaas is not None:
        options = parse_jaas(str(jaas)).options
        name, password = options.get("username"), options.get("password")
    if not name or password is None:
        raise InvalidConfig(
            "basic.auth.credentials.source is SASL_INHERIT, so sasl.username and sasl.password, or sasl.jaas.config, must be set"
        )
    return f"{name}:{password}"


def _tls(configs: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The TLS context from PEM files, with the setting names of Kafka's clients."""
    trusted = configs.get("schema.registry.ssl.truststore.location") or configs.get("schema.registry.ssl.ca.location")
    own = configs.get("schema.registry.ssl.keystore.location") or configs.get("schema.registry.ssl.certificate.location")
    if trusted is None and own is None:
        return None
    try:
        context = ssl.create_default_context(cafile=os.fspath(trusted) if trusted else None)
        if own is not None:
            context.load_cert_chain(own, configs.get("schema.registry.ssl.key.location"), configs.get("schema.registry.ssl.key.password"))
    except OSError as error:
        raise InvalidConfig(f"schema.registry.ssl.…: {error}; these are files in PEM format") from error
    return context
