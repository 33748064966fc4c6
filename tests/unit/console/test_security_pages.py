"""The pages pipelines, transactions, access, quotas and telemetry on a real broker, one without and one with an authorizer."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from barnabas.client import Admin, Producer
from barnabas.console.app import make_app
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.testing import EmbeddedBroker, broker

BASE = "http://localhost:8080"
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
    "allow.everyone.if.no.acl.found": "false",
}


class Visitor:
    """A browser without JavaScript."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def page(self, path: str, status: int = 200) -> str:
        response = self._client.get(path)
        assert response.status_code == status, response.text[-500:]
        text = response.text.split("<main")[1].split("<dialog")[0]
        return " ".join(re.sub(r"<[^>]+>", " ", text).split())

    def send(self, path: str, form_on: str = "/quotas", **fields: str) -> tuple[int, str]:
        """The status, and the error that the page shows, or the notice of the next page."""
        token = re.search(r'name="csrf" value="([^"]+)"', self._client.get(form_on).text)
        assert token is not None
        response = self._client.post(path, data={"csrf": token[1], **fields}, headers={"origin": BASE})
        if response.status_code == 303:
            text = self._client.get(response.headers["location"]).text
            notice = re.search(r'class="notice good" role="status">([^<]+)', text)
            return 303, notice[1] if notice is not None else ""
        error = re.search(r'role="alert">([^<]+)', response.text)
        return response.status_code, error[1] if error is not None else ""


@contextmanager
def visiting(kafka: EmbeddedBroker, **options: Any) -> Generator[Visitor, None, None]:
    config = ConsoleConfig((ClusterConfig("test", {"bootstrap.servers": kafka.bootstrap_servers}),), **{"may_write": True, **options})
    with TestClient(make_app(config), base_url=BASE, follow_redirects=False) as client:
        yield Visitor(client)


@pytest.fixture(scope="module")
def kafka() -> Generator[EmbeddedBroker, None, None]:
    with broker(config={"transaction.state.log.num.partitions": 1}) as running:
        running.create_topic("orders", 2)
        yield running


@pytest.fixture(scope="module")
def visitor(kafka: EmbeddedBroker) -> Generator[Visitor, None, None]:
    with visiting(kafka) as one:
        yield one


@pytest.fixture(scope="module")
def guarded() -> Generator[Visitor, None, None]:
    """A console at a broker with an authorizer, of which it is a super user."""
    with broker(config=AUTHORIZER) as running, visiting(running) as one:
        running.create_topic("orders")
        yield one


def test_without_queries_the_page_says_how_to_get_one(visitor: Visitor) -> None:
    assert "No query has published its progress" in visitor.page("/pipelines")
    visitor.page("/pipelines/nobody", 404)


@pytest.mark.parametrize("page", ["--1", "-", "²", "9" * 40, "-1"])
def test_a_number_of_a_page_that_is_none_is_the_first_page(visitor: Visitor, page: str) -> None:
    visitor.page(f"/transactions?page={page}")


