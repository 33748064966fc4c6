"""Brokers of one cluster that are stopped at the same time: the last of them does not wait for another to take its partitions."""

from __future__ import annotations

import signal
from pathlib import Path

from tests import cluster
from tests.integration.cluster.conftest import next_chroot
from tests.integration.cluster.describing import Description, until
from tests.zookeeper import ZooKeeper

# Between two requests of a broker to the controller. Who waits for it has not ended when the test does.
BACKOFF = {"controlled.shutdown.retry.backoff.ms": "600000"}
PARTITIONS = 6


def test_the_last_of_the_brokers_that_stop_does_not_wait_for_the_others(ensemble: ZooKeeper, tmp_path: Path) -> None:
    with cluster.running(tmp_path, next_chroot(ensemble), BACKOFF) as three:
        described = Description(three.bootstrap)
        described.create("t", partitions=PARTITIONS)
        until(lambda: all(described.isr("t", number) == {1, 2, 3} for number in range(PARTITIONS)), "all in sync")
        for broker in three.brokers.values():
            broker.signal(signal.SIGTERM)
        assert [broker.wait() for broker in three.brokers.values()] == [0, 0, 0]
