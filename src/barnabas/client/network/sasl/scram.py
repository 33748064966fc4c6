"""SCRAM (RFC 5802, RFC 7677): proves the password without sending it, and verifies that the broker knows it too."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import Final

from barnabas.client.errors import SaslAuthentication

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 1_000_000  # a bound on the work that a malicious broker can cause

_GS2_HEADER: Final = "n,,"  # no channel binding, no authorization id
_SERVER_FIRST: Final = re.compile(r"(?:m=[^,]*,)?r=([^,]+),s=([A-Za-z0-9+/=]+),i=([0-9]{1,10})(?:,.*)?")
_SERVER_FINAL: Final = re.compile(r"(?:e=([^,]+)|v=([A-Za-z0-9+/=]+))(?:,.*)?")


class Scram:
    """`token_auth`: user and password are the id and the HMAC of a delegation token."""

    def __init__(self, mechanism: str, username: str, password: str, *, token_auth: bool = False, nonce: str | None = None) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        extensions = ",tokenauth=true" if token_auth else ""
        self._first = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}{extensions}"
        self._server_signature: bytes | None = None
        self.is_done = False

    def begin(self) -> bytes:
        return (_GS2_HEADER + self._first).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "replace")
        if self._server_signature is None:
            return self._prove(text)
        self._check(text)
        self.is_done = True
        return None

    def _prove(self, server_first: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(server_first)
        if match is None:
            raise SaslAuthentication(f"Invalid SCRAM server first message format: {_refusal(server_first)}")
        nonce, salt, iterations = match[1], _decoded(match[2]), int(match[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslAuthentication("Invalid server nonce: does not start with client nonce")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise SaslAuthentication(
                f"Requested iterations {iterations} is less than the minimum {ITERATIONS_MIN} for {self._mechanism}, or more than "
                f"{ITERATIONS_MAX}"
            )
        without_proof = f"c={base64.b64encode(_GS2_HEADER.encode()).decode()},r={nonce}"
        message = f"{self._first},{server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, server_final: str) -> None:
        match = _SERVER_FINAL.fullmatch(server_final)
        if match is None:
            raise SaslAuthentication("Invalid SCRAM server final message format")
        if match[1] is not None:
            raise SaslAuthentication(f"Sasl authentication using {self._mechanism} failed with error: {match[1]}")
        assert self._server_signature is not None
        if not hmac.compare_digest(_decoded(match[2]), self._server_signature):
            raise SaslAuthentication("Invalid server signature in server final message: the broker does not know the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SaslAuthentication(f"Invalid base64 in a SCRAM message of the broker: {error}") from error


def _refusal(server_first: str) -> str:
    """The part of the message that may be shown."""
    return server_first[:100]
