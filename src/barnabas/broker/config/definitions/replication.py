"""Replication: fetching, the ISR, leader election.

Definitions of broker settings: name, type, default, validator, importance, update mode, and description. Names, types and defaults are
those of Apache Kafka 4.2; the descriptions are our own.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.keys import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, READ_ONLY, STRING, BrokerConfigKey, key
from barnabas.config_def import Range

# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("min.insync.replicas", INT, 1, Range(1), HIGH, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE,
        "Default of the topic setting of the same name."),
    key("unclean.leader.election.interval.ms", LONG, 300_000, Range(1), MEDIUM, READ_ONLY,
        "How often partitions without a leader are looked through for an unclean election.", hidden=True),
    key("replica.lag.time.max.ms", LONG, 30_000, None, HIGH, READ_ONLY,
        "A follower that has not caught up for so long is out of sync."),
    key("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY,
        "How long the leader may hold a follower's fetch. Less than replica.lag.time.max.ms."),
    key("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY,
        "Bytes a follower's fetch waits for."),
    key("replica.fetch.max.bytes", INT, 1_048_576, Range(0), MEDIUM, READ_ONLY,
        "Bytes a follower fetches of one partition; a larger first batch comes whole."),
    key("replica.fetch.response.max.bytes", INT, 10_485_760, Range(0), MEDIUM, READ_ONLY,
        "Bytes a follower's fetch is answered with in all."),
    key("replica.fetch.backoff.ms", INT, 1_000, Range(0), MEDIUM, READ_ONLY,
        "How long a follower rests after a failed fetch."),
    key("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, None, HIGH, READ_ONLY,
        "How often high watermarks are written to disk."),
    key("replica.socket.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY,
        "How long a follower waits for an answer of the leader."),
    key("replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH, READ_ONLY,
        "SO_RCVBUF of the connections replicas fetch on."),
    key("replica.selector.class", STRING, None, None, MEDIUM, READ_ONLY,
        "A class that chooses the replica a consumer reads from. Without one it is the leader."),
    key("num.replica.fetchers", INT, 1, Range(1), HIGH, CLUSTER_WIDE,
        "Fetchers for each leader a broker follows."),
    key("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY,
        "Movers of replicas between log directories; as many as directories if not set."),
    key("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY,
        "Whether leadership is moved back to preferred replicas automatically."),
    key("leader.imbalance.check.interval.seconds", LONG, 300, Range(1), HIGH, READ_ONLY,
        "How often that is looked at."),
    key("controller.socket.timeout.ms", INT, 30_000, None, MEDIUM, READ_ONLY,
        "How long the controller and brokers wait for each other's answers."),
)
# fmt: on
