"""Logging in with a user of the cluster. The cluster itself verifies the password: the console connects to it in the user's name.

Attempts are throttled by user and by address, before the cluster is asked, and few are verified at the same time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.clock import SystemClock
from barnabas.client.config.config import SharedSettings
from barnabas.client.errors import Timeout
from barnabas.console.config import ClusterConfig
from barnabas.console.failures import sentence
from barnabas.console.web.routes import Route, RouteAccess
from barnabas.console.web.visit import Visit
from barnabas.errors import KafkaError
from barnabas.security.errors import AuthenticationError

FREE_ATTEMPTS: Final = 5  # failed attempts before the first wait
FREE_ATTEMPTS_OF_ADDRESS: Final = 20
WAIT_MS_MAX: Final = 5 * 60_000
FORGET_MS: Final = 15 * 60_000
KEYS_MAX: Final = 10_000
_VERIFIED_AT_ONCE: Final = 4
VERIFY_TIMEOUT_MS: Final = 5_000
_FIELD_MAX: Final = 1_000
_AUDITED_MAX: Final = 100  # characters of a name: throttled attempts cost nothing, and must not fill the audit log


@dataclass
class _Failures:
    count: int
    last_ms: int


class Throttle:
    """The attempts by key. After the free ones, each attempt doubles the wait, from a second to five minutes.

    An attempt is counted before the cluster verifies it, because many may come while one is verified. `forgive` takes back one that did not
    fail.
    """

    def __init__(self, monotonic_ms: Callable[[], int], free: int) -> None:
        self._monotonic_ms = monotonic_ms
        self._free = free
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def wait_ms(self, key: str) -> int:
        """How long the next attempt must wait; 0 if it need not."""
        failures = self._failures.get(key)
        if failures is None or failures.count < self._free:
            return 0
        now = self._monotonic_ms()
        if now - failures.last_ms > FORGET_MS:
            del self._failures[key]
            return 0
        wait = min(WAIT_MS_MAX, 1_000 << min(failures.count - self._free, 20))
        return max(0, failures.last_ms + wait - now)

    def count(self, key: str) -> None:
        """Counts an attempt that begins."""
        now = self._monotonic_ms()
        failures = self._failures.pop(key, None)
        if failures is None or now - failures.last_ms > FORGET_MS:
            failures = _Failures(0, now)
        failures.count, failures.last_ms = failures.count + 1, now
        self._failures[key] = failures
        if len(self._failures) > KEYS_MAX:
            self._failures.popitem(last=False)

    def forgive(self, key: str) -> None:
        """Takes back one attempt: the cluster could not be reached, or accepted it."""
        failures = self._failures.get(key)
        if failures is None:
            return
        failures.count -= 1
        if failures.count <= 0:
            del self._failures[key]

    def succeeded(self, key: str) -> None:
        self._failures.pop(key, None)


class LoginPages:
    """The pages to log in and out."""

    def __init__(self, monotonic_ms: Callable[[], int] | None = None) -> None:
        clock = monotonic_ms or SystemClock().monotonic_ms
        self._by_user = Throttle(clock, FREE_ATTEMPTS)
        self._by_address = Throttle(clock, FREE_ATTEMPTS_OF_ADDRESS)
        self._verifying = asyncio.Semaphore(_VERIFIED_AT_ONCE)

    @property
    def routes(self) -> tuple[Route, ...]:
        return (
            Route("/login", self.form, "GET", RouteAccess.PUBLIC),
            Route("/login", self.log_in, "POST", RouteAccess.PUBLIC, 16_384),
            Route("/logout", self.log_out, "POST", RouteAccess.PUBLIC, 16_384),
        )

    async def form(self, visit: Visit) -> Response:
        if visit.user is not None or not _config(visit).logs_in:
            return visit.redirect("/")
        return visit.page("login.html", user="", next=local_path(visit.argument("next")))

    async def log_in(self, visit: Visit) -> Response:
        form = await visit.form()
        user, password, following = form.get("user", ""), form.get("password", ""), local_path(form.get("next", ""))
        if not _config(visit).logs_in:
            return visit.redirect("/")
        if not user or not password or len(user) > _FIELD_MAX or len(password) > _FIELD_MAX:
            return visit.refused(
                "login.html", "Enter the name and the password of a user of the cluster.", user=user[:_FIELD_MAX], next=following
            )
        by_user = f"{visit.cluster_name}\n{user}"
        wait_ms = max(self._by_user.wait_ms(by_user), self._by_address.wait_ms(visit.address))
        if wait_ms:
            visit.audit("login-refused", f"user {user[:_AUDITED_MAX]}: throttled")
            text = f"Too many failed attempts. Try again in {wait_ms // 1_000 + 1} seconds."
            return visit.refused("login.html", text, status=429, user=user, next=following)
        self._by_user.count(by_user)
        self._by_address.count(visit.address)
        try:
            async with self._verifying:
                await verify(visit, user, password)
        except KafkaError as error:
            refusal = _authentication_error(error)
            if refusal is not None:
                visit.audit("login-refused", f"user {user}")
                return visit.refused(
                    "login.html", "The cluster does not accept this user and password.", status=401, user=user, next=following
                )
            self._by_user.forgive(by_user)
            self._by_address.forgive(visit.address)
            return visit.refused("login.html", sentence(error), status=503, user=user, next=following)
        self._by_user.succeeded(by_user)
        self._by_address.forgive(visit.address)
        visitors = visit.house.visitors
        new = visitors.new()
        visitors.move(visit.visitor, new)
        visitors.log_in(new, visit.cluster_name, user, password)
        visit.on_new_visitor(new)
        visit.user = user
        visit.audit("login", f"user {user}")
        return Response(status_code=303, headers={"location": following or visit.url("/")})

    async def log_out(self, visit: Visit) -> Response:
        if visit.user is not None:
            visit.audit("logout", f"user {visit.user}")
            visit.house.visitors.log_out(visit.visitor, visit.cluster_name)
        return Response(status_code=303, headers={"location": visit.url("/login" if _config(visit).logs_in else "/")})


async def verify(visit: Visit, user: str, password: str) -> None:
    """Connects to the cluster as the user. Raises KafkaError, an AuthenticationError for a wrong password."""
    own = {"client.id": "barnabas-console-login", "enable.metrics.push": "false", "sasl.username": user, "sasl.password": password}
    async with AsyncAdmin(SharedSettings({**_config(visit).client, **own})) as admin:
        await admin.describe_cluster(timeout_ms=VERIFY_TIMEOUT_MS)


def local_path(path: str) -> str:
    """A path of this console; empty for any other address, so that a login never redirects to another site."""
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable() and path.isascii()
    return path if is_local and "/login" not in path else ""


def _authentication_error(error: BaseException | None) -> AuthenticationError | None:
    """A timeout has the last connection failure as its cause."""
    for _ in range(5):
        if isinstance(error, AuthenticationError):
            return error
        error = error.__cause__ if isinstance(error, (KafkaError, Timeout)) else None
    return None


def _config(visit: Visit) -> ClusterConfig:
    cluster = visit.config.cluster(visit.cluster_name)
    assert cluster is not None, "the guard has found it"
    return cluster
