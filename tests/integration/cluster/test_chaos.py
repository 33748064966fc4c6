"""The short form of `chaos`: one fault of each kind in a row, and two killed brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import cluster, zookeeper
from tests.integration.cluster.chaos import MACHINES, SETTINGS, Chaos
from tests.links import between

FAULTS = ["kill", "cut", "depose", "kill", "cut", "restart zookeeper"]


@pytest.mark.timeout(600)
def test_what_was_acknowledged_outlives_a_row_of_faults(tmp_path: Path) -> None:
    (tmp_path / "zookeeper").mkdir()
    with (
        between(MACHINES) as links,
        zookeeper.running(tmp_path / "zookeeper", links=links) as ensemble,
        cluster.running(tmp_path, ensemble.address, SETTINGS, links) as three,
    ):
        Chaos(three, ensemble, links, seed=3).run(FAULTS)
