"""Runs a SASL exchange over a connection: SaslHandshake, then SaslAuthenticate until the exchange is complete.

The broker may return the lifetime of the session (KIP-368); the network client re-authenticates on the same connection before it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.client.errors import IllegalSaslState, SaslAuthentication, UnsupportedSaslMechanism, error_for
from barnabas.client.network.broker_versions import BrokerVersions
from barnabas.client.network.connection import Connection
from barnabas.client.network.sasl.mechanism import Mechanism
from barnabas.client.network.sasl.oauthbearer import OAuthBearer
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.protocol.registry import APIS

ROUNDS_MAX: Final = 10  # no mechanism here needs more than three


class SaslAuthenticator:
    """`make` creates the exchange for a connection to a host, with the current credentials."""

    def __init__(
        self, mechanism: str, make: Callable[[str], Awaitable[Mechanism]], close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.mechanism = mechanism
        self._make = make
        self._close = close

    async def authenticate(self, connection: Connection, versions: BrokerVersions, timeout_ms: int) -> int:
        """The lifetime of the session in milliseconds; 0 means unlimited. Raises AuthenticationError, Disconnected, Timeout."""
        mechanism = await self._make(connection.host)
        handshake = APIS[api_keys.SASL_HANDSHAKE]
        # Version 0 sends tokens without frames, which no client has used since Kafka 1.0.
        version = versions.choose(handshake.key, lowest=1)
        agreed = await connection.request(handshake, version, SaslHandshakeRequest(self.mechanism), timeout_ms)
        assert isinstance(agreed, SaslHandshakeResponse)
        self._check_agreed(agreed)
        return await self._exchange(connection, mechanism, versions.choose(api_keys.SASL_AUTHENTICATE), timeout_ms)

    async def close(self) -> None:
        if self._close is not None:
            await self._close()

    def _check_agreed(self, agreed: SaslHandshakeResponse) -> None:
        if agreed.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise UnsupportedSaslMechanism(
                f"Client SASL mechanism '{self.mechanism}' not enabled in the server, enabled mechanisms are {agreed.mechanisms}"
            )
        if agreed.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise IllegalSaslState(
                f"Unexpected handshake request with client mechanism {self.mechanism}, enabled mechanisms are {agreed.mechanisms}; "
                "does that listener want SASL? See security.protocol"
            )
        if agreed.error_code != 0:
            raise error_for(agreed.error_code)

    async def _exchange(self, connection: Connection, mechanism: Mechanism, version: int, timeout_ms: int) -> int:
        api = APIS[api_keys.SASL_AUTHENTICATE]
        words: bytes | None = mechanism.begin()
        for _ in range(ROUNDS_MAX):
            response = await connection.request(api, version, SaslAuthenticateRequest(words or b""), timeout_ms)
            assert isinstance(response, SaslAuthenticateResponse)
            if response.error_code != 0:
                raise self._refusal(response, mechanism)
            words = await asyncio.to_thread(mechanism.answer, response.auth_bytes)
            if mechanism.is_done and words is None:
                return response.session_lifetime_ms
        raise SaslAuthentication(f"The broker does not complete the {self.mechanism} exchange")

    def _refusal(self, response: SaslAuthenticateResponse, mechanism: Mechanism) -> Exception:
        reason = response.error_message or ""
        if isinstance(mechanism, OAuthBearer) and mechanism.refused is not None:
            reason = f"{reason} ({mechanism.refused})"
        if response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
            return SaslAuthentication(reason or f"Authentication with {self.mechanism} failed")
        return error_for(response.error_code, reason or None)
