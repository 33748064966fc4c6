"""A ZooKeeper for all tests of this folder; each cluster has a chroot and directories of its own."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from pathlib import Path

import pytest

from tests import cluster, zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Generator[zookeeper.ZooKeeper, None, None]:
    with zookeeper.running(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def next_chroot(ensemble: zookeeper.ZooKeeper) -> str:
    """The address of a tree that no other cluster has."""
    return f"{ensemble.address}/cluster-{next(_numbers)}"


@pytest.fixture
def three(ensemble: zookeeper.ZooKeeper, tmp_path: Path) -> Generator[cluster.Cluster, None, None]:
    """Three brokers."""
    with cluster.running(tmp_path, next_chroot(ensemble)) as running:
        yield running
