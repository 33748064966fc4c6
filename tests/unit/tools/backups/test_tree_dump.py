"""The dump of a ZooKeeper tree, and what brokers notice in a restored one."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.change_listener import ChangeListener
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import CreateMode
from barnabas.tools.backups import tree_dump
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster

PREFIXES = {
    paths.CONFIG_CHANGES: paths.CONFIG_CHANGE_PREFIX,
    paths.ACL_CHANGES: paths.ACL_CHANGE_PREFIX,
    paths.EXTENDED_ACL_CHANGES: paths.ACL_CHANGE_PREFIX,
    paths.DELEGATION_TOKEN_CHANGES: paths.DELEGATION_TOKEN_CHANGE_PREFIX,
}
EARLIER = 5  # notifications before the backup


class Trees:
    """Stands for ZooKeeper ensembles, by their address."""

    def __init__(self) -> None:
        self.trees = {address: LocalTree(lambda: 1000) for address in ("first", "second")}

    def on_cluster(self, address: str, work: Callable[[ZooKeeperCluster], Awaitable[None]], *, make_chroot: bool = False) -> None:
        asyncio.run(self._on_cluster(address, work))

    async def _on_cluster(self, address: str, work: Callable[[ZooKeeperCluster], Awaitable[None]]) -> None:
        client = TreeClient(self.trees[address], lambda: None)
        await client.connect()
        await work(ZooKeeperCluster(client, AdminTree(client, Random(1))))
        await client.close()


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> Trees:
    trees = Trees()
    monkeypatch.setattr(tree_dump, "on_cluster", trees.on_cluster)
    return trees


async def used(cluster: ZooKeeperCluster) -> None:
    await cluster.tree.create_recursive("/config/topics/t", b"{}")
    for path, prefix in PREFIXES.items():
        await cluster.tree.ensure(path)
        for number in range(EARLIER):
            await cluster.tree.create(f"{path}/{prefix}", b"%d" % number, CreateMode.PERSISTENT_SEQUENTIAL)


async def processes_changes(cluster: ZooKeeperCluster) -> None:
    for path, prefix in PREFIXES.items():
        processed: list[bytes] = []

        async def on_change(_: str, data: bytes, processed: list[bytes] = processed) -> None:
            processed.append(data)

        listener = ChangeListener(cluster.tree, path, prefix, on_change, lambda: 0)
        await listener.start()
        await cluster.tree.create(f"{path}/{prefix}", b"new", CreateMode.PERSISTENT_SEQUENTIAL)
        await listener.process()
        await listener.close()
        assert processed == [b"new"], path


def test_changes_in_a_restored_tree_are_processed(trees: Trees, tmp_path: Path) -> None:
    dump = str(tmp_path / "tree.json")
    trees.on_cluster("first", used)
    written = tree_dump.dump_tree("first", dump)
    dumped = [znode["path"] for znode in json.loads(Path(dump).read_text())]
    assert {*PREFIXES, "/config/topics/t"} <= set(dumped)
    assert not any("_change" in path.rpartition("/")[2] for path in dumped if path not in PREFIXES)
    assert tree_dump.load_tree(dump, "second") == written
    trees.on_cluster("second", processes_changes)


def test_notifications_in_a_dump_of_an_earlier_version_are_left_out(trees: Trees, tmp_path: Path) -> None:
    znodes = [parent for path in PREFIXES for parent in paths.with_ancestors(path)]
    znodes += [f"{path}/{prefix}{number:010}" for path, prefix in PREFIXES.items() for number in range(100, 100 + EARLIER)]
    dump = tmp_path / "tree.json"
    dump.write_text(json.dumps([{"path": path, "data": base64.b64encode(b"old").decode()} for path in dict.fromkeys(znodes)]))
    tree_dump.load_tree(str(dump), "second")
    trees.on_cluster("second", processes_changes)
