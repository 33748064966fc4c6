"""The pages of messages, through the guard, before a real broker."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Iterator
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from barnabas.client import AsyncProducer
from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.messages import browse, places
from barnabas.console.messages.masks import parse_masks
from barnabas.console.messages.places import DOWNLOADS, DOWNLOADS_MAX
from barnabas.console.messages.rows import RowField
from barnabas.console.pages import dead_letters, downloads
from barnabas.console.pages.downloads import Download
from barnabas.console.web.rendering import ENVIRONMENT
from barnabas.testing import EmbeddedBroker

HOSTILE = [
    b"<script>alert(1)</script>",
    b'{"a": "<img src=x onerror=alert(1)>"}',
    b'" autofocus onfocus=alert(1) x="',
    "\u202egnp.exe\u2066 \U0001f600".encode(),
    b"\xff\xfe\x00\x01",
    b"\x1b[31mred\r\n",
    None,
    b"",
    b"x" * 900_000,
]
_TOKEN = re.compile(r'name="csrf" value="([^"]+)"')


@pytest.fixture(scope="module")
def topics(broker: EmbeddedBroker) -> str:
    """The ending of the names of this module's topics."""
    ending = "console-pages"
    for name in ("numbers", "hostile", "cards", "origin", "dead"):
        broker.create_topic(f"{name}-{ending}")

    async def write() -> None:
        async with AsyncProducer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5}) as producer:
            for number in range(120):
                await producer.send(f"numbers-{ending}", b'{"n": %d}' % number, b"k%d" % (number % 7), headers=[("trace", b"t%d" % number)])
            for value in HOSTILE:
                await producer.send(f"hostile-{ending}", value, b"<b>", headers=[("<i>", b"<u>")])
            for value in (b'{"id": 1, "card": "4111-22"}', b"card 4111-22"):
                await producer.send(f"cards-{ending}", value, b"4111-key")
            at = round(time.time() * 1000) - 5000
            for number in range(3):
                facts = {
                    "message": "a: it is a text",
                    "format": "json",
                    "topic": f"origin-{ending}",
                    "partition": "0",
                    "offset": str(number),
                }
                headers = [(f"__barnabas.errors.{name}", fact.encode()) for name, fact in facts.items()]
                await producer.send(f"dead-{ending}", b"bad%d" % number, timestamp=at, headers=headers)

    asyncio.run(write())
    return ending


def client_of(broker: EmbeddedBroker, *, may_write: bool) -> TestClient:
    masks = parse_masks([{"mask": "$.card", "topic": "cards-*"}])
    cluster = ClusterConfig("local", {"bootstrap.servers": broker.bootstrap_servers})
    return TestClient(make_app(ConsoleConfig((cluster,), may_write=may_write, masks=masks)), base_url="http://localhost:8080")


@pytest.fixture
def console(broker: EmbeddedBroker, topics: str) -> Iterator[TestClient]:
    with client_of(broker, may_write=True) as client:
        yield client


def rows(text: str) -> list[str]:
    """The texts of the table of messages, one for each row."""
    table = text[text.index('id="message-rows"') :].partition("</tbody>")[0] if 'id="message-rows"' in text else ""
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split()) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)]


def token(text: str) -> str:
    match = _TOKEN.search(text)
    assert match is not None
    return match[1]


def test_the_newest_messages_and_a_link_that_looks_further(console: TestClient, topics: str) -> None:
    page = console.get(f"/topics/numbers-{topics}/messages")
    assert page.status_code == 200 and "50 of 120 offsets" in page.text
    assert '{"n": 119}' in rows(page.text)[0] and len(rows(page.text)) == 50
    further = re.search(r'href="([^"]*cursor=[^"]*)"', page.text)
    assert further is not None
    assert '{"n": 69}' in rows(console.get(unescape(further[1])).text)[0]


@pytest.mark.parametrize(
    ("query", "first", "count"),
    [
        ({"start": "beginning", "limit": "20"}, '{"n": 0}', 20),
        ({"start": "offset", "offset": "100"}, '{"n": 100}', 20),
        ({"start": "offset", "offset": "-5"}, '{"n": 115}', 5),
        ({"start": "time", "time": "-1h"}, '{"n": 0}', 50),
        ({"key": "k3"}, '{"n": 115}', 17),
        ({"kind": "text", "filter": "11"}, '{"n": 119}', 11),
        ({"kind": "path", "filter": "$.n == 17"}, '{"n": 17}', 1),
        ({"kind": "expression", "filter": 'value["n"] < 3 and key != "k1"'}, '{"n": 2}', 2),
        ({"values": "hex", "limit": "20"}, "7b 22 6e", 20),
        ({"partition": "0", "isolation": "read_committed"}, '{"n": 119}', 50),
    ],
)
def test_what_is_asked_for_is_shown(console: TestClient, topics: str, query: dict[str, str], first: str, count: int) -> None:
    page = console.get(f"/topics/numbers-{topics}/messages", params=query)
    shown = rows(page.text)
    assert page.status_code == 200 and len(shown) == count and first in shown[0]


