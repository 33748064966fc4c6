# Compiled by mypyc: src/compiled.toml lists this module.
"""Gives each connection its session before its first request is handled.

A connection without SASL gets its session with its first request. On a SASL listener the first requests are the authentication itself, and
the session exists when it has succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from barnabas.broker.security.principal_builder import AuthenticationContext, PrincipalBuilder
from barnabas.broker.security.session import Session
from barnabas.endpoint import SecurityProtocol
from barnabas.network.exchange import Exchange, Peer
from barnabas.security.errors import AuthenticationError
from barnabas.security.principal import ANONYMOUS


class ListenerAuthentication(Protocol):
    """The authentication of the connections of one listener."""

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        """Whether the connection has a session and the request is to be handled. If not, this object answers the exchange."""


class NoSasl:
    """A listener without SASL: every connection is admitted, with the principal of its certificate if it has one."""

    def __init__(self, security_protocol: SecurityProtocol, builder: PrincipalBuilder) -> None:
        self._security_protocol = security_protocol
        self._builder = builder

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        connection = exchange.connection
        context = AuthenticationContext(
            self._security_protocol, connection.listener_name, connection.remote_ip, peer_certificate(connection)
        )
        connection.session = Session(self._builder.build(context), connection.remote_ip)
        return True


class Anonymous:
    """Every connection is admitted and anonymous: for a dispatcher without listeners, as in tests."""

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        connection = exchange.connection
        connection.session = Session(ANONYMOUS, connection.remote_ip)
        return True


class Authentication:
    """`by_listener` has every listener of the broker: a connection of any other is closed. None: every client is anonymous."""

    __slots__ = ("_anonymous", "_by_listener")

    def __init__(self, by_listener: Mapping[str, ListenerAuthentication] | None) -> None:
        self._by_listener: Mapping[str, ListenerAuthentication] = by_listener or {}
        self._anonymous: ListenerAuthentication | None = Anonymous() if by_listener is None else None

    def admits(self, exchange: Exchange, frame: bytes) -> bool:
        """Called for each request of a connection that has no session yet, or whose session may have to be renewed."""
        listener_name = exchange.connection.listener_name
        authentication = self._anonymous or self._by_listener.get(listener_name)
        if authentication is None:
            raise AuthenticationError(f"Listener {listener_name} has no authentication")
        return authentication.admits(exchange, frame)


def peer_certificate(connection: Peer) -> bytes | None:
    """The DER certificate that the client has shown and the broker has verified; None without TLS or without a certificate."""
    tls = connection.extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(True)
    return certificate if isinstance(certificate, bytes) else None
