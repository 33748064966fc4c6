"""The short form of `chaos`: a few faults in a row."""

from __future__ import annotations

from pathlib import Path

from tests import cluster
from tests.integration.cluster.chaos import Chaos
from tests.zookeeper import ZooKeeper


def test_what_was_acknowledged_outlives_a_row_of_faults(ensemble: ZooKeeper, tmp_path: Path) -> None:
    address = f"{ensemble.address}/chaos"
    with cluster.running(tmp_path, address) as three:
        Chaos(three, address, seed=3).run(5)
