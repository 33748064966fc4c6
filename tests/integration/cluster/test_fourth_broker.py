"""A broker is added, gets its share, and another is drained and stopped, while clients write and read. `make moves` moves more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import zookeeper
from tests.cluster import BrokerProcess, Cluster
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.fourth_broker import proof

MEGABYTES = 50
RATE = 50_000_000


@pytest.mark.timeout(600)
def test_a_broker_is_added_balanced_onto_and_another_drained_and_stopped_under_load(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> None:
    chroot = next_chroot(ensemble)
    cluster = Cluster(tmp_path, chroot)
    try:
        cluster.start()
        proof(cluster, BrokerProcess(4, tmp_path, chroot, {}), MEGABYTES, RATE)
    finally:
        cluster.end()
