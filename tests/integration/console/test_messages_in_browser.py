"""Messages in a browser: browse, filter, follow, send, send an edited copy, download."""

from __future__ import annotations

import json

from barnabas.client import Admin, NewTopic, Producer
from tests.integration.console.person import Person
from tests.integration.console.world import CUSTOMERS, ORDERS, RECORDS, World, order

ROWS = "#message-rows tr"


def test_messages_are_browsed_and_filtered(admin: Person) -> None:
    browser = admin.open(f"/topics/{ORDERS}/messages")
    assert browser.count(ROWS) == 50
    assert f'"id": {RECORDS - 1},' in browser.text(ROWS)  # the newest first
    browser.press("Older messages")
    browser.wait(lambda: browser.count("main nav.pager a"), "the way back")
    assert f'"id": {RECORDS - 1},' not in browser.text("main")

    admin.open(f"/topics/{ORDERS}/messages")
    browser.choose("Begin", "from the beginning")
    browser.fill("Filter", "t-17")
    browser.press("Search")
    admin.see('"id": 17,')  # the header of the order says so; others with a longer number come too
    assert all('"id": 17' in text for text in browser.texts(f"{ROWS} .message-value"))

    browser.choose("The filter is", "a JSON path")
    browser.fill("Filter", f"$.total > {order(RECORDS - 4)['total']}")
    browser.press("Search")
    browser.wait(lambda: browser.count(ROWS) == 3, "three orders")

    browser.choose("The filter is", "an expression")
    browser.fill("Filter", 'value["customer"] == "ann" and value["id"] < 20 and key != "bob"')
    browser.press("Search")
    browser.wait(lambda: browser.count(ROWS) == 20 // len(CUSTOMERS) + 1, "Ann's orders")
    assert "kind=expression" in browser.path

    browser.fill("Filter", "value.customer")
    browser.press("Search")
    admin.see("attributes")  # why it is refused
    assert browser.value("Filter") == "value.customer"
    browser.messages()


def test_messages_are_found_by_key_and_shown_as_a_whole(admin: Person) -> None:
    browser = admin.open(f"/topics/{ORDERS}/messages?key=bob")
    admin.see("in the partition of this key")
    assert set(browser.texts(f"{ROWS} .message-key")) == {"bob"}
    browser.check(f"{ROWS} a")
    browser.wait(lambda: browser.count("main pre") == 2, "key and value")
    assert json.loads(browser.text("main .message-part:nth-of-type(2) pre"))["customer"] == "bob"
    browser.press("Show")
    admin.see("trace")


def test_messages_are_sent_and_sent_again_edited(admin: Person, world: World) -> None:
    _create(world, "letters")
    browser = admin.open("/topics/letters/messages")
    admin.see("There are no messages here")
    browser.press("Send a message")
    browser.fill("Key", "greeting")
    browser.fill("Value", '{"text": "hello"}')
    browser.fill("Headers", "from: a person")
    browser.press("Send")
    admin.see("Sent a message to letters: partition 0, offset 0", '{"text": "hello"}')
    browser.check(f"{ROWS} a")
    browser.press("Edit and send again")
    assert browser.value("Key") == "greeting"
    assert browser.value("Headers").strip() == "from: a person"
    browser.fill("Value", '{"text": "hello again"}')
    browser.press("Send")
    admin.see("offset 1", "hello again")
    changes = world.audit_log.read_text()
    assert "letters" in changes
    assert "hello" not in changes


def test_the_live_tail_shows_messages_as_they_come(admin: Person, world: World) -> None:
    _create(world, "news")
    browser = admin.open("/topics/news/messages")
    browser.press("Live tail")
    browser.wait(lambda: "Connecting" not in browser.text("#live-status"), "the stream")
    with Producer(world.client) as producer:
        for number in range(3):
            producer.send("news", b"headline %d" % number)
            producer.flush()
            admin.see(f"headline {number}")
    assert browser.count(ROWS) == 3


def test_messages_are_downloaded(admin: Person) -> None:
    browser = admin.open(f"/topics/{ORDERS}/messages?filter=ann")
    browser.press("Download")
    form = """const form = document.querySelector('.message-download form');
        return form.action + '?' + new URLSearchParams(new FormData(form));"""
    fetch = "const [url, done] = arguments; fetch(url).then((answer) => answer.text()).then(done);"
    lines = str(browser.run_async(fetch, browser.run(form))).splitlines()
    assert {json.loads(line)["key"] for line in lines} == {"ann"}
    assert len(lines) == RECORDS // len(CUSTOMERS)


def _create(world: World, topic: str) -> None:
    with Admin(world.client) as client:
        client.create_topics([NewTopic(topic, 1, 3)]).all()
