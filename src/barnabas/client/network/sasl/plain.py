"""PLAIN (RFC 4616): sends user and password as they are. Use it only over TLS."""

from __future__ import annotations

from barnabas.client.errors import SaslAuthentication


class Plain:
    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self.is_done = False

    def begin(self) -> bytes:
        self.is_done = True
        return f"\0{self._username}\0{self._password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslAuthentication("The broker went on after PLAIN was over")
        return None
