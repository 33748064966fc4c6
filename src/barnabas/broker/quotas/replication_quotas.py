"""The three throttles of a broker: what it serves as a leader, fetches as a follower, and moves between its log directories.

Rates are dynamic settings of the broker, or of all brokers. The throttled replicas are configs of topics. `barnabas reassign-partitions`
sets both with --throttle, and removes them with --verify.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.broker.quotas.replication_quota import UNBOUNDED, ReplicationQuota, throttled_partitions

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
ALTER_LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


class ReplicationQuotas:
    """`number` returns the value of a setting of windows, which cannot change while the broker runs."""

    def __init__(self, broker_id: int, number: Callable[[str], int]) -> None:
        self._broker_id = broker_id
        self.leader = _quota("replication.quota", number)
        self.follower = _quota("replication.quota", number)
        self.alter_log_dirs = _quota("alter.log.dirs.replication.quota", number)

    def rates_changed(self, broker: Mapping[str, str], default: Mapping[str, str]) -> None:
        """Takes the dynamic settings of this broker and, where it has none, those of all brokers."""
        for name, quota in ((LEADER_RATE, self.leader), (FOLLOWER_RATE, self.follower), (ALTER_LOG_DIRS_RATE, self.alter_log_dirs)):
            text = broker.get(name, default.get(name))
            quota.bound = UNBOUNDED if text is None else int(text)

    def topic_changed(self, topic: str, properties: Mapping[str, str]) -> None:
        """Takes the throttled replicas of a topic from its configs, which are empty if it was deleted."""
        for name, quota in ((LEADER_REPLICAS, self.leader), (FOLLOWER_REPLICAS, self.follower)):
            quota.throttle(topic, throttled_partitions(properties.get(name, ""), self._broker_id))


def _quota(prefix: str, number: Callable[[str], int]) -> ReplicationQuota:
    return ReplicationQuota(number(f"{prefix}.window.num"), number(f"{prefix}.window.size.seconds") * 1000)
