"""The console before Apache Kafka, and before our broker in the same words: every page, and what people do on them."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import closing
from urllib.parse import quote

import pytest

from barnabas.client import Admin, Consumer, Producer, TopicPartition
from barnabas.client.admin import ConfigResource, ConfigResourceType
from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, TaskIds, Topology
from tests.broker import TopicMaker, topic_maker
from tests.console_server import DEADLINE_S, Browser, served
from tests.integration.transactions.wire import Connection

RECORDS = 40
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
JOINS, LEAVES = 0, -1  # epochs of a heartbeat


@pytest.fixture(scope="module")
def config(bootstrap: str) -> ConsoleConfig:
    return ConsoleConfig((ClusterConfig("main", {"bootstrap.servers": bootstrap}),), may_write=True)


@pytest.fixture(scope="module")
def browser(config: ConsoleConfig) -> Generator[Browser, None, None]:
    with served(config) as address:
        yield Browser(address)


@pytest.fixture(scope="module")
def topic(bootstrap: str, new_topic: TopicMaker) -> str:
    """A topic with records, whose second half the group of the same name has not read."""
    name = new_topic("console", partitions=2)
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(RECORDS):
            producer.send(name, key=b"k%d" % number, value=b'{"number": %d}' % number, partition=number % 2)
        producer.flush()
    with Consumer({"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False}) as consumer:
        consumer.assign([TopicPartition(name, 0), TopicPartition(name, 1)])
        consumer.commit_sync({TopicPartition(name, number): RECORDS // 4 for number in range(2)})
    return name


def test_every_page_answers(browser: Browser, config: ConsoleConfig, topic: str, bootstrap: str) -> None:
    transactional_id = f"{topic}-tx"
    with Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id}) as producer:
        producer.init_transactions()
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            (node,) = admin.describe_cluster().nodes
        names = {"/topics": topic, "/dead-letters": topic, "/groups": topic, "/brokers": str(node.id), "/transactions": transactional_id}
        for route in make_app(config).state.routes:
            if route.method != "GET" or route.path.startswith("/pipelines/"):  # there is no query
                continue
            name = names.get(f"/{route.segments[0]}", "")
            path = re.sub(r"\{(name|id)\}", quote(name, safe=""), route.path).replace("{partition}", "0").replace("{offset}", "0")
            browser.page(path, 303 if path == "/login" else 200)


def test_a_topic_is_created_with_the_settings_that_the_broker_has(browser: Browser, topic: str, bootstrap: str) -> None:
    page = browser.page("/create-topic")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        offered = admin.describe_configs([resource])[resource]
    assert set(re.findall(r'<th scope="row"><span class="setting-name">([^<]+)', page)) == set(offered)
    assert f"The brokers' value is {offered['max.message.bytes'].value}" in browser.words("/create-topic")
    name = f"{topic}-made"
    fields = {"name": name, "partitions": "3", "setting.retention.ms": "3600000", "others": "segment.bytes=2000000"}
    status, page = browser.send("/create-topic", **fields)
    assert (status, f"The topic {name} is created." in page) == (303, True), page
    assert "2 changed for this topic" in browser.words(f"/topics/{name}/settings")
    assert browser.send(f"/topics/{name}/settings", setting="retention.ms", value="long")[0] == 422
    assert f"The topic {name} now has 4 partitions." in browser.send(f"/topics/{name}/partitions", count="4")[1]
    assert "have the right leader already" in browser.send(f"/topics/{name}/elect", kind="preferred")[1]
    assert f"The topic {name} is deleted." in browser.send(f"/topics/{name}/delete", name=name)[1]


def test_messages_are_sent_found_and_downloaded(browser: Browser, topic: str) -> None:
    fields = {"key": "sent", "value": '{"by": "hand"}', "value_as": "json", "headers": "trace: x", "partition": "1"}
    assert f"Sent a message to {topic}: partition 1" in browser.send(f"/topics/{topic}/messages/send", **fields)[1]
    assert '"by":"hand"' in browser.words(f"/topics/{topic}/messages").replace(": ", ":")
    found = browser.words(f"/topics/{topic}/messages?kind=path&filter={quote('$.number == 7')}")
    assert re.search(r'"number": ?7\b', found) is not None and '"number":8' not in found.replace(": ", ":")
    assert '"number":0' in browser.words(f"/topics/{topic}/messages?start=offset&offset=0&limit=20").replace(": ", ":")
    assert browser.page(f"/topics/{topic}/messages/download?format=jsonl&key=k7&partition=1").count("\n") == 1


def test_offsets_of_a_group_are_reset_after_a_preview(browser: Browser, topic: str, bootstrap: str) -> None:
    assert "Empty" in browser.words(f"/groups/{topic}")
    preview = browser.send(f"/groups/{topic}/reset/preview", target="earliest", topic=topic)
    assert preview[0] == 200 and f"Read again {2 * (RECORDS // 4)} records" in preview[1]
    plan = f'{{"{topic}":[[0,{RECORDS // 4},0]]}}'
    status, page = browser.send(f"/groups/{topic}/reset", plan=plan)
    assert (status, f"The offsets of {topic} are reset in 1 partition." in page) == (303, True), page
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        offsets = admin.list_consumer_group_offsets(topic)[topic]
    committed = offsets[TopicPartition(topic, 0)]
    assert committed is not None and committed.offset == 0


def test_quotas_users_and_telemetry_are_changed(browser: Browser, topic: str) -> None:
    assert browser.send("/quotas", scope="user", user=topic, producer_byte_rate="1000")[0] == 303
    assert browser.send("/quotas/remove", user=topic, quota="producer_byte_rate")[0] == 303
    password = {"name": topic, "password": "secret", "again": "secret", "mechanism": "SCRAM-SHA-512", "iterations": "4096"}
    assert browser.send("/access/users", **password)[0] == 303
    assert browser.send("/access/users/delete", name=topic, mechanism="SCRAM-SHA-512")[0] == 303
    assert browser.send("/telemetry", name=topic, metrics="*", interval="60000", match="")[0] == 303
    assert browser.send("/telemetry/delete", name=topic)[0] == 303


def test_a_transactional_id_that_is_not_there_is_a_page_that_says_so(browser: Browser, topic: str) -> None:
    assert "No broker lists the transactional id" in browser.words(f"/transactions/id/{topic}-none", 404)


def test_what_a_broker_does_not_offer_is_said_in_words(browser: Browser) -> None:
    assert "authorizer.class.name" in browser.words("/access")
    assert "The tokens cannot be shown" in browser.words("/access/tokens")
    assert "This console does not know the addresses of this cluster's metrics" in browser.words("/telemetry")
    assert "Bytes in, about" in browser.words("/")
    assert "root" in browser.words("/brokers/1/loggers")


@pytest.mark.java
def test_a_streams_group_is_shown_reset_and_deleted(apache_kafka: str, worker_id: str) -> None:
    topic = topic_maker(apache_kafka, worker_id)("streams", partitions=2)
    with Producer({"bootstrap.servers": apache_kafka}) as producer:
        producer.send(topic, value=b"x", partition=1)
        producer.flush()
    group = f"{topic}-app"
    one = ClusterConfig("main", {"bootstrap.servers": apache_kafka})
    with served(ConsoleConfig((one,), may_write=True)) as address, closing(Connection(apache_kafka)) as wire:
        browser = Browser(address)
        _beat(wire, group, topic, JOINS)
        page = browser.words(f"/groups/{group}")
        assert "Type streams Members 1" in page and MEMBER in page
        assert "The group is active" in browser.send(f"/groups/{group}/reset/preview", target="latest", topic=topic)[1]
        _beat(wire, group, topic, LEAVES)
        assert browser.send(f"/groups/{group}/reset/preview", target="latest", topic=topic)[0] == 200
        assert browser.send(f"/groups/{group}/reset", plan=f'{{"{topic}":[[1,null,1]]}}')[0] == 303
        with Admin({"bootstrap.servers": apache_kafka}) as admin:
            committed = admin.list_consumer_group_offsets(group)[group][TopicPartition(topic, 1)]
        assert committed is not None and committed.offset == 1
        assert f"The group {group} is deleted with its offsets." in browser.send(f"/groups/{group}/delete")[1]


def _beat(wire: Connection, group: str, topic: str, epoch: int) -> None:
    """A heartbeat of the only member of a streams group. The coordinator may have to be made first."""
    joins = epoch == JOINS
    tasks: list[TaskIds] | None = [] if joins else None
    request = StreamsGroupHeartbeatRequest(
        group,
        MEMBER,
        epoch,
        rebalance_timeout_ms=30_000 if joins else -1,
        topology=Topology(1, [Subtopology("0", [topic])]) if joins else None,
        active_tasks=tasks,
        standby_tasks=tasks,
        warmup_tasks=tasks,
        process_id=MEMBER if joins else None,
        client_tags=[] if joins else None,
    )
    until = time.monotonic() + DEADLINE_S
    while True:
        wire.ask(FindCoordinatorRequest(group), 3)
        response = wire.ask(request, 0)
        if response.error_code not in (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ):
            assert response.error_code == 0, response
            return
        assert time.monotonic() < until, response
        time.sleep(0.1)
