"""The throttle of one kind of replication: which replicas are throttled, and whether they have used up their rate.

As Kafka's ReplicationQuotaManager: the bytes of all throttled replicas are counted, also of those in sync, but only replicas that are not
in sync wait while the rate is exceeded. A replica in the ISR that waited would leave the ISR. Every replica makes progress, however low the
rate: a fetch is never cut short, and the next one waits until the measured rate has fallen to the bound.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from barnabas.broker.quotas.sampled_rate import SampledRate
from barnabas.topic_partition import TopicPartition

UNBOUNDED: Final = 2**63 - 1
ALL_REPLICAS: Final = frozenset({-1})  # the value * of a throttled.replicas config
_REPLICA: Final = re.compile(r"\s*([0-9]+):([0-9]+)\s*")


class ReplicationQuota:
    """`is_in_use` is False while no replica is throttled; callers on the path of a fetch check it first."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self.bound = UNBOUNDED  # bytes a second
        self.is_in_use = False
        self._rate = SampledRate(samples, window_ms)
        self._throttled: dict[str, Collection[int]] = {}  # the throttled partitions by topic

    def throttle(self, topic: str, partitions: Collection[int]) -> None:
        """Throttles exactly these partitions of a topic."""
        if partitions:
            self._throttled[topic] = partitions
        else:
            self._throttled.pop(topic, None)
        self.is_in_use = bool(self._throttled)

    def is_throttled(self, partition: TopicPartition) -> bool:
        partitions = self._throttled.get(partition.topic)
        return partitions is not None and (partitions is ALL_REPLICAS or partition.partition in partitions)

    def record(self, size: int, monotonic_ms: int) -> None:
        self._rate.record(size, monotonic_ms)

    def is_exceeded(self, monotonic_ms: int) -> bool:
        return self.bound != UNBOUNDED and self._rate.simple_rate(monotonic_ms) > self.bound

    def byte_rate(self, monotonic_ms: int) -> float:
        """Bytes a second of the throttled replicas."""
        return self._rate.simple_rate(monotonic_ms)


def throttled_partitions(replicas: str, broker_id: int) -> Collection[int]:
    """The partitions that a throttled.replicas config names for a broker: `partition:broker` pairs, or * for all. None where the config is
    malformed, as one that was written to the metadata store by hand may be."""
    if replicas.strip() == "*":
        return ALL_REPLICAS
    pairs = [_REPLICA.fullmatch(replica) for replica in replicas.split(",")]
    return frozenset(int(pair[1]) for pair in pairs if pair is not None and int(pair[2]) == broker_id)
