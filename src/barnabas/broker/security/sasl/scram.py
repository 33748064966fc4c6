"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), for users and for delegation tokens (`tokenauth=true`).

A user or token that does not exist gets a challenge like any other, and fails in the last message like a wrong password.
"""

from __future__ import annotations

import base64
import hmac
from random import Random
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.sasl.callbacks import ScramHandler, load_handler
from barnabas.broker.security.sasl.mechanism import MechanismSettings, SaslFailure
from barnabas.broker.security.sasl.scram_messages import ClientFinal, ClientFirst
from barnabas.broker.security.sasl.server_jaas import server_jaas
from barnabas.security.errors import IllegalSaslState, SaslAuthentication
from barnabas.security.scram import ITERATIONS_MIN, SALT_BYTES, ScramCredential, digest, keyed_hash

KAFKAS_HANDLER: Final = "org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler"
_NONCE_BYTES: Final = 24
_OF_JAVA: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"  # a salt of Kafka's tools is a random number in base 36


class Scram:
    """`secret` makes the salts of unknown users: random to clients, and the same at each attempt. `handler` has the users instead of the
    metadata store, which still has the delegation tokens."""

    def __init__(
        self, name: str, credentials: Credentials, clock: Clock, random: Random, secret: bytes, handler: ScramHandler | None = None
    ) -> None:
        self.blocks = handler is not None
        self.name = name
        self.credentials = credentials
        self.clock = clock
        self.random = random
        self._secret = secret
        self._handler = handler

    def begin(self) -> ScramExchange:
        return ScramExchange(self)

    async def start(self) -> None:
        """Nothing to do: the users are in the metadata store."""

    async def close(self) -> None:
        if self._handler is not None:
            self._handler.close()

    def user(self, username: str) -> ScramCredential | None:
        """None also for a credential of fewer iterations than clients accept."""
        if self._handler is not None:
            credential = self._handler.credential(username)
        else:
            credential = self.credentials.user(self.name, username)
        return credential if credential is not None and credential.iterations >= ITERATIONS_MIN else None

    def is_password_of(self, credential: ScramCredential, password: str) -> bool:
        """Computes for some milliseconds; may be called on a thread."""
        computed = ScramCredential.of_password(self.name, password, credential.salt, credential.iterations)
        return hmac.compare_digest(computed.stored_key, credential.stored_key)

    def unknown(self, username: str) -> ScramCredential:
        """A credential for which no client has the password. Salt and iterations look like those of a user that exists."""
        example = self.credentials.example(self.name)
        size, iterations = (SALT_BYTES, ITERATIONS_MIN) if example is None else (len(example.salt), example.iterations)
        salt = hmac.digest(self._secret, f"salt {username}".encode(), "sha512")[:size]
        if example is not None and example.salt.isalnum():
            salt = bytes(_OF_JAVA[byte % len(_OF_JAVA)] for byte in salt)
        stored_key, server_key = (
            keyed_hash(self.name, self._secret, f"{part} {username}".encode()) for part in ("stored key", "server key")
        )
        return ScramCredential(salt, stored_key, server_key, max(iterations, ITERATIONS_MIN))


class ScramExchange:
    def __init__(self, mechanism: Scram) -> None:
        self._mechanism = mechanism
        self._first: ClientFirst | None = None
        self._credential: ScramCredential | None = None
        self._server_first = ""
        self._nonce = ""
        self._is_known = False
        self._is_over = False
        self.is_complete = False
        self.authorization_id = ""
        self.is_token = False
        self.credential_expires_ms: int | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self._is_over:
            raise IllegalSaslState("Unexpected challenge in Sasl server state COMPLETE")
        if self._first is None:
            return self._challenge(ClientFirst.parse(response))
        self._is_over = True
        return self._verify(self._first, ClientFinal.parse(response))

    def _challenge(self, first: ClientFirst) -> bytes:
        if first.authorization_id and first.authorization_id != first.username:
            raise SaslAuthentication("Authentication failed: Client requested an authorization id that is different from username")
        credential = self._token(first.username) if first.is_token else self._user(first.username)
        self._is_known = credential is not None
        unknown = self._mechanism.unknown(first.username)  # made for every user, so that the time of the answer says nothing either
        self._credential = credential = unknown if credential is None else credential
        self._first = first
        nonce = base64.b64encode(self._mechanism.random.randbytes(_NONCE_BYTES)).decode()
        self._nonce = first.nonce + nonce
        self._server_first = f"r={self._nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        return self._server_first.encode()

    def _user(self, username: str) -> ScramCredential | None:
        self.authorization_id = username
        return self._mechanism.user(username)

    def _token(self, token_id: str) -> ScramCredential | None:
        token = self._mechanism.credentials.token(self._mechanism.name, token_id)
        if token is None or token.expires_ms <= self._mechanism.clock.now_ms():
            return None
        self.authorization_id = token.owner.name
        self.is_token = True
        self.credential_expires_ms = token.expires_ms
        return token.credential

    def _verify(self, first: ClientFirst, final: ClientFinal) -> bytes:
        name, credential = self._mechanism.name, self._credential
        assert credential is not None
        if not hmac.compare_digest(final.nonce.encode(), self._nonce.encode()):
            raise SaslFailure("Invalid client nonce in the final client message.")
        if final.channel_binding != first.gs2_header.encode():
            raise SaslFailure("Invalid channel binding in the final client message.")
        message = f"{first.bare},{self._server_first},{final.without_proof}".encode()
        signature = keyed_hash(name, credential.stored_key, message)
        if len(final.proof) != len(signature):
            raise SaslFailure("Invalid client credentials")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        is_proved = hmac.compare_digest(digest(name, client_key), credential.stored_key)
        if not is_proved or not self._is_known:
            raise SaslFailure("Invalid client credentials")
        self.is_complete = True
        return f"v={base64.b64encode(keyed_hash(name, credential.server_key, message)).decode()}".encode()


def mechanism(settings: MechanismSettings) -> Scram:
    server_jaas(settings.config, settings.listener_name, settings.name)  # must be readable, and says nothing about the users
    handler = load_handler(settings, ScramHandler, KAFKAS_HANDLER)
    return Scram(settings.name, settings.credentials, settings.clock, settings.random, settings.secret, handler)