@pytest.mark.parametrize("query", [{"kind": "expression", "filter": "value.x"}, {"start": "offset"}, {"cursor": "x"}, {"partition": "a"}])
def test_what_is_not_understood_keeps_the_form_and_says_why(console: TestClient, topics: str, query: dict[str, str]) -> None:
    page = console.get(f"/topics/numbers-{topics}/messages", params=query)
    assert page.status_code == 422 and 'role="alert"' in page.text
    assert query.get("filter", "") in unescape(page.text)


@pytest.mark.parametrize("path", ["/messages", "/messages/0/0", "/messages/0/99", "/messages/x/y", "/messages/send", "/messages/download"])
def test_a_topic_or_message_that_is_not_there_is_not_found(console: TestClient, path: str) -> None:
    assert console.get(f"/topics/console-nowhere{path}").status_code == 404


def test_the_live_tail_of_a_name_that_no_topic_can_have_is_not_found(console: TestClient) -> None:
    assert console.get("/topics/half-%ED%A0%80-a-character/messages/live").status_code == 404


def test_hostile_values_are_text_in_lists_and_as_a_whole(console: TestClient, topics: str) -> None:
    pages = [console.get(f"/topics/hostile-{topics}/messages")]
    for reading in ("auto", "text", "hex", "json"):
        pages += [
            console.get(f"/topics/hostile-{topics}/messages/0/{offset}", params={"values": reading}) for offset in range(len(HOSTILE))
        ]
    for page in pages:
        assert page.status_code == 200
        for harmful in ("<script>alert", "<img src=x", '" autofocus', "<b>", "<i>", "<u>", "\u202e", "\u2066", "\x1b"):
            assert harmful not in page.text
        assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages[0].text and "U+202E" in pages[0].text
    assert len(pages[0].text) < 100_000


def test_the_whole_bytes_are_a_download_that_no_browser_shows(console: TestClient, topics: str) -> None:
    value = console.get(f"/topics/hostile-{topics}/messages/0/0/value")
    assert value.content == HOSTILE[0] and value.headers["content-disposition"].startswith("attachment")
    assert value.headers["content-type"] == "application/octet-stream" and value.headers["x-content-type-options"] == "nosniff"
    assert console.get(f"/topics/hostile-{topics}/messages/0/0/key").content == b"<b>"


def test_the_download_of_a_value_takes_a_place_and_gives_it_back(console: TestClient, topics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WAIT_S", 0.0)
    base = f"/topics/hostile-{topics}/messages/0"
    for path, status in (("/0/value", 200), ("/6/value", 422), ("/99/value", 404), ("/0/key", 200)):
        assert console.get(base + path).status_code == status
        assert DOWNLOADS.taken == 0
    monkeypatch.setattr(DOWNLOADS, "taken", DOWNLOADS_MAX)
    refused = console.get(f"{base}/0/value")
    assert refused.status_code != 200 and "at most 2 downloads" in refused.text


def test_a_browser_that_does_not_read_loses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "SEND_S", 0.01)
    ends: list[str] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"x"

    async def never(message: Message | None = None) -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        await never()

    async def run() -> None:
        for scope in ({"type": "http", "asgi": {"spec_version": version}} for version in ("2.3", "2.4")):
            await Download(pieces(), lambda: ends.append("end"), "file")(scope, never, send)

    asyncio.run(asyncio.wait_for(run(), 30))
    assert ends == ["end", "end"]


def test_a_masked_field_leaves_by_no_page(console: TestClient, topics: str) -> None:
    base = f"/topics/cards-{topics}/messages"
    answers = [
        console.get(f"{base}/0/{offset}{part}", params={"values": reading})
        for offset in (0, 1)
        for part in ("", "/value", "/send")
        for reading in ("auto", "text", "hex")
    ]
    answers += [console.get(f"{base}/download", params={"format": form}) for form in ("jsonl", "csv")]
    answers += [console.get(base), console.get(base, params={"values": "hex"})]
    for answer in answers:
        assert b"4111-22" not in answer.content and b"34 31 31 31 2d 32" not in answer.content
    assert rows(console.get(base, params={"kind": "text", "filter": "4111-22"}).text) == []
    assert json.loads(console.get(f"{base}/0/0/value").text) == {"id": 1, "card": "•••"}


def test_the_size_of_what_is_masked_is_not_shown(console: TestClient, topics: str) -> None:
    def sizes(topic: str, offset: int) -> list[str]:
        return re.findall(r'<span class="soft">([0-9,]+ bytes)</span>', console.get(f"/topics/{topic}-{topics}/messages/0/{offset}").text)

    assert [sizes("cards", offset) for offset in (0, 1)] == [["8 bytes"], ["8 bytes"]]  # of the key, which is not masked
    assert sizes("numbers", 0) == ["2 bytes", "8 bytes"]


