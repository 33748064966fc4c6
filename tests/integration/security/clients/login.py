"""What a client logs in with, and what it is asked to do: send a record and read the first one back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GROUP = "secured"  # the user has an ACL for groups with this prefix
VALUE = b"let in"
WAIT_S = 30


class Refused(Exception):
    """The client could not do it. The message is the class or code of its error, and its text."""


@dataclass(frozen=True)
class Login:
    """The listener is a SASL_SSL one. `token` is for OAUTHBEARER; `service` is for GSSAPI, whose tickets are in the cache that KRB5CCNAME
    names; user and password are for the other mechanisms.

    `is_good` is false if the broker will refuse it, for a client that tries again until a time that it is given.
    """

    bootstrap: str
    authority: Path
    topic: str
    mechanism: str
    user: str
    password: str
    token: str
    is_good: bool = True
    service: str = ""


class LoggedIn(Protocol):
    """A client that stays connected between calls. The first call connects. Each raises Refused."""

    def send(self) -> None:
        """Sends VALUE to partition 0, and returns when it is acknowledged."""

    def read(self) -> bytes:
        """The value of the first record."""

    def close(self) -> None: ...


LogIn = Callable[[Login], LoggedIn]
