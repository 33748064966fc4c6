"""The guard refuses by default: names of the host, origins, tokens, changes of a console that only reads."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.types import Message

from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web import guard
from barnabas.console.web.audit import AUDIT_LOGGER
from barnabas.console.web.guard import allowed_hosts
from barnabas.console.web.headers import CONTENT_SECURITY_POLICY
from tests.unit.console.conftest import MakeClient, token

LOGGER = {"name": "kafka.log.LogCleaner", "level": "ERROR"}


def posted(client: TestClient, form: dict[str, str], **headers: str) -> int:
    return client.post(
        "/brokers/1/loggers", data=form, headers={name.replace("_", "-"): value for name, value in headers.items()}
    ).status_code


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080"])
def test_its_own_names_are_answered(console: MakeClient, host: str) -> None:
    assert console().get("/static/console.css", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8080", "127.0.0.1.nip.io", "", "[::2]", "8080"])
@pytest.mark.parametrize("path", ["/", "/static/console.css", "/login", "/nowhere"])
def test_another_host_is_refused(console: MakeClient, host: str, path: str) -> None:
    assert console().get(path, headers={"host": host}).status_code == 421


def test_a_name_of_a_proxy_is_allowed_when_it_is_configured() -> None:
    clusters = (ClusterConfig("local", {}),)
    assert "kafka.example" in allowed_hosts(ConsoleConfig(clusters, host_names=("kafka.example",)))
    assert "0.0.0.0" not in allowed_hosts(ConsoleConfig(clusters, host="0.0.0.0"))


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/console.js", "/brokers/99"])
def test_every_response_has_the_policy_and_no_page_is_stored(console: MakeClient, path: str) -> None:
    headers = console().get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == ("public, max-age=3600" if path.startswith("/static") else "no-store")


def test_a_visitor_gets_a_strict_cookie_that_scripts_cannot_read(console: MakeClient) -> None:
    cookie = console().get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_a_change_with_the_token_is_made(console: MakeClient) -> None:
    client = console()
    assert posted(client, {**LOGGER, "csrf": token(client.get("/").text)}) == 303
    assert "has the level ERROR" in client.get("/brokers/1/loggers").text  # the notice, once
    assert "has the level ERROR" not in client.get("/brokers/1/loggers").text


def test_a_change_that_fails_is_audited(console: MakeClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, AUDIT_LOGGER)
    client = console()
    form = {"csrf": token(client.get("/").text), "name": "log.cleaner.threads", "value": "many", "scope": "one"}
    assert client.post("/brokers/1/settings", data=form).status_code == 422
    audited = [json.loads(record.message) for record in caplog.records if record.name == AUDIT_LOGGER]
    assert [(entry["action"], entry["what"]) for entry in audited] == [
        ("change-failed", "/brokers/1/settings: status 422, made perhaps in part")
    ]


def test_a_change_needs_the_visitor_s_own_token(console: MakeClient) -> None:
    client, other = console(), console()
    own, foreign = token(client.get("/").text), token(other.get("/").text)
    assert posted(client, LOGGER) == 403
    assert posted(client, {**LOGGER, "csrf": foreign}) == 403
    assert posted(client, {**LOGGER, "csrf": own[:-1]}) == 403
    client.cookies.clear()
    assert posted(client, {**LOGGER, "csrf": own}) == 403


def test_a_forged_cookie_is_a_new_visitor(console: MakeClient) -> None:
    client = console()
    own = token(client.get("/").text)
    name, value = next(iter(client.cookies.items()))
    client.cookies.clear()
    client.cookies.set(name, value[:-1] + ("0" if value[-1] != "0" else "1"))
    assert token(client.get("/").text) != own


def test_a_page_of_another_site_cannot_post(console: MakeClient) -> None:
    client = console()
    form = {**LOGGER, "csrf": token(client.get("/").text)}
    assert posted(client, form, origin="http://evil.example") == 403
    assert posted(client, form, origin="null") == 403
    assert posted(client, form, sec_fetch_site="cross-site") == 403
    assert posted(client, form, origin="http://localhost:8080", sec_fetch_site="same-origin") == 303


@pytest.mark.parametrize("path", ["/", "/topics", "/overview/events", "/static/console.js"])
def test_a_page_of_another_site_can_link_here_and_load_nothing(console: MakeClient, path: str) -> None:
    client = console()
    for site in ("cross-site", "same-site"):
        for load in ({}, {"sec-fetch-dest": "empty"}, {"sec-fetch-dest": "script"}, {"sec-fetch-dest": "iframe"}):
            refused = client.get(path, headers={"sec-fetch-site": site, **load})
            assert refused.status_code == 403
            assert "may only link to this console" in refused.text
    if path != "/overview/events":  # an endless response
        assert client.get(path, headers={"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}).status_code == 200
        assert client.get(path, headers={"sec-fetch-site": "none"}).status_code == 200
        assert client.get(path, headers={"sec-fetch-site": "same-origin", "sec-fetch-dest": "script"}).status_code == 200


def test_a_console_that_only_reads_changes_nothing(console: MakeClient) -> None:
    client = console(may_write=False)
    response = client.post("/brokers/1/loggers", data={**LOGGER, "csrf": token(client.get("/").text)})
    assert response.status_code == 403
    assert "--console-write" in response.text


def test_only_forms_of_a_bounded_size_are_read(console: MakeClient) -> None:
    client = console()
    csrf = token(client.get("/").text)
    assert client.post("/brokers/1/loggers", json=LOGGER, headers={"x-csrf-token": csrf}).status_code == 415
    assert posted(client, {"csrf": csrf, "name": "x" * (2 << 20)}) == 413
    fields = "&".join(f"f{number}=" for number in range(30_000))
    headers = {"content-type": "application/x-www-form-urlencoded", "x-csrf-token": csrf}
    assert client.post("/brokers/1/loggers", content=fields, headers=headers).status_code == 400


def test_a_form_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0)

    async def read() -> None:
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        request = Request({"type": "http", "headers": []}, lambda: never)
        async with asyncio.timeout(60):  # of a guard without a bound
            await guard._body(request, 10)

    with pytest.raises(guard.RequestRefused) as refused:
        asyncio.run(read())
    assert refused.value.failure.status == 408


def test_a_form_that_is_not_utf_8_is_refused(console: MakeClient) -> None:
    client = console()
    headers = {"content-type": "application/x-www-form-urlencoded", "x-csrf-token": token(client.get("/").text)}
    assert client.post("/brokers/1/loggers", content="name=%FF&level=ERROR", headers=headers).status_code == 400


@pytest.mark.parametrize("path", ["/topics/%FF", "/topics/%FF/settings", "/topics/%FF/messages", "/groups/%FF", "/brokers/%FF", "/%FF"])
def test_a_path_that_is_not_utf_8_is_no_page(console: MakeClient, path: str) -> None:
    assert console().get(path).status_code in (400, 404)


def test_unknown_paths_and_methods_are_named(console: MakeClient) -> None:
    client = console()
    assert client.get("/nowhere").status_code == 404
    assert client.post("/brokers", data={"csrf": token(client.get("/").text)}).status_code == 405
    assert client.get("/clusters/other/").status_code == 404
    assert client.delete("/").status_code == 405


def test_static_files_stay_in_their_folder(console: MakeClient) -> None:
    client = console()
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/vendor/../../app.py", "/static/"):
        assert client.get(path).status_code in (404, 405)