def test_quotas_are_set_explained_and_removed(visitor: Visitor) -> None:
    assert visitor.send("/quotas", scope="user", user="alice", producer_byte_rate="1,000,000")[0] == 303
    assert visitor.send("/quotas", scope="user", user="", consumer_byte_rate="5000")[0] == 303
    page = visitor.page("/quotas?user=alice&client=x")
    assert "Produce 1 MB/s user alice" in page
    assert "Fetch 5 kB/s every other user" in page
    assert "Requests no bound" in page
    assert visitor.send("/quotas/remove", user="alice", quota="producer_byte_rate") == (
        303,
        "The quota producer_byte_rate of user alice is removed.",
    )
    assert visitor.send("/quotas/remove", **{"default-user": "1", "quota": "consumer_byte_rate"})[0] == 303
    assert "Nobody has a quota" in visitor.page("/quotas")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"scope": "ip", "ip": "10.0.0.x", "connection_creation_rate": "1"}, "not an IP address"),
        ({"scope": "user", "user": "a", "producer_byte_rate": "-1"}, "must be a number above 0"),
        ({"scope": "user", "user": "a", "producer_byte_rate": "nan"}, "must be a number above 0"),
        ({"scope": "user", "user": "a"}, "Enter at least one quota"),
        ({"scope": "nobody"}, "Choose what the quota is for"),
    ],
)
def test_a_quota_that_cannot_be_set_is_refused_in_words(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    status, error = visitor.send("/quotas", **fields)
    assert (status, words in error) == (422, True), error


def test_a_subscription_of_client_metrics_is_made_changed_and_deleted(visitor: Visitor) -> None:
    assert visitor.send("/telemetry", name="sub", metrics="*", interval="1000", match="client_id=a.*")[0] == 303
    assert visitor.send("/telemetry", name="sub", metrics="org.apache.kafka.producer.", interval="", match="")[0] == 303
    assert "sub org.apache.kafka.producer. all" in visitor.page("/telemetry?edit=sub")
    assert "selects no clients" in visitor.send("/telemetry", name="sub", metrics="*", match="nonsense")[1]
    assert visitor.send("/telemetry/delete", name="sub")[0] == 303
    assert "No client pushes metrics" in visitor.page("/telemetry")


def test_a_scram_user_gets_a_password_and_loses_it(visitor: Visitor) -> None:
    fields = {"name": "alice", "password": "secret", "again": "secret", "mechanism": "SCRAM-SHA-512", "iterations": "4096"}
    assert visitor.send("/access/users", **fields) == (303, "The user alice has a new password for SCRAM-SHA-512.")
    assert "alice SCRAM-SHA-512 4,096 iterations" in visitor.page("/access/users")
    assert "differ" in visitor.send("/access/users", **{**fields, "again": "other"})[1]
    assert visitor.send("/access/users/delete", name="alice", mechanism="SCRAM-SHA-512")[0] == 303
    assert "No user has a password here" in visitor.page("/access/users")


def test_without_an_authorizer_the_page_says_what_to_set(visitor: Visitor) -> None:
    for path in ("/access", "/access/user?name=alice", "/access/resource?name=orders"):
        assert "authorizer.class.name" in visitor.page(path)
    assert visitor.send("/access", type="TOPIC", name="orders", principal="alice", operation="WRITE")[0] == 422


def test_acls_answer_what_alice_may_do_and_who_may_write(guarded: Visitor) -> None:
    def add(**fields: str) -> tuple[int, str]:
        return guarded.send("/access", **{"type": "TOPIC", "operation": "WRITE", "permission": "ALLOW", "pattern": "LITERAL", **fields})

    assert add(name="ord", pattern="PREFIXED", principal="alice") == (
        303,
        "Added the ACL: User:alice may Write topics that begin with ord.",
    )
    assert add(name="orders", principal="User:bob", host="10.0.0.1")[0] == 303
    assert add(name="ord-secret", principal="User:alice", permission="DENY")[0] == 303
    assert "does not exist for a topic" in add(name="orders", principal="bob", operation="CLUSTER_ACTION")[1]
    alice = guarded.page("/access/user?name=alice")
    assert "Write Describe Write except for ord-secret" in alice
    assert "Super users pass every check. Who they are stands in super.users" in alice
    writers = guarded.page("/access/resource?type=TOPIC&operation=WRITE&name=orders")
    assert "User:alice any may allow Write on ord (prefix)" in writers
    assert "User:bob any other may not" in writers
    assert "User:bob 10.0.0.1 may allow Write" in writers
    assert "everybody else any may not no ACL" in writers
    assert guarded.send("/access/delete", type="TOPIC", name="orders", principal="User:bob", host="10.0.0.1", operation="WRITE")[0] == 303
    assert "User:bob" not in guarded.page("/access/resource?type=TOPIC&operation=WRITE&name=orders")


def test_to_look_at_an_id_that_does_not_exist_creates_no_topic() -> None:
    with broker() as running, visiting(running) as one:
        assert "No broker lists the transactional id nobody" in one.page("/transactions/id/nobody", 404)
        assert one.send("/transactions/id/nobody")[0] == 404
        assert "No transaction hangs" in one.page("/transactions/hanging?search=1")
        with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
            assert "__transaction_state" not in admin.list_topics(list_internal=True)


@pytest.fixture
def open_transaction(kafka: EmbeddedBroker) -> Generator[str, None, None]:
    producer: Producer[bytes, bytes] = Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="billing")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"x").result(30)
    yield "billing"
    producer.close(0)


def test_an_open_transaction_is_shown_and_aborted(kafka: EmbeddedBroker, visitor: Visitor, open_transaction: str) -> None:
    assert "billing Ongoing" in visitor.page("/transactions?state=Ongoing")
    assert "orders" in visitor.page(f"/transactions/id/{open_transaction}")
    assert "No transaction hangs" in visitor.page("/transactions/hanging?topic=orders&minutes=0")
    producer = {"topic": "orders", "partition": "0", "producer_id": "0", "producer_epoch": "0", "coordinator_epoch": "0"}
    assert visitor.send("/transactions/hanging", **producer)[0] == 409
    status, notice = visitor.send(f"/transactions/id/{open_transaction}")
    assert (status, "aborted" in notice) == (303, True)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert str(admin.describe_transactions(["billing"])["billing"].state) in ("CompleteAbort", "PrepareAbort", "Empty")
    visitor.page("/transactions/id/nobody", 404)


def test_a_console_that_may_not_write_shows_no_form_and_changes_nothing(kafka: EmbeddedBroker) -> None:
    with visiting(kafka, may_write=False) as reader:
        assert "Set quotas" not in reader.page("/quotas")
