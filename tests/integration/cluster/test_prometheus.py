"""A real Prometheus scrapes three brokers under load: its rates are those of the load, and the rules and the dashboard of deploy/ and the
public dashboards for Kafka find their series."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Admin, Consumer, NewTopic, Producer
from barnabas.errors import KafkaError
from tests import cluster, prometheus, zookeeper
from tests.cluster import BrokerProcess, Cluster, free_port
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import until
from tests.integration.test_promtool import LINTED, fault_that_is_not_needed
from tests.prometheus import Prometheus

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "deploy" / "grafana" / "barnabas.json"
PUBLIC = ROOT / "tests" / "data" / "dashboard-selectors.json"
RECORDS = 3_000
_SELECTOR = re.compile(r"\b(?:up|(?:kafka|barnabas|process)_\w+)\b(?:\{[^}]*\})?")
_VARIABLES = {"$job": "barnabas", "$instance": ".+", "$topic": ".+", "$group": ".+", "$__rate_interval": "1m"}


@pytest.fixture(scope="module")
def scraped(ensemble: zookeeper.ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Cluster, Prometheus], None, None]:
    """Three brokers and a Prometheus after a load: records, a group that has read a part of them, a request with an error."""
    directory = tmp_path_factory.mktemp("scraped")
    settings = {"metrics.listener": f"http://127.0.0.1:{free_port()}"}
    with cluster.running(directory, next_chroot(ensemble), settings) as three:
        targets = [metrics_address(broker) for broker in three.brokers.values()]
        with prometheus.running(directory, targets) as server:
            load(three.bootstrap, server)
            yield three, server
        assert three.tracebacks() == []


def metrics_address(broker: BrokerProcess) -> str:
    """`host:port` of the metrics listener."""
    address: str = re.findall(r"Metrics are at http://(\S+)/metrics", broker.said())[-1]
    return address


def load(bootstrap: str, server: Prometheus) -> None:
    client = {"bootstrap.servers": bootstrap}
    with Admin(client) as admin:
        admin.create_topics([NewTopic("orders", replicas_assignments={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})]).all()
        with pytest.raises(KafkaError):
            admin.describe_topics(["no-such-topic"]).all()
    counter = 'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"}'
    until(lambda: server.value(f"count({counter} == 0)") == 3, "each broker's counter of the topic is scraped before its first record")
    with Producer({**client, "linger.ms": "5"}) as producer:
        for number in range(RECORDS):
            producer.send("orders", value=b"x" * 200, partition=number % 3)
    with Consumer({**client, "group.id": "readers", "auto.offset.reset": "earliest", "max.poll.records": "100"}) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.poll(1):
            pass
        consumer.commit_sync()
    until(lambda: server.value(f"sum({counter})") == RECORDS, "the last record is scraped")
    until(lambda: server.query('kafka_consumergroup_lag{consumergroup="readers"}') != [], "the lag of the group is scraped")


def test_all_brokers_are_up_and_the_rates_of_bytes_in_are_those_of_the_load(scraped: tuple[Cluster, Prometheus]) -> None:
    _, server = scraped
    assert server.targets_up() == 3
    counter = 'kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}'
    produced = server.value('sum(max by (partition) (kafka_log_log_size{topic="orders"}))')  # nothing else is in these logs
    assert produced > RECORDS * 200
    assert server.value(f"sum({counter})") == produced
    # rate() extrapolates by at most 1.1 intervals at each end of the samples.
    samples = server.value(f"min(count_over_time({counter}[30m]))")
    increased = server.value(f"sum(rate({counter}[30m])) * 1800")
    assert produced * 0.999 <= increased <= produced * (1 + 2.3 / (samples - 1))
    assert server.value('sum(kafka_server_brokertopicmetrics_bytesin_total{topic=""})') >= produced


def test_the_alert_rules_load_and_their_metrics_exist(scraped: tuple[Cluster, Prometheus]) -> None:
    _, server = scraped
    until(lambda: all(rule["health"] == "ok" for rule in server.rules()), "each rule is evaluated without an error")
    rules = server.rules()
    assert len(rules) > 20
    unmatched = {selector: rule["name"] for rule in rules for selector in _SELECTOR.findall(rule["query"]) if not server.query(selector)}
    assert unmatched == {}
    critical = [rule["name"] for rule in rules if rule["state"] == "firing" and rule["labels"]["severity"] == "critical"]
    assert critical == []


def test_each_expression_of_the_dashboard_finds_a_series(scraped: tuple[Cluster, Prometheus]) -> None:
    _, server = scraped
    dashboard = json.loads(DASHBOARD.read_text())
    titles = {expression: title for title, expression in expressions(dashboard)}
    assert len(titles) > 50
    until(lambda: [titles[expression] for expression in titles if not server.query(expression)] == [], "each panel has a series")
    for variable in dashboard["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", with_values(variable["definition"])).groups()  # type: ignore[union-attr]
        assert all(series["metric"][label] for series in server.query(selector)), variable["name"]
        assert server.query(selector), variable["name"]


def expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The title of each panel, and each expression as Grafana sends it."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], with_values(target["expr"])


def with_values(expression: str) -> str:
    for variable, value in _VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def test_each_series_that_public_dashboards_select_is_found(scraped: tuple[Cluster, Prometheus]) -> None:
    _, server = scraped
    rows = json.loads(PUBLIC.read_text())["selectors"]
    unmatched = set()
    for row in rows:
        labels = [*row["matchers"], *(f'{label}!=""' for label in row["labels"])]
        if not server.query(f"{row['metric']}{{{','.join(labels)}}}"):
            unmatched.add(row["metric"])
    assert unmatched == set()


def test_promtool_parses_the_metrics_of_each_broker(scraped: tuple[Cluster, Prometheus]) -> None:
    three, _ = scraped
    for broker in three.brokers.values():
        with urllib.request.urlopen(f"http://{metrics_address(broker)}/metrics", timeout=30) as response:
            text = response.read()
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
        faults = checked.stderr.decode().splitlines() + checked.stdout.decode().splitlines()
        assert checked.returncode == LINTED, faults
        assert [fault for fault in faults if fault_that_is_not_needed(fault)] == []
