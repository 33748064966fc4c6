"""The definitions of all broker settings, by name."""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.definitions import (
    groups,
    kraft,
    log,
    network,
    newer,
    own,
    own_metrics,
    own_security,
    remote,
    replication,
    sasl,
    security,
    server,
    transactions,
    zookeeper,
)
from barnabas.broker.config.keys import CLUSTER_WIDE, LONG, MEDIUM, BrokerConfigKey, key
from barnabas.config_def import LONG_MAX, Range

_ALL: Final = (
    *network.KEYS,
    *server.KEYS,
    *log.KEYS,
    *replication.KEYS,
    *groups.KEYS,
    *transactions.KEYS,
    *security.KEYS,
    *sasl.KEYS,
    *remote.KEYS,
    *kraft.KEYS,
    *zookeeper.KEYS,
    *newer.KEYS,
    *own.KEYS,
    *own_security.KEYS,
    *own_metrics.KEYS,
)

BROKER_CONFIGS: Final = {row.name: row for row in sorted(_ALL, key=lambda row: row.name)}
assert len(BROKER_CONFIGS) == len(_ALL), "a setting is defined twice"

# Replication throttles. They are dynamic only: set on a running broker and removed again, never in server.properties.
# fmt: off
DYNAMIC_ONLY_CONFIGS: Final = {row.name: row for row in (
    key("leader.replication.throttled.rate", LONG, LONG_MAX, Range(0), MEDIUM, CLUSTER_WIDE,
        "Bytes a second served to the throttled replicas this broker leads."),
    key("follower.replication.throttled.rate", LONG, LONG_MAX, Range(0), MEDIUM, CLUSTER_WIDE,
        "Bytes a second fetched by the throttled replicas this broker follows with."),
    key("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, Range(0), MEDIUM, CLUSTER_WIDE,
        "Bytes a second moved between log directories."),
)}
# fmt: on

__all__ = ["BROKER_CONFIGS", "DYNAMIC_ONLY_CONFIGS", "BrokerConfigKey"]
