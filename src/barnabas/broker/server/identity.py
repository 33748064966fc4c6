"""The cluster id and the broker id of this broker. The metadata store and the log directories both record them and must agree.

A log directory of another broker is rejected: serving it would expose and overwrite that broker's data.
"""

from __future__ import annotations

from random import Random

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig
from barnabas.errors import InvalidMetaProperties
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NodeExists
from barnabas.metadata.znodes import cluster
from barnabas.storage.directory.log_dir import LogDir
from barnabas.uuid import Uuid


async def cluster_id(tree: TreeClient, log_dirs: list[LogDir], random: Random) -> str:
    """The cluster id of the metadata store. A new store gets a new id, unless the log directories already belong to another store."""
    znode = await tree.get(paths.CLUSTER_ID)
    if znode is not None:
        return cluster.decode_cluster_id(znode.data)
    for log_dir in log_dirs:
        _refuse_foreign(log_dir)
    new = str(Uuid.random(random))
    try:
        await tree.create_recursive(paths.CLUSTER_ID, cluster.encode_cluster_id(new))
    except NodeExists:
        return await cluster_id(tree, log_dirs, random)
    return new


def _refuse_foreign(log_dir: LogDir) -> None:
    if log_dir.meta.read() is not None or log_dir.partition_dirs():
        raise InvalidMetaProperties(
            f"The log directory {log_dir.path} has data of another broker and no metadata of this one. To take over what Apache Kafka has "
            f"written there, run: barnabas adopt {log_dir.path}. For a new broker, choose an empty directory."
        )


async def broker_id(tree: TreeClient, log_dirs: list[LogDir], config: BrokerConfig) -> int:
    """The id in the config, else the one in the log directories, else the next free number above reserved.broker.max.id."""
    if config.broker_id >= 0:
        return config.broker_id
    stored = {meta.node_id for log_dir in log_dirs if (meta := log_dir.meta.read()) is not None and meta.node_id is not None}
    if len(stored) > 1:
        raise InvalidMetaProperties(
            f"Stored broker.ids {', '.join(map(str, sorted(stored)))} don't match in the log directories. This could happen if multiple "
            "brokers shared a log directory (log.dirs) or partial data was manually copied from another broker."
        )
    if stored:
        return stored.pop()
    if not config.flag("broker.id.generation.enable"):
        raise InvalidConfig("broker.id is not set and broker.id.generation.enable is false: set broker.id")
    await tree.ensure(paths.BROKER_SEQUENCE_ID)
    stat = await tree.set_data(paths.BROKER_SEQUENCE_ID, b"")
    return stat.version + config.number("reserved.broker.max.id")
