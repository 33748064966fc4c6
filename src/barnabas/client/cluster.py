"""A snapshot of a cluster: its nodes and the leaders of its partitions.

A `Cluster` is immutable: `Metadata` replaces it as a whole. So it can be read from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NO_LEADER_EPOCH: Final = -1
COORDINATOR_IDS: Final = 2**31 - 1  # the separate connection to a coordinator has the id COORDINATOR_IDS - broker id, as in Java
_BROKER_IDS_END: Final = COORDINATOR_IDS // 2


@dataclass(frozen=True, slots=True)
class Node:
    """A broker. Nodes of bootstrap.servers have negative ids until their real ids are known."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    @property
    def id_string(self) -> str:
        """The id as text."""
        return str(self.id)

    @property
    def has_rack(self) -> bool:
        """Whether the broker has a `broker.rack`."""
        return self.rack is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is no address: Kafka's way to say that there is no such node."""
        return not self.host or self.port < 0

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def place(self) -> str:
        """The address and the setting that it comes from, for messages about connections."""
        if self.id < 0:
            return f"{self.address} (bootstrap.servers)"
        broker_id = self.id if self.id < _BROKER_IDS_END else COORDINATOR_IDS - self.id
        return f"{self.address} (advertised.listeners of broker {broker_id})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id} rack: {self.rack or 'null'} isFenced: {str(self.is_fenced).lower()})"


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """`leader` is None while there is no leader, or while its address is not known."""

    topic: str
    partition: int
    leader: Node | None
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()
    leader_epoch: int = NO_LEADER_EPOCH

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that this describes."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """The leader of a partition, if known, and its leader epoch (-1 if the broker did not return it)."""

    leader: Node | None
    epoch: int = NO_LEADER_EPOCH


class Cluster:
    """A snapshot. Topics that the client may not see or cannot name are in `unauthorized_topics` and `invalid_topics`; unknown topics are
    absent."""

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        partitions: Iterable[PartitionInfo] = (),
        *,
        cluster_id: str | None = None,
        controller_id: int | None = None,
        topic_ids: Mapping[str, Uuid] | None = None,
        unauthorized_topics: Iterable[str] = (),
        invalid_topics: Iterable[str] = (),
        internal_topics: Iterable[str] = (),
        is_bootstrap: bool = False,
    ) -> None:
        self.cluster_id = cluster_id
        self.is_bootstrap = is_bootstrap
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.unauthorized_topics = frozenset(unauthorized_topics)
        self.invalid_topics = frozenset(invalid_topics)
        self.internal_topics = frozenset(internal_topics)
        self.topic_ids: dict[str, Uuid] = dict(topic_ids or {})
        self.topic_names: dict[Uuid, str] = {topic_id: name for name, topic_id in self.topic_ids.items()}
        self._nodes = {node.id: node for node in self.nodes}
        self.controller: Node | None = None if controller_id is None else self._nodes.get(controller_id)
        self._partitions: dict[TopicPartition, PartitionInfo] = {info.topic_partition: info for info in partitions}
        by_topic: dict[str, list[PartitionInfo]] = {}
        for info in self._partitions.values():
            by_topic.setdefault(info.topic, []).append(info)
        self._by_topic = {topic: tuple(sorted(infos, key=_index)) for topic, infos in by_topic.items()}
        self._available = {topic: tuple(info for info in infos if info.leader is not None) for topic, infos in self._by_topic.items()}

    @classmethod
    def bootstrap(cls, addresses: Iterable[tuple[str, int]]) -> Cluster:
        """The cluster before the first Metadata response: only addresses, with the ids -1, -2, …"""
        return cls([Node(-1 - number, host, port) for number, (host, port) in enumerate(addresses)], is_bootstrap=True)

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that are known."""
        return frozenset(self._by_topic)

    def node_by_id(self, node_id: int) -> Node | None:
        """The broker with this id; None if it is not known."""
        return self._nodes.get(node_id)

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        """Leader and replicas of a partition; None if it is not known."""
        return self._partitions.get(partition)

    def partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions in the order of their numbers; empty for an unknown topic."""
        return self._by_topic.get(topic, ())

    def available_partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions that have a leader."""
        return self._available.get(topic, ())

    def partition_count(self, topic: str) -> int | None:
        """The number of partitions of a topic; None if the topic is not known."""
        infos = self._by_topic.get(topic)
        return None if infos is None else len(infos)

    def partitions_for_node(self, node_id: int) -> list[PartitionInfo]:
        """The partitions that a broker leads."""
        return [info for info in self._partitions.values() if info.leader is not None and info.leader.id == node_id]

    def leader_for(self, partition: TopicPartition) -> Node | None:
        """The broker that leads the partition; None if it has no leader or is not known."""
        info = self._partitions.get(partition)
        return None if info is None else info.leader

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch; -1 if it is not known."""
        info = self._partitions.get(partition)
        return NO_LEADER_EPOCH if info is None else info.leader_epoch

    def node_if_online(self, partition: TopicPartition, node_id: int) -> Node | None:
        """The node, if it has a replica of the partition that is not offline."""
        info = self._partitions.get(partition)
        if info is None or any(node.id == node_id for node in info.offline_replicas):
            return None
        return next((node for node in info.replicas if node.id == node_id), None) and self._nodes.get(node_id)

    def topic_id(self, topic: str) -> Uuid:
        """The topic id; Uuid.ZERO if the broker does not return ids."""
        return self.topic_ids.get(topic, Uuid.ZERO)

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of the topic with this id; None if it is not known."""
        return self.topic_names.get(topic_id)

    def __repr__(self) -> str:
        return f"Cluster(id={self.cluster_id}, nodes={list(map(str, self.nodes))}, topics={sorted(self._by_topic)})"


def _index(info: PartitionInfo) -> int:
    return info.partition
