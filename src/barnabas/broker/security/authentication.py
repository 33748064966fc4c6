# Compiled by mypyc: src/compiled.toml lists this module.
"""Gives each connection its session before its first request is handled.

A connection without SASL gets its session with its first request. On a SASL listener the first requests are the authentication itself, and
the session exists when it has succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from barnabas.broker.security.session import Session
from barnabas.network.exchange import Exchange, Peer
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal


class ListenerAuthentication(Protocol):
    """The authentication of the connections of one listener."""

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        """Whether the connection has a session and the request is to be handled. If not, this object answers the exchange."""


class NoSasl:
    """A listener without SASL: every connection is admitted."""

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        connection = exchange.connection
        connection.session = Session(self._principal(connection), connection.remote_ip)
        return True

    def _principal(self, connection: Peer) -> KafkaPrincipal:
        return ANONYMOUS


class Authentication:
    """`by_listener` has the SASL listeners of the broker, and any other that does not use `NoSasl`."""

    __slots__ = ("_by_listener", "_others")

    def __init__(self, by_listener: Mapping[str, ListenerAuthentication]) -> None:
        self._by_listener = by_listener
        self._others: ListenerAuthentication = NoSasl()

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        """Called for each request of a connection that has no session yet, or whose session may have to be renewed."""
        return self._by_listener.get(exchange.connection.listener_name, self._others).admits(exchange, frame)
