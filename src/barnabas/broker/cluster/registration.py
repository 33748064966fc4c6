"""How the cluster knows this broker: its node in /brokers/ids, which lives as long as its session with the tree.

The zxid of the node's creation is the epoch of this life of the broker. The node of an earlier life may still be there, when a broker was
killed and is back before its session has timed out: that is waited for, and nobody's node is ever taken away.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.errors import DuplicateBrokerRegistration
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NodeExists
from barnabas.metadata.tree import CreateMode
from barnabas.metadata.znodes import cluster

LOOK_AGAIN_S: Final = 0.1

_log = logging.getLogger(__name__)


async def register(tree: TreeClient, broker_id: int, registration: cluster.BrokerRegistration, patience_ms: int) -> int:
    """The broker's epoch. Raises DuplicateBrokerRegistration if another has the same id for longer than a session lasts."""
    path = paths.broker_id(broker_id)
    data = cluster.encode_broker(registration)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_ms / 1000
    told = False
    while True:
        try:
            epoch = (await tree.create(path, data, CreateMode.EPHEMERAL)).stat.czxid
            break
        except NodeExists:
            found = await tree.exists(path)
        if found is None:
            continue  # it has just gone
        if found.ephemeral_owner == tree.session_id:  # made by a request whose answer was lost with a connection
            epoch = found.czxid
            break
        if loop.time() >= deadline:
            raise DuplicateBrokerRegistration(
                f"A broker with the id {broker_id} is registered at {path} and does not go away. If it is another broker, give this one "
                "another broker.id"
            )
        if not told:
            told = True
            _log.warning("Broker %d is registered already: waiting until the session of its earlier life is over", broker_id)
        await asyncio.sleep(LOOK_AGAIN_S)
    _log.info("Registered broker %d at path %s with epoch %d: %s", broker_id, path, epoch, ",".join(map(str, registration.endpoints)))
    return epoch
