"""Settings that Kafka does not have, mostly limits. Their names begin with `barnabas.`

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. docs/limits.md says which error a
client gets at each limit. DescribeConfigs shows them only where they are set, so that its response is otherwise that of Kafka.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import BOOLEAN, CLUSTER_WIDE, INT, LONG, LOW, MEDIUM, READ_ONLY, BrokerConfigKey, key
from barnabas.config_def import Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("barnabas.authorizer.log.json", BOOLEAN, False, None, LOW, READ_ONLY,
        "Whether the lines of the audit log, the logger kafka.authorizer.logger, are JSON objects.", hidden=True),
    key("barnabas.auto.create.topics.burst", INT, 500, Range(1), MEDIUM, READ_ONLY,
        "Topics that clients may have created at once by asking for their metadata.", hidden=True),
    key("barnabas.auto.create.topics.max", INT, 5_000, Range(0), MEDIUM, READ_ONLY,
        "With so many topics in the cluster, none is created any more because a client asks for its metadata.", hidden=True),
    key("barnabas.auto.create.topics.per.second", INT, 10, Range(0), MEDIUM, READ_ONLY,
        "Topics a second that clients may have created by asking for their metadata, after the burst.", hidden=True),
    key("barnabas.connection.authentication.timeout.ms", INT, 30_000, Range(1), MEDIUM, READ_ONLY,
        "Milliseconds that a client has for its TLS handshake, and then for its SASL authentication, before the connection is closed.",
        hidden=True),
    key("barnabas.group.max.bytes", LONG, 33_554_432, Range(1), MEDIUM, READ_ONLY,
        "Bytes that the members of one group hold at most: ids, metadata, assignments.", hidden=True),
    key("barnabas.groups.max.bytes", LONG, 268_435_456, Range(1), MEDIUM, READ_ONLY,
        "Bytes that all groups of the broker hold at most, committed offsets aside.", hidden=True),
    key("barnabas.offsets.max.bytes", LONG, 536_870_912, Range(1), MEDIUM, READ_ONLY,
        "Bytes that the committed offsets of all groups of the broker hold at most.", hidden=True),
    key("barnabas.partition.producers.max", INT, 20_000, Range(1), MEDIUM, READ_ONLY,
        "Producers that a partition remembers at most; the ones silent for longest are forgotten.", hidden=True),
    key("barnabas.quota.sensors.max", INT, 10_000, Range(1), MEDIUM, READ_ONLY,
        "Users and clients that each client quota is measured for at most; the ones silent for longest are dropped.", hidden=True),
    key("barnabas.request.log.slow.ms", INT, 0, Range(0), LOW, CLUSTER_WIDE,
        "The request log, the logger kafka.request.logger, has only requests that took at least so many milliseconds; 0: all.",
        hidden=True),
    key("barnabas.requests.receiving.max.bytes", LONG, 536_870_912, Range(1), MEDIUM, READ_ONLY,
        "Bytes that large requests hold at most while they arrive; beyond, the connection is closed that takes longest.", hidden=True),
    key("barnabas.telemetry.series.max", INT, 50_000, Range(1), LOW, READ_ONLY,
        "Series of metrics pushed by clients (KIP-714) that the broker keeps at most; further ones are dropped.", hidden=True),
    key("barnabas.transactional.ids.max.bytes", LONG, 134_217_728, Range(1), MEDIUM, READ_ONLY,
        "Bytes that all transactional ids of the broker hold at most.", hidden=True),
)
# fmt: on
