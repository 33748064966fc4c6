"""The interface of SASL mechanisms on the broker's side: an exchange of messages without I/O.

A module of a mechanism has `mechanism(settings)`, which reads the settings once and returns a `Mechanism`. The listener calls `begin` for
each authentication.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.listeners import config_prefix
from barnabas.broker.security.credentials import Credentials


class SaslFailure(Exception):
    """The client is not authenticated. The text is for the broker's log; the client gets one that says nothing about the user. A
    mechanism that has a text for the client raises SaslAuthentication instead."""


class ServerExchange(Protocol):
    """One authentication. The attributes are valid when `is_complete`."""

    is_complete: bool
    authorization_id: str  # the user, without the type of the principal
    is_token: bool  # whether the client has authenticated with a delegation token
    credential_expires_ms: int | None  # wall time at which the credential ends; None: the session has no such end

    def evaluate(self, response: bytes) -> bytes:
        """The next challenge for the client. Raises SaslFailure or SaslAuthentication."""


class Mechanism(Protocol):
    """One mechanism of one listener."""

    blocks: bool  # whether `evaluate` may wait for a file or a server: then it is called in a thread

    def begin(self) -> ServerExchange:
        """A new exchange, with the current credentials."""

    async def start(self) -> None:
        """Called once, before the first exchange. Raises InvalidConfig if the mechanism cannot authenticate anybody."""

    async def close(self) -> None:
        """Called when the broker stops."""


@dataclass(frozen=True)
class MechanismSettings:
    """What a mechanism of a listener is made of."""

    name: str
    listener_name: str
    config: BrokerConfig
    credentials: Credentials
    clock: Clock
    random: Random
    threads: Executor  # for calls that wait for a file or a server
    secret: bytes = field(repr=False)  # of this broker, random: to answer unknown users like known ones

    def value(self, name: str) -> Any:
        """The value of a setting for the listener."""
        return self.config.for_listener(self.listener_name, name)

    @property
    def prefix(self) -> str:
        """Of the settings for the mechanism on the listener."""
        return f"{config_prefix(self.listener_name)}{self.name.lower()}."
