"""The user and password of PLAIN and SCRAM: from a callable, from sasl.username and sasl.password, or from sasl.jaas.config."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from barnabas.client.config.config import ClientConfig
from barnabas.config_def import InvalidConfig
from barnabas.security.jaas import parse_jaas


@dataclass(frozen=True)
class SaslCredentials:
    username: str
    password: str = field(repr=False)
    token_auth: bool = False


def credentials(config: ClientConfig) -> Callable[[], Awaitable[SaslCredentials]]:
    """Called for each connection and re-authentication, so that a callable may change the credentials. Raises InvalidConfig."""
    handler = config.instance("sasl.client.callback.handler.class")
    if handler is not None:
        return lambda: _from_handler(handler)
    fixed = _fixed(config)

    async def give() -> SaslCredentials:
        return fixed

    return give


def _fixed(config: ClientConfig) -> SaslCredentials:
    username, password = config["sasl.username"], config["sasl.password"]
    if username is not None or password is not None:
        if username is None or password is None:
            raise InvalidConfig("sasl.username and sasl.password must be set together")
        return SaslCredentials(username, password)
    if config["sasl.jaas.config"] is None:
        raise InvalidConfig(
            f"sasl.mechanism {config['sasl.mechanism']} needs a user: set sasl.username and sasl.password, or sasl.jaas.config"
        )
    options = parse_jaas(config["sasl.jaas.config"]).options
    if "username" not in options or "password" not in options:
        raise InvalidConfig("sasl.jaas.config must have the options username and password")
    return SaslCredentials(options["username"], options["password"], options.get("tokenauth", "").lower() == "true")


async def _from_handler(handler: Callable[[], object]) -> SaslCredentials:
    result = await asyncio.to_thread(handler)  # in a thread, because it may block
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, SaslCredentials):
        return result
    if isinstance(result, tuple) and len(result) == 2:
        return SaslCredentials(str(result[0]), str(result[1]))
    raise InvalidConfig("sasl.client.callback.handler.class must return (username, password)")
