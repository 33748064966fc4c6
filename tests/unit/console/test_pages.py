"""The overview, the pages of brokers, and several clusters in one console."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.console.cluster import reader
from barnabas.console.cluster.snapshot import BrokerSnapshot
from barnabas.console.config import ClusterConfig, ConsoleConfig
from barnabas.console.web import rendering
from barnabas.testing import EmbeddedBroker, broker
from tests.unit.console.conftest import MakeClient, token


def test_the_overview_says_how_the_cluster_is(console: MakeClient) -> None:
    text = console().get("/").text
    assert "All is well: 1 broker, " in text
    assert "broker 1" in text


def test_a_request_of_htmx_gets_the_content_alone(console: MakeClient) -> None:
    text = console().get("/brokers", headers={"hx-request": "true"}).text
    assert "<html" not in text
    assert "Broker 1" in text


def test_the_settings_of_a_broker_are_found_by_words_and_changed_ones_come_first(console: MakeClient) -> None:
    client = console()
    everything = client.get("/brokers/1/settings").text
    assert everything.index('class="changed"') < everything.index("<tr>\n", everything.index("<tbody>"))
    text = client.get("/brokers/1/settings?q=retention hours").text
    assert "log.retention.hours" in text
    assert "num.io.threads" not in text
    assert "No setting has these words" in client.get("/brokers/1/settings?q=nothing-like-this").text


def test_a_setting_is_changed_and_removed_at_run_time(console: MakeClient) -> None:
    client = console()
    csrf = token(client.get("/").text)
    form = {"csrf": csrf, "name": "log.cleaner.threads", "value": "2", "scope": "one"}
    assert client.post("/brokers/1/settings", data=form).status_code == 303
    assert "changed at run time, this broker" in client.get("/brokers/1/settings?q=log.cleaner.threads").text
    refused = client.post("/brokers/1/settings", data=form | {"value": "many"})
    assert refused.status_code == 422
    assert "log.cleaner.threads" in refused.text
    assert client.post("/brokers/1/settings", data=form | {"reset": "1"}).status_code == 303
    assert "changed at run time" not in client.get("/brokers/1/settings?q=log.cleaner.threads").text


def test_a_broker_that_has_named_no_log_directories_has_a_page() -> None:
    one = BrokerSnapshot(1, "localhost", 9092, None, 0, 0, 0)
    load = SimpleNamespace(not_in_sync=0, records_in_per_s=None)
    for unknown, sentence in (({}, "has not said which log directories"), ({"log_dirs": "Not allowed."}, "Not allowed.")):
        values = {"broker": one, "load": load, "snapshot": SimpleNamespace(controller_id=1, unknown=unknown), "log_dirs": [], "tabs": []}
        assert sentence in rendering.content("broker.html", {**values, "base": "", "url": str, "visit": None})


@pytest.mark.parametrize("broker_id", ["0", "99", "x", "-1", "１", "9" * 40, "1.0"])
def test_a_broker_that_is_not_there_is_a_sentence(console: MakeClient, broker_id: str) -> None:
    response = console().get(f"/brokers/{broker_id}")
    assert response.status_code == 404
    assert "The cluster has no broker" in response.text


def test_each_cluster_has_its_own_addresses(console: MakeClient, kafka: EmbeddedBroker) -> None:
    with broker(topics=["elsewhere"]) as other:
        clusters = tuple(ClusterConfig(name, {"bootstrap.servers": at.bootstrap_servers}) for name, at in (("one", kafka), ("two", other)))
        client = console(ConsoleConfig(clusters))
        one, two = client.get("/").text, client.get("/clusters/two/").text
        assert 'href="/clusters/two/"' in one
        assert 'href="/clusters/two/brokers"' in two
        assert client.get("/clusters/one/brokers").status_code == 200
        assert client.get("/clusters/three/").status_code == 404


def test_a_cluster_that_does_not_answer_is_a_page_with_the_fix(console: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "CLUSTER_TIMEOUT_MS", 200)
    down = ClusterConfig("down", {"bootstrap.servers": "127.0.0.1:1"})
    response = console(ConsoleConfig((down,))).get("/")
    assert response.status_code in (503, 504)
    assert "Check that its brokers run" in response.text