def test_a_masked_part_that_is_cut_says_no_size() -> None:
    parts = ENVIRONMENT.get_template("fragments/message_parts.html").make_module({"visit": None})
    for is_masked in (False, True):
        part = RowField("json", '{"card": "', 4_111, "", is_cut=True, is_masked=is_masked)
        for shown in (parts.value(part, 100), parts.whole("Value", part, "id", "/file", "")):  # type: ignore[attr-defined]
            assert ("4,111" in shown or "4.1 kB" in shown) is not is_masked


def test_downloads_have_the_filter(console: TestClient, topics: str) -> None:
    path, query = f"/topics/numbers-{topics}/messages/download", {"kind": "path", "filter": "$.n >= 117", "start": "beginning"}
    lines = console.get(path, params={**query, "format": "jsonl"}).text.splitlines()
    assert [json.loads(line)["value"]["n"] for line in lines] == [117, 118, 119]
    assert console.get(path, params={**query, "format": "csv", "records": "2"}).text.count("\r\n") == 3
    assert console.get(path, params={"format": "xml"}).status_code == 422


def test_a_message_is_sent_and_an_edited_copy_of_it(console: TestClient, broker: EmbeddedBroker, topics: str) -> None:
    topic = broker.create_topic("console-sends")
    form = console.get(f"/topics/{topic}/messages/send").text
    fields = {
        "csrf": token(form),
        "key": "k",
        "key_as": "text",
        "value": '{"n": 1}',
        "value_as": "json",
        "headers": "a: b",
        "partition": "",
    }
    page = console.post(f"/topics/{topic}/messages/send", data=fields)
    assert page.status_code == 200 and "partition 0, offset 0" in page.text and '{"n": 1}' in rows(page.text)[0]

    copy = console.get(f"/topics/{topic}/messages/0/0/send").text
    assert "a: b" in copy and "{&#34;n&#34;: 1}" in copy
    console.post(f"/topics/{topic}/messages/send", data={**fields, "value": "", "value_as": "null"})
    assert "null" in rows(console.get(f"/topics/{topic}/messages").text)[0]

    wrong = console.post(f"/topics/{topic}/messages/send", data={**fields, "value": "{", "headers": "keep: this"})
    assert wrong.status_code == 422 and "not JSON" in wrong.text and "keep: this" in wrong.text
    nowhere = console.post("/topics/console-nowhere/messages/send", data=fields)
    assert nowhere.status_code == 422 and console.get("/topics/console-nowhere/messages").status_code == 404


def test_dead_letters_are_found_grouped_and_sent_back_once(console: TestClient, topics: str) -> None:
    assert f"dead-{topics}" in console.get("/dead-letters").text
    page = console.get(f"/dead-letters/dead-{topics}").text
    assert "a: it is a text" in page
    form_token = re.search(r'name="token" value="([^"]+)"', page)
    assert form_token is not None
    fields = {"csrf": token(page), "token": form_token[1], "place": ["0:0", "0:2"]}
    first, second = (console.post(f"/dead-letters/dead-{topics}", data=fields) for _ in range(2))
    assert "2 of 2 dead letters were sent back" in first.text and "2 of 2 dead letters were sent back" in second.text
    back = console.get(f"/topics/origin-{topics}/messages").text
    assert len(rows(back)) == 2 and "bad2" in rows(back)[0]
    later = console.get(f"/dead-letters/dead-{topics}").text
    new_token = re.search(r'name="token" value="([^"]+)"', later)
    assert new_token is not None
    third = console.post(f"/dead-letters/dead-{topics}", data={**fields, "token": new_token[1]})
    assert "0 of 2" in third.text and "already sent again" in third.text


@pytest.mark.parametrize("path", ["/dead-letters", "/dead-letters/dead-{}"])
def test_dead_letters_are_decoded_with_the_registry(console: TestClient, topics: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    registry = object()
    given: list[object] = []

    async def open_scan(*arguments: Any, **settings: Any) -> Any:
        given.append(settings.pop("registry", None))
        return await browse.open_scan(*arguments, **settings)

    monkeypatch.setattr(dead_letters, "registry_of", lambda visit: registry, raising=False)
    monkeypatch.setattr(dead_letters, "open_scan", open_scan)
    assert console.get(path.format(topics)).status_code == 200
    assert given
    assert all(one is registry for one in given)


def test_a_console_that_only_reads_offers_and_takes_no_change(broker: EmbeddedBroker, topics: str) -> None:
    with client_of(broker, may_write=False) as client:
        page = client.get(f"/topics/numbers-{topics}/messages/0/1").text
        assert "send again" not in page
        form = client.get(f"/topics/numbers-{topics}/messages/send").text
        fields = {"csrf": token(form), "value": "x", "token": "t", "place": "0:0"}
        assert client.post(f"/topics/numbers-{topics}/messages/send", data=fields).status_code == 403
        assert client.post(f"/dead-letters/dead-{topics}", data=fields).status_code == 403
