"""Names and values from anybody: HTML, scripts, characters that turn text, long names, no UTF-8, 20 MB. All are shown as text.

The fixture `browser` checks after each test that nothing ran and that no request left the machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from urllib.parse import quote, urlencode

import confluent_kafka
import pytest

from barnabas.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from barnabas.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.client.errors import TopicExists
from tests.chromium import Browser
from tests.integration.console.person import Person
from tests.integration.console.world import World

HTML = """"'><img src=x onerror="window.__ran=1"><script>window.__ran=2</script><a href="javascript:window.__ran=3">{{7*7}}</a>"""
TURNED = "\u202egnp.exe\u202c"  # shown as exe.png by what follows the characters' direction
EMOJI = "👩\u200d🚀🦜"
NAME = f"{HTML} {EMOJI} {TURNED}"
SHOWN = f"{HTML} {EMOJI} U+202Egnp.exeU+202C"
TOPIC = "hostile"
DEAD = "hostile-dead"
LARGE = "hostile-large"
LONG = "n" * 249
LARGE_BYTES = 20_000_000
QUERIES = "__barnabas_queries"


@pytest.fixture(scope="module")
def hostile(world: World) -> Generator[None, None, None]:
    with Admin(world.client) as admin:
        large = NewTopic(LARGE, 1, 1, configs={"max.message.bytes": str(2 * LARGE_BYTES)})
        admin.create_topics([*(NewTopic(topic, 1, 1) for topic in (TOPIC, DEAD, LONG)), large]).all()
        queries = admin.create_topics([NewTopic(QUERIES, 1, 1, configs={"cleanup.policy": "compact,delete"})])
        assert all(isinstance(error, TopicExists) for error in queries.errors.values())  # a Spark query may have made it
        admin.alter_consumer_group_offsets(NAME, {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}).all()
        quota = {"producer_byte_rate": 1000.0}
        admin.alter_client_quotas([ClientQuotaAlteration(ClientQuotaEntity({"client-id": NAME}), quota)]).all()
        pattern = ResourcePattern(ResourceType.GROUP, HTML.replace("/", ""), PatternType.LITERAL)  # it becomes the name of a znode
        entry = AccessControlEntry(f"User:{NAME}", "*", AclOperation.READ, AclPermissionType.ALLOW)
        admin.create_acls([AclBinding(pattern, entry)]).all()
        pushed = [AlterConfigOp("metrics", "org.apache.kafka.producer.")]
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.CLIENT_METRICS, NAME): pushed}).all()
    name = NAME.encode()
    with Producer({**world.client, "max.request.size": 2 * LARGE_BYTES, "buffer.memory": 4 * LARGE_BYTES}) as producer:
        producer.send(TOPIC, name, key=name, headers=[(NAME, name)])
        producer.send(TOPIC, json.dumps({NAME: [NAME]}).encode(), key=b"json")
        producer.send(TOPIC, b"\xff\xfe</pre><script>window.__ran=4</script>\x00", key=b"\xc3(", headers=[("bytes", b"\xff")])
        errors = {"message": name, "format": name, "topic": name, "partition": b"0", "offset": b"0"}
        producer.send(DEAD, name, key=name, headers=[(f"__barnabas.errors.{key}", value) for key, value in errors.items()])
        producer.send(LONG, b"1")
        piece = b"</pre><script>window.__ran=5</script>"
        producer.send(LARGE, piece * (LARGE_BYTES // len(piece) + 1), key=b"large")
        producer.send(QUERIES, json.dumps(_query()).encode(), key=b"hostile-query/source/1")
        producer.flush()
    paying = confluent_kafka.Producer({**world.librdkafka, "transactional.id": NAME, "transaction.timeout.ms": 600_000})
    paying.init_transactions()
    paying.begin_transaction()
    paying.produce(TOPIC, b"open", b"open")
    paying.flush()
    yield
    paying.abort_transaction()


def _query() -> dict[str, object]:
    """What a query with a hostile name would publish."""
    topic = {"name": NAME, "partitions": 1, "start": 0, "end": 1, "latest": 1}
    own = {"version": 1, "kind": "source", "part": "1", "queryId": "hostile-query", "runId": NAME, "name": NAME, "batch": 1, "source": NAME}
    now_ms = int(time.time() * 1000)
    return {**own, "plannedMs": now_ms, "inputRows": 1, "arrivedPerSecond": 1.0, "topics": [topic], "topicsLeftOut": 0, "batches": []}


@pytest.mark.usefixtures("hostile")
def test_names_are_shown_as_text_on_every_page(admin: Person) -> None:
    group, transaction = f"/groups/{quote(NAME, safe='')}", f"/transactions/id/{quote(NAME, safe='')}"
    pages = [
        f"/groups?{urlencode({'q': 'window.__ran'})}",
        group,
        f"{group}/reset",
        f"/topics/{TOPIC}/readers",
        f"/topics/{TOPIC}/producers",
        f"/topics/{TOPIC}/messages",
        f"/topics/{TOPIC}/messages/0/0",
        f"/dead-letters/{DEAD}",
        "/pipelines",
        "/pipelines/hostile-query",
        "/transactions",
        transaction,
        "/access?q=window.__ran",
        f"/access/user?{urlencode({'name': f'User:{NAME}'})}",
        f"/access/resource?{urlencode({'type': 'GROUP', 'operation': 'READ', 'name': NAME})}",
        f"/quotas?{urlencode({'q': 'window.__ran', 'user': NAME, 'client': NAME})}",
        "/telemetry",
    ]
    browser = admin.browser
    for path in pages:
        admin.reload_until(path, SHOWN[:55])  # a long name may be cut, and lists are some seconds old
        _check_nothing_ran(browser, path)
    admin.open(f"/topics/{TOPIC}/messages/0/1")
    assert HTML in json.loads(browser.texts("main pre")[1]).popitem()[0]
    admin.open(f"/topics/{TOPIC}/messages/0/0")
    assert browser.texts("main pre") == [SHOWN, SHOWN]


@pytest.mark.usefixtures("hostile")
def test_names_in_addresses_are_shown_as_text_or_not_at_all(admin: Person) -> None:
    name = quote(NAME, safe="")
    names = ("q", "filter", "key", "offset", "time", "partition", "start", "kind", "sort", "edit", "name", "next")
    arguments = urlencode(dict.fromkeys(names, NAME))
    pages = ["/", "/topics", f"/topics/{TOPIC}/messages", "/groups", "/access", "/quotas", "/transactions", "/pipelines", "/telemetry"]
    for path in [f"/topics/{name}", f"/groups/{name}x", f"/brokers/{name}", f"/{name}", *(f"{page}?{arguments}" for page in pages)]:
        browser = admin.open(path)
        assert "A fault in the console" not in browser.text(), path
        _check_nothing_ran(browser, path)
    browser.messages()  # of pages that are not there


@pytest.mark.usefixtures("hostile")
def test_questions_and_live_messages_show_names_as_text(admin: Person, world: World) -> None:
    browser = admin.open("/access?q=window.__ran")
    browser.press("Delete")
    assert HTML in browser.wait(lambda: browser.text("#confirm-question"), "the question")
    browser.type_keys("ESCAPE")
    admin.open(f"/topics/{TOPIC}/messages?live=1&start=beginning")
    browser.wait(lambda: "Connecting" not in browser.text("#live-status"), "the stream")
    with Producer(world.client) as producer:
        producer.send(TOPIC, f"live {NAME}".encode(), key=NAME.encode())
        producer.flush()
    browser.wait(lambda: f"live {SHOWN}" in browser.text("#message-rows"), "the message")
    _check_nothing_ran(browser, "the live tail")


@pytest.mark.usefixtures("hostile")
def test_bytes_that_are_no_text_long_names_and_large_values_are_shown(admin: Person) -> None:
    browser = admin.open(f"/topics/{TOPIC}/messages/0/2")
    browser.wait(lambda: browser.count("main pre") == 2, "key and value")
    _check_nothing_ran(browser, "bytes")
    for kind in ("text", "hex"):
        admin.open(f"/topics/{TOPIC}/messages/0/2?values={kind}&keys={kind}")
        admin.see("\\xff\\xfe</pre><script>" if kind == "text" else "ff fe")
    for path in ("/topics?q=nnnn", f"/topics/{LONG}", f"/topics/{LONG}/messages", f"/topics/{LONG}/settings"):
        admin.open(path)
        assert LONG in browser.text("main")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), path
    admin.open(f"/topics/{LARGE}/messages")
    admin.see("20.0 MB")
    admin.open(f"/topics/{LARGE}/messages/0/0")
    admin.see("Only the beginning is shown")
    assert browser.text("main pre:last-of-type")
    _check_nothing_ran(browser, "20 MB")


def test_the_policy_refuses_scripts_in_the_page_and_other_hosts(admin: Person) -> None:
    browser = admin.open("/")
    header = "const done = arguments[0]; fetch('/').then((answer) => done(answer.headers.get('content-security-policy')));"
    policy = str(browser.run_async(header))
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    browser.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", '<img src="data:," onerror="window.__ran = 6">')
    browser.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.__ran = 7'}))")
    fetch = "const done = arguments[0]; fetch('http://127.0.0.2:9/').then(() => done('sent'), () => done('refused'));"
    assert browser.run_async(fetch) == "refused"
    browser.wait(lambda: len(_violations(browser)) >= 3, "three reports of the browser")


_seen: list[str] = []


def _violations(browser: Browser) -> list[str]:
    _seen.extend(one for one in browser.messages() if "Content Security Policy" in one)
    return _seen


def _check_nothing_ran(browser: Browser, where: str) -> None:
    assert not browser.is_asking(), where
    assert browser.run("return window.__ran") is None, where
    assert browser.count("main script, main img, main [onerror], main a[href^='javascript:']") == 0, where
