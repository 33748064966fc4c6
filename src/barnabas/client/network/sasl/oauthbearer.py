"""OAUTHBEARER (RFC 7628): authentication with a token of an identity provider, and SASL extensions (KIP-342)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from barnabas.client.errors import SaslAuthentication
from barnabas.config_def import InvalidConfig

_SEPARATOR: Final = "\x01"
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")


class OAuthBearer:
    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self._token = token
        self._extensions = dict(extensions or {})
        self._refused: str | None = None
        self.is_done = False
        for key, value in self._extensions.items():
            check_extension(key, value)

    def begin(self) -> bytes:
        extensions = "".join(f"{key}={value}{_SEPARATOR}" for key, value in self._extensions.items())
        self.is_done = True
        return f"n,,{_SEPARATOR}auth=Bearer {self._token}{_SEPARATOR}{extensions}{_SEPARATOR}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self._refused is not None:
            raise SaslAuthentication(f"The token was refused: {self._refused}")
        # The broker sends the reason first, and fails the exchange after one more message of the client.
        self._refused = _reason(challenge)
        self.is_done = False
        return _SEPARATOR.encode()

    @property
    def refused(self) -> str | None:
        return self._refused


def check_extension(key: str, value: str) -> None:
    """Raises InvalidConfig."""
    if key == "auth" or not _KEY.fullmatch(key):
        raise InvalidConfig(f"Extension name {key} is invalid: letters only, and not auth")
    if not _VALUE.fullmatch(value):
        raise InvalidConfig(f"Extension value of {key} is invalid: printable characters only")


def _reason(challenge: bytes) -> str:
    try:
        details = json.loads(challenge)
        return str(details.get("status", details)) if isinstance(details, dict) else str(details)
    except ValueError:
        return challenge[:200].decode("utf-8", "replace")
