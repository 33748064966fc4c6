"""DIGEST-MD5 (RFC 2831), the SASL mechanism by which ZooKeeper's own client proves a password: the client's side, without I/O.

ZooKeeper's servers take the user from the JAAS section `Server`. Both sides prove that they know the password.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

DIGEST_URI: Final = "zookeeper/zk-sasl-md5"  # service and server name, which are constants of ZooKeeper
CHALLENGE_BYTES_MAX: Final = 2048  # RFC 2831, section 2.1.1

_DIRECTIVE: Final = re.compile(r'\s*([A-Za-z0-9-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_NONCE_COUNT: Final = "00000001"  # of each nonce, the first and only use
_QOP: Final = "auth"  # authentication only: integrity and secrecy are for TLS


class SaslRefused(Exception):
    """The server did not authenticate this client, or did not prove that it knows the password."""


@dataclass(frozen=True, slots=True)
class SaslUser:
    name: str
    password: str = field(repr=False)


class DigestMd5:
    """One exchange. The client begins with an empty token."""

    def __init__(self, user: SaslUser, cnonce: str | None = None, digest_uri: str = DIGEST_URI) -> None:
        self.is_done = False
        self._user = user
        self._cnonce = cnonce or secrets.token_urlsafe(24)
        self._digest_uri = digest_uri
        self._server_proof: bytes | None = None

    def answer(self, token: bytes | None) -> bytes | None:
        """The response to a token of the server; None if the exchange is complete. Raises SaslRefused."""
        if not token:
            raise SaslRefused("the server has no SASL: give it a JAAS section Server with the users")
        if len(token) > CHALLENGE_BYTES_MAX:
            raise SaslRefused(f"the server sent a token of {len(token)} bytes")
        directives = _directives(token)
        if self._server_proof is None:
            return self._respond(directives)
        if not hmac.compare_digest(directives.get("rspauth", "").encode(), self._server_proof):
            raise SaslRefused("the server does not know the password")
        self.is_done = True
        return None

    def _respond(self, challenge: dict[str, str]) -> bytes:
        if "nonce" not in challenge or challenge.get("algorithm") != "md5-sess":
            raise SaslRefused("the server's challenge is not one of DIGEST-MD5")
        if _QOP not in challenge.get("qop", _QOP).split(","):
            raise SaslRefused(f"the server requires the quality of protection {challenge['qop']}: only auth is supported")
        realm, nonce = challenge.get("realm", ""), challenge["nonce"]
        self._server_proof = self._proof("", realm, nonce)
        values = {"username": self._user.name, "realm": realm, "nonce": nonce, "cnonce": self._cnonce, "digest-uri": self._digest_uri}
        quoted = ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())
        proof = self._proof("AUTHENTICATE", realm, nonce).decode()
        return f"charset=utf-8,{quoted},nc={_NONCE_COUNT},qop={_QOP},response={proof}".encode()

    def _proof(self, method: str, realm: str, nonce: str) -> bytes:
        secret = _md5(b":".join(map(_hashed_form, (self._user.name, realm, self._user.password)))).digest()
        session = _md5(secret + f":{nonce}:{self._cnonce}".encode()).hexdigest()
        request = _md5(f"{method}:{self._digest_uri}".encode()).hexdigest()
        return _md5(f"{session}:{nonce}:{_NONCE_COUNT}:{self._cnonce}:{_QOP}:{request}".encode()).hexdigest().encode()


def _directives(token: bytes) -> dict[str, str]:
    text = token.decode("utf-8", "replace")
    directives: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _DIRECTIVE.match(text, at)
        if match is None:
            raise SaslRefused("the server sent a token that is not one of DIGEST-MD5")
        value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        directives.setdefault(match[1].lower(), value)
        at = match.end()
    return directives


def _hashed_form(text: str) -> bytes:
    """RFC 2831 hashes text that fits into ISO 8859-1 in that encoding, and any other in UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)


def _md5(data: bytes) -> hashlib._Hash:
    return hashlib.md5(data, usedforsecurity=False)  # the mechanism has no other hash; FIPS builds refuse it without the argument
