"""The replica fetchers of a broker: whom they follow, and whom no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.replication.replica_fetchers import ReplicaFetchers
from tests.unit.broker.replicas import TP, Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    yield replicas
    replicas.close()


def fetchers_of(replicas: Replicas) -> ReplicaFetchers:
    """Nobody has an address that could be fetched from."""
    manager = replicas.manager
    return ReplicaFetchers(manager, lambda number: BrokerLinks("test", manager.clock, Random(1)), lambda broker_id: None, lambda: 7)


async def test_a_follower_fetches_from_its_leader(replicas: Replicas) -> None:
    fetchers = fetchers_of(replicas)
    replicas.lead(leader=2, replicas=(1, 2))
    fetchers.follow([replicas.partition()])
    assert fetchers.followed() == {TP}
    await fetchers.close()


async def test_a_broker_that_is_about_to_stop_follows_nobody_new(replicas: Replicas) -> None:
    fetchers = fetchers_of(replicas)
    fetchers.leave()
    replicas.lead(leader=2, replicas=(1, 2))
    fetchers.follow([replicas.partition()])
    assert fetchers.followed() == set()
    await fetchers.close()
