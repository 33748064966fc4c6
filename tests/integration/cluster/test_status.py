"""`barnabas status` of a cluster of which one broker was killed, while the cluster does not know it yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas import cli
from tests import cluster, zookeeper

TICK_MS = 3_000
SESSION_TIMEOUT_MS = 20 * TICK_MS  # ZooKeeper's maximum: the broker that is killed stays registered while the test lasts


def test_a_broker_that_was_killed_is_down_while_the_cluster_still_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zookeeper").mkdir()
    settings = {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    with zookeeper.running(tmp_path / "zookeeper", TICK_MS) as ensemble, cluster.running(tmp_path, ensemble.address, settings) as three:
        three.brokers[3].kill()
        code = cli.main(["status", "--bootstrap-server", three.brokers[1].address, "--json"])
        health = json.loads(capsys.readouterr().out)
    assert (code, health["status"]) == (2, "CRITICAL")
    assert [broker["isDown"] for broker in health["brokers"]] == [False, False, True]
    assert f"broker 3 is down: {three.brokers[3].address} refuses connections" in [problem["text"] for problem in health["problems"]]
