"""Apache Kafka's own tools say the same of three of our brokers as of three brokers of Apache Kafka, whatever befalls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import cluster, zookeeper
from tests.integration.cluster.tool_story import KEPT, SETTINGS, TICK_MS, told
from tests.once import once

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]  # three brokers and Java on a machine that may be busy

KAFKA: dict[str, str] = json.loads(KEPT.read_text())


@pytest.fixture(scope="session")
def said(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, str]:
    """By what is asked for: what a tool said of our brokers."""
    made = once(tmp_path_factory, worker_id, "cluster-tools.json", lambda: json.dumps(_told(tmp_path_factory.mktemp("tools"))))
    result: dict[str, str] = json.loads(made)
    return result


def _told(directory: Path) -> dict[str, str]:
    (directory / "zookeeper").mkdir()
    with zookeeper.running(directory / "zookeeper", TICK_MS) as ensemble, cluster.running(directory, ensemble.address, SETTINGS) as ours:
        printed = told(ours, directory)
        assert ours.tracebacks() == []
    return printed


@pytest.mark.parametrize("name", KAFKA)
def test_a_tool_says_the_same_of_three_brokers_as_of_kafkas(name: str, said: dict[str, str]) -> None:
    assert said[name] == KAFKA[name]
