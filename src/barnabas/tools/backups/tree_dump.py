"""tree.json: the persistent znodes of a ZooKeeper tree, and their return into an empty one.

Ephemeral znodes are left out: registrations of brokers and the controller come from the brokers themselves. So are change notifications:
ZooKeeper numbers sequential znodes by the changes below their parent, so a new parent counts from 0. With restored notifications a broker
would ignore every change until the new numbers pass theirs. The znodes are read one after the other while the cluster runs on, as any
client reads them.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Final

from barnabas.metadata import paths
from barnabas.metadata.errors import NodeExists
from barnabas.metadata.tree import Create
from barnabas.tools.command_line.failures import ToolError
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster, on_cluster

_AT_ONCE: Final = 200
_FLEETING: Final = (
    f"{paths.ISR_CHANGE_NOTIFICATION}/",
    f"{paths.LOG_DIR_EVENT_NOTIFICATION}/",
    f"{paths.CONFIG_CHANGES}/",
    f"{paths.ACL_CHANGES}/",
    f"{paths.EXTENDED_ACL_CHANGES}/",
    f"{paths.DELEGATION_TOKEN_CHANGES}/",
    paths.REASSIGN_PARTITIONS,
    paths.PREFERRED_REPLICA_ELECTION,
)


def dump_tree(address: str, path: str) -> int:
    """Writes the znodes below the chroot; returns their number."""
    znodes: list[dict[str, str | None]] = []

    async def read(cluster: ZooKeeperCluster) -> None:
        for znode, node in await cluster.nodes():
            if not node.stat.ephemeral_owner and znode != "/" and not znode.startswith(("/zookeeper", *_FLEETING)):
                znodes.append({"path": znode, "data": None if node.data is None else base64.b64encode(node.data).decode()})

    on_cluster(address, read)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(znodes, file, indent=0)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    return len(znodes)


def load_tree(path: str, address: str) -> int:
    """Creates the znodes; raises ToolError if the tree has topics already. Returns their number. Dumps of earlier versions have change
    notifications, which are left out."""
    with open(path, encoding="utf-8") as file:
        znodes = [
            Create(znode["path"], None if znode["data"] is None else base64.b64decode(znode["data"]))
            for znode in json.load(file)
            if not znode["path"].startswith(_FLEETING)
        ]

    async def write(cluster: ZooKeeperCluster) -> None:
        await _require_empty(cluster, address)
        for first in range(0, len(znodes), _AT_ONCE):  # parents come before their children
            answers = await cluster.tree.handle(znodes[first : first + _AT_ONCE])
            for request, answer in zip(znodes[first : first + _AT_ONCE], answers, strict=True):
                if answer.error is not None and not isinstance(answer.error, NodeExists):
                    raise ToolError(f"{request.path} could not be created in ZooKeeper: {answer.error}")

    on_cluster(address, write, make_chroot=True)
    return len(znodes)


def require_empty_tree(address: str) -> None:
    """Raises ToolError if the tree has topics or brokers, or if ZooKeeper cannot be reached. Creates the chroot."""

    async def check(cluster: ZooKeeperCluster) -> None:
        await _require_empty(cluster, address)

    on_cluster(address, check, make_chroot=True)


async def _require_empty(cluster: ZooKeeperCluster, address: str) -> None:
    if await cluster.topics() or await cluster.brokers():
        raise ToolError(f"The tree at {address} has brokers or topics: name an empty chroot with --zookeeper, such as {address}-restored")
