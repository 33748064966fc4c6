"""The embedded tree and a real ZooKeeper respond the same to random histories: results, errors, counters, events."""

from __future__ import annotations

import asyncio
import itertools

from hypothesis import HealthCheck, given, settings

from barnabas.metadata.local import LocalTree
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests.tree_histories import HISTORIES, History, responses_of
from tests.zookeeper import ZooKeeper

_numbers = itertools.count()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
def test_the_embedded_tree_and_zookeeper_say_the_same(zookeeper: ZooKeeper, history: History) -> None:
    remote = ZooKeeperTree(ZooKeeperOptions(parse(f"{zookeeper.address}/same-{next(_numbers)}"), session_timeout_ms=10_000))
    assert asyncio.run(responses_of(remote, history)) == asyncio.run(responses_of(LocalTree(now_ms=lambda: 1), history))
