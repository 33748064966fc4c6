"""Selects the replica that a consumer reads from (KIP-392), if `replica.selector.class` is set.

The leader calls the selector for every fetch of a consumer that knows preferred read replicas, never for a follower. The selector chooses
among the in-sync replicas that have the fetch offset, so that a consumer is not sent to a replica that lags for ever.
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
        """One of `replicas`, which include the leader. None means the leader too."""


class RackAwareReplicaSelector:
    """The leader if it is in the client's rack, else the replica in that rack with the largest log end offset, else the leader."""

    def select(
        self, partition: TopicPartition, client: ClientMetadata, leader: ReplicaView, replicas: Sequence[ReplicaView]
    ) -> ReplicaView | None:
        near = [replica for replica in replicas if client.rack and replica.rack == client.rack]
        if not near or leader in near:
            return leader
        return max(near, key=lambda replica: (replica.log_end_offset, -replica.ms_since_caught_up, replica.broker_id))


def load_selector(config: BrokerConfig) -> ReplicaSelector | None:
    """The selector; None if all consumers read from leaders. A Python class is loaded and configured like a policy.

    Raises InvalidConfig if there is no such class.
    """
    name = config.text(REPLICA_SELECTOR)
    if not name or name == LEADER_ONLY:
        return None
    if name == RACK_AWARE:
        return RackAwareReplicaSelector()
    selector: ReplicaSelector = load_policy(config, REPLICA_SELECTOR, ("configure", "select"))
    return selector


def read_replicas(config: BrokerConfig, metadata_cache: MetadataCache) -> ReadReplicas | None:
    """None if all consumers read from leaders."""
    selector = load_selector(config)
    return None if selector is None else ReadReplicas(selector, metadata_cache)


class ReadReplicas:
    """Calls the selector with this broker's state of the replicas."""

    def __init__(self, selector: ReplicaSelector, metadata_cache: MetadataCache) -> None:
        self._selector = selector
        self._metadata_cache = metadata_cache

    def elsewhere(self, partition: Partition, client: ClientMetadata, request: PartitionFetch, monotonic_ms: int) -> FetchResult | None:
        """The result that sends a consumer to another replica; None if it reads from this one.

        Raises KafkaError if the leader epoch of the consumer is not that of the partition.
        """
        log = partition.leader_log
        if log is None:
            return None
        leader = ReplicaView(partition.host.broker_id, self._metadata_cache.rack(partition.host.broker_id), log.log_end_offset, 0)
        chosen = self._selector.select(
            partition.partition, client, leader, [leader, *self._others(partition, request.offset, monotonic_ms)]
        )
        if chosen is None or chosen.broker_id == leader.broker_id:
            return None
        partition.local_log(request.current_leader_epoch, require_leader=False)
        return FetchResult(0, log.high_watermark, log.last_stable_offset, log.log_start_offset, preferred_read_replica=chosen.broker_id)

    def _others(self, partition: Partition, offset: int, monotonic_ms: int) -> list[ReplicaView]:
        """The live in-sync followers that have the offset. Another follower would refuse the fetch, and the leader send it there again."""
        in_sync, metadata = partition.isr.committed, self._metadata_cache
        return [
            ReplicaView(
                replica.broker_id, metadata.rack(replica.broker_id), replica.log_end_offset, monotonic_ms - replica.last_caught_up_ms
            )
            for replica in partition.remote_replicas.values()
            if replica.broker_id in in_sync
            and metadata.has_alive_broker(replica.broker_id)
            and replica.log_start_offset <= offset <= replica.log_end_offset
        ]
