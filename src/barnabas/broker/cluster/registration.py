"""Registers this broker: creates its ephemeral znode in /brokers/ids.

The zxid of the creation is the broker epoch. When a broker was killed and restarts before its old session has timed out, the old znode
still exists. The registration waits until it is gone; it never deletes a znode of another session.
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
    """Returns the broker epoch. Raises DuplicateBrokerRegistration if the id stays registered for `patience_ms`."""
    path = paths.broker_id(broker_id)
    data = cluster.encode_broker(registration)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_ms / 1000
    is_logged = False
    while True:
        try:
            epoch = (await tree.create(path, data, CreateMode.EPHEMERAL)).stat.czxid
            break
        except NodeExists:
            existing = await tree.exists(path)
        if existing is None:
            continue  # it was deleted in the meantime
        if existing.ephemeral_owner == tree.session_id:  # created by a request whose response was lost with a connection
            epoch = existing.czxid
            break
        if loop.time() >= deadline:
            raise DuplicateBrokerRegistration(
                f"A broker with the id {broker_id} is registered at {path} and does not go away. If it is another broker, give this one "
                "another broker.id"
            )
        if not is_logged:
            is_logged = True
            _log.warning("Broker %d is already registered: waiting for the end of the session of its last run", broker_id)
        await asyncio.sleep(LOOK_AGAIN_S)
    _log.info("Registered broker %d at path %s with epoch %d: %s", broker_id, path, epoch, ",".join(map(str, registration.endpoints)))
    return epoch
