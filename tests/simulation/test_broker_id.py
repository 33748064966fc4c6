"""A broker with the broker.id of another broker is rejected, and claims its log directories only once it has an id of its own."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.errors import DuplicateBrokerRegistration
from barnabas.simulation.cluster import LOG_DIR, SimulatedBroker, SimulatedCluster
from barnabas.storage.directory.meta_properties import MetaPropertiesFile


@pytest.fixture
def cluster() -> Generator[SimulatedCluster, None, None]:
    cluster = SimulatedCluster(1, 2)
    for broker in cluster.brokers.values():
        broker.start()
    yield cluster
    cluster.world.end()


def stored_id(broker: SimulatedBroker) -> int | None:
    properties = MetaPropertiesFile(broker.files, LOG_DIR).read()
    return None if properties is None else properties.node_id


def test_a_broker_that_was_refused_may_start_in_the_same_directory_with_another_id(cluster: SimulatedCluster) -> None:
    refused = SimulatedBroker(cluster, 3, {"broker.id": "1"})
    with pytest.raises(DuplicateBrokerRegistration, match=r"give this one another broker\.id"):
        refused.start()
    assert stored_id(refused) is None
    refused.kill()
    again = SimulatedBroker(cluster, 4, {})
    again.files = refused.files
    again.start()
    assert (stored_id(again), cluster.registered) == (4, [1, 2, 4])


def test_a_broker_that_was_refused_leaves_a_directory_that_is_its_own_as_it_is(cluster: SimulatedCluster) -> None:
    broker = cluster.brokers[2]
    broker.stop()
    usurper = SimulatedBroker(cluster, 3, {"broker.id": "2"})
    usurper.start()
    with pytest.raises(DuplicateBrokerRegistration):
        broker.start()
    broker.kill()
    usurper.stop()
    broker.start()
    assert (stored_id(broker), cluster.registered) == (2, [1, 2])


def test_a_generated_id_is_stored_when_the_broker_is_registered(cluster: SimulatedCluster) -> None:
    broker = SimulatedBroker(cluster, 3, {"broker.id": "-1"})
    broker.start()
    assert (stored_id(broker), cluster.registered) == (1001, [1, 2, 1001])
    broker.stop()
    broker.start()
    assert (stored_id(broker), cluster.registered) == (1001, [1, 2, 1001])


def test_a_disk_that_does_not_take_the_id_has_failed(cluster: SimulatedCluster, caplog: pytest.LogCaptureFixture) -> None:
    broker = SimulatedBroker(cluster, 3, {})
    broker.files.fail_when(lambda event: event.kind == "write" and "meta.properties" in event.path)
    broker.start_soon()
    cluster.world.run_until(lambda: not broker.is_running)
    assert "meta.properties" in caplog.text and "All log directories have failed" in caplog.text
    assert stored_id(broker) is None
