"""Visitors, logins and their ends; attempts to log in that come too fast."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient

from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web import login as login_page
from barnabas.console.web import sessions
from barnabas.console.web.events import EventStreams
from barnabas.console.web.login import FREE_ATTEMPTS, Throttle, local_path
from barnabas.console.web.sessions import IDLE_MS, LIFETIME_MS, LOGINS_MAX, LOGINS_OF_USER_MAX, NOTICES_MAX, Login, Visitors
from barnabas.console.web.visit import House, Visit


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


def test_only_its_own_cookies_are_known() -> None:
    visitors, other = Visitors(Clock()), Visitors(Clock())
    visitor = visitors.new()
    assert visitors.visitor(visitors.cookie(visitor)) == visitor
    assert visitors.visitor(other.cookie(visitor)) is None
    for forged in ("", ".", visitor, f"{visitor}.", f"{visitor}.ü", f"x{visitors.cookie(visitor)}", "\udcff.\udcff"):
        assert visitors.visitor(forged) is None


def test_a_token_belongs_to_one_visitor_and_is_no_signature_of_a_cookie() -> None:
    visitors = Visitors(Clock())
    one, other = visitors.new(), visitors.new()
    assert visitors.has_token(one, visitors.csrf_token(one))
    assert not visitors.has_token(other, visitors.csrf_token(one))
    assert not visitors.has_token(one, visitors.cookie(one).rpartition(".")[2])


def test_a_login_ends_when_it_is_idle_and_after_its_lifetime() -> None:
    clock, ended = Clock(), list[Login]()
    visitors = Visitors(clock, ended.append)
    visitors.log_in("v", "local", "alice", "secret")
    clock.ms += IDLE_MS
    assert visitors.login("v", "local") is not None
    clock.ms += IDLE_MS + 1
    assert visitors.login("v", "local") is None
    assert [login.user for login in ended] == ["alice"]
    visitors.log_in("v", "local", "alice", "secret")
    for _ in range(LIFETIME_MS // IDLE_MS):
        clock.ms += IDLE_MS
        assert visitors.login("v", "local") is not None
    clock.ms += 1
    assert visitors.login("v", "local") is None


def test_a_login_is_open_until_it_expires_or_ends_and_asking_is_no_use() -> None:
    clock = Clock()
    visitors = Visitors(clock)
    login = visitors.log_in("v", "local", "alice", "secret")
    clock.ms += IDLE_MS
    assert visitors.is_open(login)
    clock.ms += 1
    assert not visitors.is_open(login)
    again = visitors.log_in("v", "local", "alice", "secret")
    assert visitors.is_open(again) and not visitors.is_open(login)
    visitors.log_out("v", "local")
    assert not visitors.is_open(again)


def test_logins_expire_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = threading.Event()
    monkeypatch.setattr(sessions, "SWEEP_S", 0)
    monkeypatch.setattr(Visitors, "expire", lambda visitors: swept.set())
    with TestClient(make_app(ConsoleConfig((ClusterConfig("local", {}),)))):
        assert swept.wait(30)


def test_events_end_with_the_login() -> None:
    visitors = Visitors(Clock())
    visitors.log_in("v", "local", "alice", "secret")
    house = House(ConsoleConfig((ClusterConfig("local", {}),)), visitors, EventStreams())
    request = Request({"type": "http", "headers": []})
    visit = Visit(request, house, visitor="v", cluster_name="local", prefix="", session=None, user="alice", parameters={})

    async def source() -> AsyncIterator[tuple[str, str]]:
        yield "fragment", "before"
        visitors.log_out("v", "local")
        yield "fragment", "after"

    async def run() -> str:
        response = visit.events(source())
        assert isinstance(response, StreamingResponse)
        return "".join([str(piece, "utf-8") async for piece in response.body_iterator if isinstance(piece, bytes)])

    text = asyncio.run(run())
    assert "before" in text and "after" not in text
    assert "The login has ended" in text and "event: done" in text


def test_one_user_cannot_end_the_logins_of_others() -> None:
    visitors = Visitors(Clock())
    visitors.log_in("v", "local", "alice", "secret")
    for number in range(3 * LOGINS_MAX):
        visitors.log_in(f"v{number}", "local", "mallory", "secret")
    assert visitors.login("v", "local") is not None
    assert len(visitors.logins) == 1 + LOGINS_OF_USER_MAX


def test_logins_and_notices_are_bounded() -> None:
    visitors = Visitors(Clock())
    for number in range(LOGINS_MAX + 5):
        visitors.log_in("v", f"cluster-{number}", f"user-{number}", "secret")
    assert len(visitors.logins) == LOGINS_MAX
    for number in range(NOTICES_MAX + 5):
        visitors.leave_notice(f"v{number}", "done")
    assert visitors.take_notice("v0") is None
    assert visitors.take_notice(f"v{NOTICES_MAX}") == "done"


def test_a_login_moves_to_the_new_id_and_its_password_is_not_in_texts() -> None:
    visitors = Visitors(Clock())
    login = visitors.log_in("old", "local", "alice", "secret")
    visitors.move("old", "new")
    assert visitors.login("old", "local") is None
    assert visitors.login("new", "local") is login
    assert "secret" not in repr(login)


def test_failed_attempts_wait_longer_and_longer() -> None:
    clock = Clock()
    throttle = Throttle(clock, FREE_ATTEMPTS)
    for _ in range(FREE_ATTEMPTS):
        assert throttle.wait_ms("alice") == 0
        throttle.count("alice")
    waits = []
    for _ in range(12):
        waits.append(throttle.wait_ms("alice"))
        clock.ms += waits[-1]
        assert throttle.wait_ms("alice") == 0
        throttle.count("alice")
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == login_page.WAIT_MS_MAX
    assert throttle.wait_ms("bob") == 0
    clock.ms += login_page.FORGET_MS + 1
    assert throttle.wait_ms("alice") == 0


def test_a_success_forgets_the_failures_and_the_number_of_keys_is_bounded() -> None:
    throttle = Throttle(Clock(), 1)
    throttle.count("alice")
    throttle.succeeded("alice")
    assert throttle.wait_ms("alice") == 0
    for number in range(login_page.KEYS_MAX + 10):
        throttle.count(f"user-{number}")
    assert throttle.wait_ms("user-0") == 0


def test_a_forgiven_attempt_is_not_counted() -> None:
    throttle = Throttle(Clock(), 1)
    throttle.count("alice")
    throttle.forgive("alice")
    throttle.forgive("alice")
    assert throttle.wait_ms("alice") == 0
    throttle.count("alice")
    throttle.count("alice")
    throttle.forgive("alice")
    assert throttle.wait_ms("alice") == 1_000


def test_a_login_leads_only_to_this_console() -> None:
    assert local_path("/topics/orders?q=1") == "/topics/orders?q=1"
    for other in (
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a\r\nSet-Cookie: a=b",
        "",
        "/login",
    ):
        assert local_path(other) == ""
