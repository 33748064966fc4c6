"""The pages of topics on a real broker."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from barnabas.client import Admin, Producer
from barnabas.testing import EmbeddedBroker
from tests.unit.console.conftest import MakeClient, token

Send = Callable[..., tuple[int, str]]


@pytest.fixture
def client(console: MakeClient) -> TestClient:
    return console()


@pytest.fixture
def send(client: TestClient) -> Send:
    """Sends a form, and returns the status and the page that the person sees then."""
    csrf = token(client.get("/topics").text)

    def post(path: str, **fields: str) -> tuple[int, str]:
        response = client.post(path, data={"csrf": csrf, **fields})
        shown = client.get(response.headers["location"]) if response.status_code == 303 else response
        return response.status_code, html.unescape(shown.text)

    return post


def test_the_list_is_searched_and_hides_internal_topics(client: TestClient, kafka: EmbeddedBroker) -> None:
    kafka.create_topic("searched-one")
    page = client.get("/topics?q=SEARCHED").text
    assert 'href="/topics/searched-one"' in page
    assert 'href="/topics/payments"' not in page
    assert "__consumer_offsets" not in client.get("/topics").text
    assert "No topic has this in its name" in client.get("/topics?q=nothing+like+it").text


def test_a_topic_is_created_with_settings_and_deleted_again(send: Send, kafka: EmbeddedBroker) -> None:
    fields = {"setting.retention.ms": "1000000", "others": "segment.bytes=2000000"}
    status, page = send("/create-topic", name="made-here", partitions="2", replication="1", **fields)
    assert (status, "The topic made-here is created." in page) == (303, True)
    status, page = send("/topics/made-here/delete", name="made-her")
    assert (status, "Type the name of the topic, made-here, to delete it." in page) == (422, True)
    status, page = send("/topics/made-here/delete", name="made-here")
    assert (status, "The topic made-here is deleted." in page) == (303, True)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "Give the topic a name."),
        ({"name": "a<b>"}, "contains one or more characters other than ASCII alphanumerics"),
        ({"name": "orders"}, "A topic with this name exists"),
        ({"name": "t", "partitions": "none"}, "The number of partitions is a whole number from 1"),
        ({"name": "t", "replication": "5"}, "cannot be reached because only 1 broker(s) are registered"),
        ({"name": "t", "others": "retention.ms"}, "is not name=value"),
        ({"name": "t", "others": "no.such=1"}, "Unknown topic config name: no.such"),
        ({"name": "t", "setting.retention.ms": "1", "others": "retention.ms=2"}, "retention.ms is given twice."),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_words_and_keeps_what_was_entered(send: Send, fields: dict[str, str], sentence: str) -> None:
    status, page = send("/create-topic", **fields)
    assert status in (409, 422)
    assert sentence in page
    assert all(value in page for value in fields.values())


def test_partitions_are_added_and_not_removed(send: Send, kafka: EmbeddedBroker) -> None:
    kafka.create_topic("grows", 2)
    assert "The topic has 2 partitions: enter a larger number." in send("/topics/grows/partitions", count="2")[1]
    assert "The topic grows now has 4 partitions." in send("/topics/grows/partitions", count="4")[1]


def test_a_setting_is_changed_and_reset(client: TestClient, send: Send, kafka: EmbeddedBroker) -> None:
    kafka.create_topic("tuned")
    assert "How long records are kept" in client.get("/topics/tuned/settings?edit=retention.ms").text
    assert "retention.ms of tuned is set to 5000." in send("/topics/tuned/settings", setting="retention.ms", value="5000")[1]
    assert "1 changed for this topic" in client.get("/topics/tuned/settings").text
    status, page = send("/topics/tuned/settings", setting="retention.ms", value="long")
    assert (status, "Invalid value long for configuration retention.ms" in page) == (422, True)
    assert "that of the brokers again" in send("/topics/tuned/settings", setting="retention.ms", reset="1")[1]
    assert "0 changed for this topic" in client.get("/topics/tuned/settings").text


def test_all_records_are_deleted_after_the_name_is_typed(client: TestClient, send: Send, kafka: EmbeddedBroker) -> None:
    kafka.create_topic("full")
    with Producer({"bootstrap.servers": kafka.bootstrap_servers}) as producer:
        producer.send("full", value=b"x")
        producer.flush()
    assert send("/topics/full/empty", name="ful")[0] == 422
    assert "All records of full are deleted." in send("/topics/full/empty", name="full")[1]


def test_open_transactions_and_their_producers_are_shown(client: TestClient, kafka: EmbeddedBroker) -> None:
    kafka.create_topic("written")
    with Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "tx-<b>"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("written", value=b"x")
        producer.flush()
        page = client.get("/topics/written/producers").text
        producer.abort_transaction()
    assert "1 open transaction<" in page
    assert "tx-&lt;b&gt;" in page
    assert "since offset 0" in page


def test_elections_and_moves_that_do_nothing_are_refused_in_words(send: Send) -> None:
    for kind in ("preferred", "unclean"):
        assert "these partitions have the right leader already" in send("/topics/orders/elect", kind=kind)[1]
    assert "Choose a kind of election" in send("/topics/orders/elect", kind="any")[1]
    assert "No partition has other replicas than before" in send("/topics/orders/move", **{"replicas-0": "1"})[1]
    assert "There is no running broker 7" in send("/topics/orders/move", **{"replicas-0": "7"})[1]
    assert "Enter bytes a second, at least 1,024" in send("/topics/orders/move", **{"replicas-0": "7", "rate": "5"})[1]
    assert "there is nothing to throttle" in send("/reassignments/throttle", rate="50 MB")[1]
    assert "This reassignment has ended already." in send("/reassignments/cancel", all="1")[1]


@pytest.mark.parametrize(
    "path", ["/topics/nothing-here", "/topics/%3Cscript%3E/readers", "/groups/a%2Fb", "/topics/nothing-here/producers"]
)
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "or your user may not see it" in response.text
    assert "<script>" not in response.text


def test_a_console_that_only_reads_has_no_forms_and_changes_nothing(console: MakeClient, kafka: EmbeddedBroker) -> None:
    reader = console(may_write=False)
    page = reader.get("/topics/orders").text
    assert 'method="post"' not in page
    assert reader.post("/topics/orders/delete", data={"csrf": token(page), "name": "orders"}).status_code == 403
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        assert "orders" in admin.list_topics()
