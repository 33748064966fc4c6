"""Which replica a consumer is to read from (KIP-392), where `replica.selector.class` names somebody who decides it.

The leader asks for every fetch of a consumer that can be sent elsewhere; brokers that replicate are never asked for. A selector sees the
replicas that are in sync and have the offset wanted, and picks one; it never sends anybody to a replica that may lag for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.config.policies import load_policy
from barnabas.broker.partitions.fetch_params import ClientMetadata, FetchResult, PartitionFetch
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.topics.metadata_cache import MetadataCache

REPLICA_SELECTOR: Final = "replica.selector.class"
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_ONLY: Final = "org.apache.kafka.common.replica.LeaderSelector"


class ReplicaView(NamedTuple):
    """A replica as a selector sees it."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    ms_since_caught_up: int


class ReplicaSelector(Protocol):
    def select(
        self, partition: TopicPartition, client: ClientMetadata, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView | None:
        """One of `replicas`, among which the leader is; None stands for the leader too."""


class RackAwareReplicaSelector:
    """The leader if it stands in the client's rack, else whichever replica there has come furthest, else the leader."""

    def select(
        self, partition: TopicPartition, client: ClientMetadata, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView | None:
        near = [replica for replica in replicas if client.rack and replica.rack == client.rack]
        if not near or leader in near:
            return leader
        return max(near, key=lambda replica: (replica.log_end_offset, -replica.ms_since_caught_up, replica.broker_id))


def load_selector(config: BrokerConfig) -> ReplicaSelector | None:
    """Who decides; None where everybody reads from leaders. A Python class is made and configured as a policy is.

    Raises InvalidConfig if there is no such class.
    """
    name = config.text(REPLICA_SELECTOR)
    if not name or name == LEADER_ONLY:
        return None
    if name == RACK_AWARE:
        return RackAwareReplicaSelector()
    selector: ReplicaSelector = load_policy(config, REPLICA_SELECTOR)
    return selector


def read_replicas(config: BrokerConfig, metadata_cache: MetadataCache) -> ReadReplicas | None:
    """None where everybody reads from leaders."""
    selector = load_selector(config)
    return None if selector is None else ReadReplicas(selector, metadata_cache)


class ReadReplicas:
    """Asks the selector, with what this broker knows of the replicas."""

    def __init__(self, selector: ReplicaSelector, metadata_cache: MetadataCache) -> None:
        self._selector = selector
        self._metadata_cache = metadata_cache

    def elsewhere(self, found: Partition, client: ClientMetadata, wanted: PartitionFetch, monotonic_ms: int) -> FetchResult | None:
        """The answer that sends a consumer to another replica; None if it is to read here.

        Raises KafkaError where the consumer's leader epoch is not the partition's.
        """
        log = found.leader_log
        if log is None:
            return None
        leader = ReplicaView(found.host.broker_id, self._metadata_cache.rack(found.host.broker_id), log.log_end_offset, 0)
        chosen = self._selector.select(found.partition, client, leader, [leader, *self._others(found, wanted.offset, monotonic_ms)])
        if chosen is None or chosen.broker_id == leader.broker_id:
            return None
        found.local_log(wanted.current_leader_epoch, require_leader=False)
        return FetchResult(0, log.high_watermark, log.last_stable_offset, log.log_start_offset, preferred_read_replica=chosen.broker_id)

    def _others(self, found: Partition, offset: int, monotonic_ms: int) -> list[ReplicaView]:
        """The live followers that are in sync and have the offset: a consumer sent to one that lags would be sent there again and again."""
        in_sync, metadata = found.isr.committed, self._metadata_cache
        return [
            ReplicaView(
                replica.broker_id, metadata.rack(replica.broker_id), replica.log_end_offset, monotonic_ms - replica.last_caught_up_ms
            )
            for replica in found.remote_replicas.values()
            if replica.broker_id in in_sync
            and metadata.has_alive_broker(replica.broker_id)
            and replica.log_start_offset <= offset <= replica.log_end_offset
        ]
