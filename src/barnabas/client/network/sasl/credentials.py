"""Where the user and the password of PLAIN and SCRAM come from: a callable, sasl.username and sasl.password, or sasl.jaas.config."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from barnabas.client.config.config import ClientConfig
from barnabas.client.network.sasl.jaas import parse_jaas
from barnabas.config_def import InvalidConfig


@dataclass(frozen=True)
class Credentials:
    username: str
    password: str = field(repr=False)
    token_auth: bool = False


def credentials(config: ClientConfig) -> Callable[[], Awaitable[Credentials]]:
    """Asked for anew for each connection and re-authentication, so that a callable may change them. Raises InvalidConfig."""
    handler = config.instance("sasl.client.callback.handler.class")
    if handler is not None:
        return lambda: _asked(handler)
    fixed = _fixed(config)

    async def give() -> Credentials:
        return fixed

    return give


def _fixed(config: ClientConfig) -> Credentials:
    username, password = config["sasl.username"], config["sasl.password"]
    if username is not None or password is not None:
        if username is None or password is None:
            raise InvalidConfig("sasl.username and sasl.password must be set together")
        return Credentials(username, password)
    if config["sasl.jaas.config"] is None:
        raise InvalidConfig(
            f"sasl.mechanism {config['sasl.mechanism']} needs a user: set sasl.username and sasl.password, or sasl.jaas.config"
        )
    options = parse_jaas(config["sasl.jaas.config"]).options
    if "username" not in options or "password" not in options:
        raise InvalidConfig("sasl.jaas.config must have the options username and password")
    return Credentials(options["username"], options["password"], options.get("tokenauth", "").lower() == "true")


async def _asked(handler: Callable[[], object]) -> Credentials:
    given = await asyncio.to_thread(handler)  # it may well take its time
    if inspect.isawaitable(given):
        given = await given
    if isinstance(given, Credentials):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return Credentials(str(given[0]), str(given[1]))
    raise InvalidConfig("sasl.client.callback.handler.class must give (username, password)")
