"""People log in with users of the broker, and see the console as that user."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Literal, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from barnabas.client.errors import Disconnected
from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web import login
from barnabas.console.web.audit import AUDIT_LOGGER
from barnabas.console.web.events import EventStreams
from barnabas.console.web.login import FREE_ATTEMPTS, LoginPages
from barnabas.console.web.sessions import Visitors
from barnabas.console.web.visit import House, Visit
from barnabas.errors import KafkaError
from barnabas.security.errors import SaslAuthentication
from barnabas.testing import EmbeddedBroker, broker
from tests.unit.console.conftest import token

DOWN = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(topics=["orders"], secure=True) as running:
        yield running


@pytest.fixture
def client(secured: EmbeddedBroker) -> Iterator[TestClient]:
    settings = {name: value for name, value in secured.client_config.items() if name != "sasl.jaas.config"}
    config = ConsoleConfig((ClusterConfig("local", settings | {"bootstrap.servers": secured.bootstrap_servers}),), may_write=True)
    with TestClient(make_app(config), base_url="http://localhost:8080", follow_redirects=False) as made:
        yield made


def password(secured: EmbeddedBroker) -> str:
    return secured.librdkafka_config["sasl.password"]


def test_pages_need_a_login_and_lead_back_after_it(client: TestClient, secured: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, AUDIT_LOGGER)
    response = client.get("/brokers/1/settings?q=log")
    assert response.status_code == 303
    assert response.headers["location"] == "/login?next=%2Fbrokers%2F1%2Fsettings%3Fq%3Dlog"
    page = client.get(response.headers["location"])
    before = dict(client.cookies)
    form = {"csrf": token(page.text), "user": "admin", "password": password(secured), "next": "/brokers/1/settings?q=log"}
    done = client.post("/login", data=form)
    assert (done.status_code, done.headers["location"]) == (303, "/brokers/1/settings?q=log")
    assert dict(client.cookies) != before  # the id from before the login has no rights
    assert client.get("/").status_code == 200
    out = client.post("/logout", data={"csrf": token(client.get("/").text)})
    assert out.headers["location"] == "/login"
    assert client.get("/").status_code == 303
    audited = [json.loads(record.message) for record in caplog.records if record.name == AUDIT_LOGGER]
    assert [(entry["action"], entry["user"]) for entry in audited] == [("login", "admin"), ("logout", "admin")]
    assert password(secured) not in caplog.text


@pytest.mark.parametrize("path", ["/", "/brokers", "/brokers/1/loggers", "/overview/events", "/nowhere"])
def test_no_page_is_shown_before_a_login(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.headers["location"].partition("?")[0]) == (303, "/login")
    assert client.get(path, headers={"hx-request": "true"}).status_code == 401
    assert client.get("/login").status_code == 200
    assert client.get("/static/console.css").status_code == 200


def test_a_wrong_password_is_refused_and_many_are_throttled(client: TestClient, secured: EmbeddedBroker) -> None:
    form = {"csrf": token(client.get("/login").text), "user": "admin", "password": "wrong"}
    for _ in range(FREE_ATTEMPTS):
        response = client.post("/login", data=form)
        assert response.status_code == 401
        assert "does not accept this user and password" in response.text
    throttled = client.post("/login", data=form | {"password": password(secured)})
    assert throttled.status_code == 429
    assert "Try again in" in throttled.text


def test_a_login_needs_a_token_too(client: TestClient, secured: EmbeddedBroker) -> None:
    client.get("/login")
    assert client.post("/login", data={"user": "admin", "password": password(secured)}).status_code == 403


def test_a_cluster_that_does_not_answer_is_no_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "VERIFY_TIMEOUT_MS", 200)
    with TestClient(make_app(ConsoleConfig((ClusterConfig("down", DOWN),))), base_url="http://localhost:8080") as client:
        response = client.post("/login", data={"csrf": token(client.get("/login").text), "user": "a", "password": "b"})
        assert response.status_code == 503


class LoginVisit:
    """A visit that sends the form of a login; it has what the page uses."""

    def __init__(self, user: str = "alice") -> None:
        self.config = ConsoleConfig((ClusterConfig("down", DOWN),))
        self.cluster_name = "down"
        self.address = "192.0.2.1"
        self.audited: list[tuple[str, str]] = []
        self._user = user

    async def form(self) -> dict[str, str]:
        return {"user": self._user, "password": "secret"}

    def audit(self, action: str, what: str) -> None:
        self.audited.append((action, what))

    def refused(self, template: str, error: str, *, status: int = 422, **values: object) -> Response:
        return Response(error, status)


def statuses(monkeypatch: pytest.MonkeyPatch, error: KafkaError, *rounds: int, visit: LoginVisit | None = None) -> list[int]:
    """Of rounds of simultaneous attempts, each of which ends with the error when the cluster verifies it."""

    async def verify(verified: Visit, user: str, password: str) -> None:
        await asyncio.sleep(0)  # the other attempts of the round begin
        raise error

    async def run() -> list[int]:
        pages = LoginPages()
        return [
            response.status_code
            for attempts in rounds
            for response in await asyncio.gather(*(pages.log_in(cast("Visit", visit or LoginVisit())) for _ in range(attempts)))
        ]

    monkeypatch.setattr(login, "verify", verify)
    return asyncio.run(run())


def test_simultaneous_attempts_are_throttled_before_the_cluster_verifies_one(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = statuses(monkeypatch, SaslAuthentication("no"), FREE_ATTEMPTS + 5)
    assert refused == [401] * FREE_ATTEMPTS + [429] * 5


def test_attempts_that_do_not_reach_the_cluster_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert statuses(monkeypatch, Disconnected("down"), *[FREE_ATTEMPTS] * 3) == [503] * FREE_ATTEMPTS * 3


def test_a_throttled_attempt_is_audited_with_a_part_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    visit = LoginVisit("x" * 500)
    statuses(monkeypatch, SaslAuthentication("no"), FREE_ATTEMPTS, 1, visit=visit)
    assert visit.audited[-1] == ("login-refused", f"user {'x' * 100}: throttled")


@pytest.mark.parametrize(
    ("scheme", "forwarded", "address"),
    [
        ("http", ["192.0.2.7"], "192.0.2.1"),
        ("https", [], "192.0.2.1"),
        ("https", ["forged, 192.0.2.7"], "192.0.2.7"),
        ("https", ["forged", "forged, 192.0.2.7"], "192.0.2.7"),
        ("https", ["x" * 500], "x" * 100),
        ("https", ["forged, "], "192.0.2.1"),
    ],
)
def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_added(
    scheme: Literal["http", "https"], forwarded: list[str], address: str
) -> None:
    house = House(ConsoleConfig((ClusterConfig("down", DOWN),), scheme=scheme), Visitors(lambda: 0), EventStreams())
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    request = Request({"type": "http", "headers": headers, "client": ("192.0.2.1", 5_000)})
    visit = Visit(request, house, visitor="v", cluster_name="down", prefix="", session=None, user=None, parameters={})
    assert visit.address == address
