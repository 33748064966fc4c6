"""SCRAM credentials (RFC 5802): the keys that a broker stores of a password, and Kafka's text form of them.

A broker never stores the password: it stores salt, iterations, the hash of the client key, and the server key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from barnabas.errors import IllegalArgument

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SALT_BYTES: Final = 16
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384  # of a stored credential; Kafka's bound, so that nobody can make a broker compute for long

_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """repr() shows the iterations only: with the keys a stolen credential can be attacked."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of_password(cls, mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
        return cls.of_salted_password(mechanism, salted_password(mechanism, password.encode(), salt, iterations), salt, iterations)

    @classmethod
    def of_salted_password(cls, mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        client_key = keyed_hash(mechanism, salted, b"Client Key")
        return cls(salt, digest(mechanism, client_key), keyed_hash(mechanism, salted, b"Server Key"), iterations)

    @classmethod
    def parse(cls, text: str) -> ScramCredential:
        """Of the text in the metadata store; raises IllegalArgument, without the text in the message."""
        pairs = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        if len(pairs) != len(_FIELDS) or set(pairs) != set(_FIELDS):
            raise IllegalArgument(f"Invalid credentials: expected the fields {', '.join(_FIELDS)}")
        try:
            keys = [base64.b64decode(pairs[name], validate=True) for name in _FIELDS[:3]]
            return cls(keys[0], keys[1], keys[2], int(pairs["iterations"]))
        except (binascii.Error, ValueError):
            raise IllegalArgument("Invalid credentials: a key is not base64, or the iterations are not a number") from None

    def __str__(self) -> str:
        """Kafka's text form, which has the keys: for the metadata store alone."""
        salt, stored_key, server_key = (base64.b64encode(key).decode() for key in (self.salt, self.stored_key, self.server_key))
        return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={self.iterations}"


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def digest(mechanism: str, data: bytes) -> bytes:
    return hashlib.new(HASHES[mechanism], data).digest()


def keyed_hash(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])
