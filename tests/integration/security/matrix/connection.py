"""A connection to a broker that sends requests as messages, after SASL/PLAIN where it has a user."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.integration.transactions.wire import Connection

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 2


def password_of(user: str) -> str:
    return f"{user}-secret"


def connected(address: str, user: str | None) -> Connection:
    """Authenticated as the user; without a user the listener has to be a PLAINTEXT one."""
    connection = Connection(address)
    if user is not None:
        _accepted(connection.ask(SaslHandshakeRequest("PLAIN"), _HANDSHAKE_VERSION))
        token = f"\0{user}\0{password_of(user)}".encode()
        _accepted(connection.ask(SaslAuthenticateRequest(token), _AUTHENTICATE_VERSION))
    return connection


def _accepted(response: Any) -> None:
    assert response.error_code == 0, response
