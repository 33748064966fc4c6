# Compiled by mypyc: src/compiled.toml lists this module.
"""The identity of the client of one connection, after authentication.

`Connection.session` holds it. A listener without SASL makes it with the first request; a SASL listener when the exchange has succeeded, and
anew at each re-authentication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.client_host import client_host
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.security.authorizer.decision_cache import ClientDecisions


class Session:
    """`host` is the address of the client in Java's notation, as ACLs name it. `expires_ms` is in the broker's monotonic time; None: the
    session does not expire. `is_token` says that the client authenticated with a delegation token, and so may not create another.
    `decisions` are those of the authorizer about this principal and host."""

    __slots__ = ("decisions", "expires_ms", "host", "is_token", "mechanism", "principal")

    def __init__(
        self,
        principal: KafkaPrincipal,
        host: str,
        *,
        mechanism: str | None = None,
        expires_ms: int | None = None,
        is_token: bool = False,
    ) -> None:
        self.principal = principal
        self.host = client_host(host)
        self.mechanism = mechanism
        self.expires_ms = expires_ms
        self.is_token = is_token
        self.decisions: ClientDecisions | None = None

    def __repr__(self) -> str:
        return f"{self.principal} from {self.host}"


class RenewableSession(Session):
    """A session that expires. The client renews it by authenticating again on the same connection (KIP-368). It is a class of its own so
    that the requests of all other connections are not compared with the clock."""

    __slots__ = ("renewable_ms", "renewal")

    def __init__(
        self, principal: KafkaPrincipal, host: str, *, mechanism: str, expires_ms: int, is_token: bool = False, renewable_ms: int = 0
    ) -> None:
        super().__init__(principal, host, mechanism=mechanism, expires_ms=expires_ms, is_token=is_token)
        self.renewable_ms = renewable_ms  # monotonic time from which the next re-authentication may begin
        self.renewal: object = None  # the SaslExchange of the re-authentication in progress
