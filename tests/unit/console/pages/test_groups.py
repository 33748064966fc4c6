"""The pages of groups on a real broker."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin import OffsetAndMetadata
from barnabas.console.web.routes import segment
from barnabas.testing import EmbeddedBroker
from barnabas.topic_partition import TopicPartition
from tests.unit.console.conftest import MakeClient, token

Send = Callable[..., tuple[int, str]]
HOSTILE = "<img src=x onerror=alert(1)>\u202e/../?#"


@pytest.fixture
def client(console: MakeClient) -> TestClient:
    return console()


@pytest.fixture
def admin(kafka: EmbeddedBroker) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as made:
        yield made


@pytest.fixture
def send(client: TestClient) -> Send:
    """Sends a form, and returns the status and the page that the person sees then."""
    csrf = token(client.get("/groups").text)

    def post(path: str, **fields: str) -> tuple[int, str]:
        response = client.post(path, data={"csrf": csrf, **fields})
        shown = client.get(response.headers["location"]) if response.status_code == 303 else response
        return response.status_code, html.unescape(shown.text)

    return post


def read_by(admin: Admin, kafka: EmbeddedBroker, group: str, topic: str, offset: int) -> TopicPartition:
    """A topic with 10 records, of which a group has read some."""
    kafka.create_topic(topic)
    with Producer({"bootstrap.servers": kafka.bootstrap_servers}) as producer:
        for _ in range(10):
            producer.send(topic, value=b"x")
        producer.flush()
    partition = TopicPartition(topic, 0)
    admin.alter_consumer_group_offsets(group, {partition: OffsetAndMetadata(offset)}).all()
    return partition


def test_a_reset_shows_what_it_does_before_it_is_done(send: Send, admin: Admin, kafka: EmbeddedBroker) -> None:
    partition = read_by(admin, kafka, "rewinds", "rewound", 7)
    status, page = send("/groups/rewinds/reset/preview", target="earliest")
    assert status == 200
    assert ("<dt>Skipped, never read</dt><dd>0 " in page, "<dt>Read again</dt><dd>7 " in page) == (True, True)
    plan = re.search(r'name="plan" value="(.*?)">', page)
    assert plan is not None
    assert plan[1] == '{"rewound":[[0,7,0]]}'
    assert admin.list_consumer_group_offsets("rewinds")["rewinds"][partition].offset == 7  # type: ignore[union-attr]
    assert "The offsets of rewinds are reset in 1 partition." in send("/groups/rewinds/reset", plan=plan[1])[1]
    assert admin.list_consumer_group_offsets("rewinds")["rewinds"][partition].offset == 0  # type: ignore[union-attr]
    status, page = send("/groups/rewinds/reset", plan=plan[1])
    assert (status, "have changed since the preview" in page) == (409, True)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"target": "shift", "shift": "many"}, "Enter by how many records to go"),
        ({"target": "latest", "topic": "no-topic"}, "The cluster has no topic no-topic."),
        ({"target": "latest", "topic": "orders", "partitions": "9"}, "orders has no partition 9: it has 0 to 2."),
        ({"target": "latest", "partitions": "0"}, "Choose the topic that these partitions are of."),
        ({"target": ""}, "Choose where the offsets go."),
    ],
)
def test_a_reset_that_cannot_be_is_refused_in_words(
    send: Send, admin: Admin, kafka: EmbeddedBroker, fields: dict[str, str], sentence: str
) -> None:
    admin.alter_consumer_group_offsets("refused", {TopicPartition("payments", 0): OffsetAndMetadata(0)}).all()
    status, page = send("/groups/refused/reset/preview", **fields)
    assert (status, sentence in page) == (422, True)


def test_an_active_group_is_not_reset_and_not_deleted_and_its_member_is_removed(
    client: TestClient, send: Send, kafka: EmbeddedBroker
) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "active", "group.instance.id": "i", "enable.auto.commit": "false"}
    with Consumer(settings) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        status, page = send("/groups/active/reset/preview", target="earliest")
        assert (status, "The group is active: its state is Stable, with 1 member." in page) == (422, True)
        status, page = send("/groups/active/delete")
        assert (status, "The group has members" in page) == (409, True)
        member = re.search(r'name="member" value="([^"]+)"', client.get("/groups/active").text)
        assert member is not None
        status, page = send("/groups/active/members", member=member[1])
        assert (status, "is removed from active." in page) == (303, True)
        assert "has left the group already" in send("/groups/active/members", member=member[1])[1]


def test_the_offsets_of_a_topic_and_the_group_are_deleted(client: TestClient, send: Send, admin: Admin, kafka: EmbeddedBroker) -> None:
    read_by(admin, kafka, "leaves", "left", 2)
    page = client.get("/groups/leaves").text
    assert "left</a>-0" in page
    assert "Choose a topic in which the group has offsets." in send("/groups/leaves/forget", topic="orders")[1]
    assert "The offsets of left are deleted from leaves." in send("/groups/leaves/forget", topic="left")[1]


@pytest.mark.parametrize("group", [HOSTILE, "y" * 249, "..", "~x", "a b&c=d%2F"])
def test_a_hostile_name_is_text_and_its_links_work(client: TestClient, admin: Admin, group: str) -> None:
    admin.alter_consumer_group_offsets(group, {TopicPartition("payments", 0): OffsetAndMetadata(0)}).all()
    link = f"/groups/{segment(group)}"
    assert client.get(link).status_code == 200  # also makes the list look anew
    page = client.get("/groups").text
    assert f'href="{html.escape(link)}"' in page
    for text in (page, client.get(link).text, client.get(f"{link}/reset").text, client.get("/topics/payments/readers").text):
        assert "<img src=x" not in text
        assert "\u202e" not in text
    assert client.get("/topics/payments/readers").text.count(html.escape(link)) == 1
    assert admin.delete_consumer_groups([group]).all() == {group: None}
