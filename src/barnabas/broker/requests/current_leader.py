"""The current leader of a partition and its address (KIP-951).

Fetch and Produce send it with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH, so that a client need not refresh its metadata first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.topics.metadata_cache import AliveBroker
from barnabas.endpoint import EndPoint
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_LEADER: Final = -1
NO_EPOCH: Final = -1


class CurrentLeader(NamedTuple):
    """`broker` and `endpoint` are None if the leader has no endpoint on the client's listener."""

    leader_id: int
    leader_epoch: int
    broker: AliveBroker | None
    endpoint: EndPoint | None


def current_leader(broker: Broker, partition: TopicPartition, listener_name: str) -> CurrentLeader:
    """The leader from this broker's partition if it hosts one, else from the metadata cache."""
    hosted = broker.replica_manager.partition(partition)
    if hosted is not None:
        leader_id, leader_epoch = hosted.leader_id, hosted.leader_epoch
    else:
        state = broker.metadata_cache.partition_info(partition.topic, partition.partition)
        leader_id, leader_epoch = (NO_LEADER, NO_EPOCH) if state is None else (state.leader, state.leader_epoch)
    alive = next((alive for alive in broker.metadata_cache.alive_brokers() if alive.id == leader_id), None)
    endpoint = alive.endpoint(listener_name) if alive is not None else None
    return CurrentLeader(leader_id, leader_epoch, alive if endpoint is not None else None, endpoint)
