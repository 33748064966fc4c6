"""The replica fetchers of a broker: whom they follow, and whom no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.config import BrokerConfig, DynamicBrokerConfig
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.replication.replica_fetchers import ReplicaFetchers
from barnabas.endpoint import EndPoint
from barnabas.errors import KafkaError
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.fetch_request import FetchRequest
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


class Recording(BrokerLinks):
    """Keeps the requests and answers none."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__("test", replicas.manager.clock, Random(1))
        self.asked: list[tuple[Message, int]] = []
        self.first = asyncio.Event()

    async def ask(self, broker_id: int, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        self.asked.append((request, version))
        self.first.set()
        raise KafkaError("no answer")


@pytest.mark.parametrize(("version", "fetch_version", "replica_id", "broker_epoch"), [("3.9", 17, -1, 7), ("3.4", 13, 1, None)])
async def test_the_version_of_a_fetch_follows_from_the_protocol_between_brokers(
    replicas: Replicas, version: str, fetch_version: int, replica_id: int, broker_epoch: int | None
) -> None:
    manager, links = replicas.manager, Recording(replicas)
    manager.config = DynamicBrokerConfig(BrokerConfig({**manager.config.current.properties, "inter.broker.protocol.version": version}))
    fetchers = ReplicaFetchers(manager, lambda number: links, lambda broker_id: EndPoint("PLAINTEXT", "other", 1), lambda: 7)
    replicas.lead(leader=2, replicas=(1, 2))
    fetchers.follow([replicas.partition()])
    async with asyncio.timeout(30):
        await links.first.wait()
    request, asked_version = links.asked[0]
    assert isinstance(request, FetchRequest)
    epoch = None if request.replica_state is None else request.replica_state.replica_epoch
    assert (asked_version, request.replica_id, epoch) == (fetch_version, replica_id, broker_epoch)
    received = parse(FetchRequest, serialize(request, asked_version), asked_version)
    assert 1 in (received.replica_id, received.replica_state and received.replica_state.replica_id)
    await fetchers.close()
