"""Visitors and logins. A visitor is a signed random id in a cookie; what belongs to it is only in this process's memory.

A visitor who has logged in to a cluster has a login, with the user's name and password. It ends after half an hour without a request, and
after twelve hours in any case. A restart of the console ends all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

IDLE_MS: Final = 30 * 60_000
LIFETIME_MS: Final = 12 * 3_600_000
LOGINS_MAX: Final = 500
LOGINS_OF_USER_MAX: Final = 10  # so that one user cannot end the logins of all others
NOTICES_MAX: Final = 1_000
SWEEP_S: Final = 30
_ID_BYTES: Final = 18


@dataclass
class Login:
    """A user of a cluster who is logged in. The password is needed for connections that are opened later."""

    visitor: str
    cluster: str
    user: str
    password: str = field(repr=False)
    since_ms: int
    used_ms: int


class Visitors:
    """Signs and checks the cookies of visitors, and has their CSRF tokens, logins and notices. `on_end` gets a login that ended."""

    def __init__(self, monotonic_ms: Callable[[], int], on_end: Callable[[Login], None] = lambda login: None) -> None:
        self._key = secrets.token_bytes(32)
        self._monotonic_ms = monotonic_ms
        self._on_end = on_end
        self._logins: OrderedDict[tuple[str, str], Login] = OrderedDict()  # the least recently used first
        self._notices: OrderedDict[str, str] = OrderedDict()

    @property
    def logins(self) -> tuple[Login, ...]:
        return tuple(self._logins.values())

    def new(self) -> str:
        """A new visitor's id."""
        return secrets.token_urlsafe(_ID_BYTES)

    def cookie(self, visitor: str) -> str:
        """The value of the visitor's cookie."""
        return f"{visitor}.{self._sign('cookie', visitor)}"

    def visitor(self, cookie: str) -> str | None:
        """The visitor of a cookie; None if this process did not sign it."""
        visitor, _, signature = cookie.rpartition(".")
        return visitor if visitor and _equal(signature, self._sign("cookie", visitor)) else None

    def csrf_token(self, visitor: str) -> str:
        return self._sign("csrf", visitor)

    def has_token(self, visitor: str, token: str) -> bool:
        return _equal(token, self.csrf_token(visitor))

    def log_in(self, visitor: str, cluster: str, user: str, password: str) -> Login:
        now = self._monotonic_ms()
        self.log_out(visitor, cluster)
        of_user = [login for login in self._logins.values() if (login.cluster, login.user) == (cluster, user)]
        for oldest in of_user[: max(0, len(of_user) + 1 - LOGINS_OF_USER_MAX)]:
            self.log_out(oldest.visitor, oldest.cluster)
        while len(self._logins) >= LOGINS_MAX:
            self.log_out(*next(iter(self._logins)))
        login = self._logins[visitor, cluster] = Login(visitor, cluster, user, password, now, now)
        return login

    def login(self, visitor: str, cluster: str) -> Login | None:
        """The login of a visitor, if it has not expired; this counts as a use."""
        self.expire()
        login = self._logins.get((visitor, cluster))
        if login is not None:
            login.used_ms = self._monotonic_ms()
            self._logins.move_to_end((visitor, cluster))
        return login

    def log_out(self, visitor: str, cluster: str) -> None:
        login = self._logins.pop((visitor, cluster), None)
        if login is not None:
            self._on_end(login)

    def is_open(self, login: Login) -> bool:
        """Whether the login has neither expired nor been ended; this does not count as a use."""
        self.expire()
        return self._logins.get((login.visitor, login.cluster)) is login

    async def sweep(self) -> None:
        """Ends the logins whose time is over, also while there are no requests, until it is cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.expire()

    def expire(self) -> None:
        """Ends the logins whose time is over."""
        now = self._monotonic_ms()
        over = [login for login in self._logins.values() if now - login.used_ms > IDLE_MS or now - login.since_ms > LIFETIME_MS]
        for login in over:
            self.log_out(login.visitor, login.cluster)

    def move(self, visitor: str, new: str) -> None:
        """Gives the logins of a visitor to a new id: a cookie from before a login must not have its rights."""
        for login in [login for login in self._logins.values() if login.visitor == visitor]:
            del self._logins[visitor, login.cluster]
            login.visitor = new
            self._logins[new, login.cluster] = login

    def leave_notice(self, visitor: str, text: str) -> None:
        """A sentence that the visitor's next page shows."""
        self._notices[visitor] = text
        self._notices.move_to_end(visitor)
        while len(self._notices) > NOTICES_MAX:
            self._notices.popitem(last=False)

    def take_notice(self, visitor: str) -> str | None:
        return self._notices.pop(visitor, None)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
