"""Prometheus' own promtool parses what a broker shows, and finds fault only with names that dashboards of Kafka need."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.broker.config.metrics_listener import DIALECTS
from barnabas.client import Consumer, Producer
from tests import broker
from tests.cluster import free_port

# The faults that promtool finds, each with the names that may have it.
_HISTOGRAMS = (
    r"kafka_network_requestmetrics_\w+|kafka_log_logflushstats_logflushrateandtimems|kafka_controller_\w+ms"
    r"|kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms|kafka_server_addpartitionstotxnmanager_verificationtimems"
)
_COUNTS = (
    rf"({_HISTOGRAMS})_count|kafka_server_group_coordinator_metrics_\w+_count"
    r"|kafka_server_socket_server_metrics_expired_connections_killed_count"
    r"|kafka_utils_throttler_cleaner_io_count|kafka_server_addpartitionstotxnmanager_verificationfailurerate_count"
)
NEEDED = {
    'counter metrics should have "_total" suffix': _COUNTS,
    'non-histogram and non-summary metrics should not have "_count" suffix': (
        rf"{_COUNTS}|kafka_server_socket_server_metrics_connection_count|kafka_log_logcleanermanager_uncleanable_partitions_count"
    ),
    'non-histogram and non-summary metrics should not have "_sum" suffix': r"kafka_consumergroup_(lag|current_offset)_sum",
    'non-summary metrics should not have "quantile" label': _HISTOGRAMS,
    "label names should be written in 'snake_case' not 'camelCase'": r"kafka_(server|log|network)_\w+",
    "metric names should not contain abbreviated units": r"kafka_log_logcleanermanager_time_since_last_run_ms",
}
ROOT = Path(__file__).parents[2]
LINTED = 3  # the exit code for a text that parses and has faults


# Those of all dialects together.
OF_ALL_DIALECTS = {
    **NEEDED,
    'non-counter metrics should not have "_total" suffix': (
        r"kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total|kafka_server_socketservermetrics_\w+_total"
    ),
    'non-histogram and non-summary metrics should not have "_count" suffix': (
        NEEDED['non-histogram and non-summary metrics should not have "_count" suffix'] + r"|kafka_server_socketservermetrics_\w+_count"
    ),
    'non-histogram and non-summary metrics should not have "_sum" suffix': (
        NEEDED['non-histogram and non-summary metrics should not have "_sum" suffix']
        + r"|redpanda_kafka_consumer_group_lag_sum|kminion_kafka_\w+_sum"
    ),
}


def fault_that_is_not_needed(fault: str, needed: Mapping[str, str] = NEEDED) -> bool:
    """Whether a line of promtool names a metric that no dashboard of Kafka needs with this fault."""
    name, _, complaint = fault.partition(" ")
    return re.fullmatch(needed.get(complaint, ""), name) is None


def test_promtool_parses_the_metrics_and_knows_the_faults_of_kafkas_names(tmp_path: Path) -> None:
    text = checked_metrics(tmp_path, NEEDED)
    assert b'kafka_consumergroup_lag{consumergroup="readers",topic="to-pic",partition="0"}' in text


def test_promtool_parses_all_dialects_in_one_text(tmp_path: Path) -> None:
    text = checked_metrics(tmp_path, OF_ALL_DIALECTS, "--override", f"metrics.dialects={','.join(DIALECTS)}")
    for name in (
        b'kafka_server_brokertopicmetrics_bytesinpersec_total{topic="to-pic"}',
        b'kafka_server_brokertopicmetrics_bytesinpersec{topic="to-pic"}',
        b'redpanda_kafka_request_bytes_total{redpanda_namespace="kafka",redpanda_topic="to-pic",redpanda_request="produce"}',
        b'kminion_kafka_consumer_group_topic_lag{group_id="readers",topic_name="to-pic"}',
    ):
        assert b"\n" + name in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_promtool_parses_each_dialect_alone(dialect: str, tmp_path: Path) -> None:
    checked_metrics(tmp_path, OF_ALL_DIALECTS, "--override", f"metrics.dialects={dialect}")


def checked_metrics(tmp_path: Path, needed: dict[str, str], *options: str) -> bytes:
    """The metrics of a broker with a producer and a consumer, which promtool has parsed."""
    listener = f"http://127.0.0.1:{free_port()}"
    with broker.running(tmp_path, ["--override", f"metrics.listener={listener}", *options]) as bootstrap:
        with Producer({"bootstrap.servers": bootstrap}) as producer:
            for _ in range(100):
                producer.send("to-pic", value=b"x")
        with Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["to-pic"])
            while not consumer.poll(1):
                pass
        with urllib.request.urlopen(f"{listener}/metrics", timeout=30) as response:
            text: bytes = response.read()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
    faults = checked.stderr.decode().splitlines() + checked.stdout.decode().splitlines()
    assert checked.returncode in (0, LINTED), faults
    assert [fault for fault in faults if fault_that_is_not_needed(fault, needed)] == []
    return text


def test_promtool_finds_no_fault_with_the_alert_rules_and_their_tests_pass() -> None:
    deployed = ROOT / "deploy" / "prometheus"
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(deployed / "alerts.yml"))
    promtool("check", "config", str(deployed / "prometheus.yml"))
    assert promtool("test", "rules", str(ROOT / "tests" / "data" / "alerts.test.yml")).rstrip().endswith("SUCCESS")


def test_each_alert_has_a_unit_test() -> None:
    alerts = re.findall(r"- alert: (\w+)", (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())
    tested = re.findall(r'alertname="(\w+)"', (ROOT / "tests" / "data" / "alerts.test.yml").read_text())
    assert sorted(alerts) == sorted(tested)


def promtool(*arguments: str) -> str:
    """What promtool prints; it must find no fault."""
    checked = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return checked.stdout
