"""A snapshot of the cluster."""

from __future__ import annotations

from barnabas.client.cluster import Cluster, Node, PartitionInfo
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

ONE, TWO = Node(1, "one", 9092, "rack-a"), Node(2, "two", 9092)
GONE = Node(3, "", -1)
ID = Uuid(bytes(15) + b"\x01")
CLUSTER = Cluster(
    [ONE, TWO],
    [
        PartitionInfo("t", 1, None, (TWO, GONE), (), (GONE,), 4),
        PartitionInfo("t", 0, ONE, (ONE, TWO), (ONE,), (), 3),
    ],
    cluster_id="c",
    controller_id=2,
    topic_ids={"t": ID},
)


def test_partitions_in_order_and_those_with_a_leader() -> None:
    assert [info.partition for info in CLUSTER.partitions_for_topic("t")] == [0, 1]
    assert [info.partition for info in CLUSTER.available_partitions_for_topic("t")] == [0]
    assert CLUSTER.partition_count("t") == 2
    assert CLUSTER.partition_count("none") is None and CLUSTER.partitions_for_topic("none") == ()


def test_leaders_and_epochs() -> None:
    assert CLUSTER.leader_for(TopicPartition("t", 0)) == ONE and CLUSTER.leader_epoch(TopicPartition("t", 0)) == 3
    assert CLUSTER.leader_for(TopicPartition("t", 1)) is None and CLUSTER.leader_epoch(TopicPartition("none", 0)) == -1
    assert [info.partition for info in CLUSTER.partitions_for_node(1)] == [0]


def test_nodes_controller_and_ids() -> None:
    assert CLUSTER.node_by_id(2) == TWO and CLUSTER.node_by_id(9) is None and CLUSTER.controller == TWO
    assert CLUSTER.topic_id("t") == ID and CLUSTER.topic_id("none") == Uuid.ZERO and CLUSTER.topic_name(ID) == "t"


def test_a_replica_that_is_online() -> None:
    assert CLUSTER.node_if_online(TopicPartition("t", 0), 2) == TWO
    assert CLUSTER.node_if_online(TopicPartition("t", 1), 3) is None
    assert CLUSTER.node_if_online(TopicPartition("t", 1), 1) is None
    assert CLUSTER.node_if_online(TopicPartition("none", 0), 1) is None


def test_bootstrap_ids_are_negative() -> None:
    cluster = Cluster.bootstrap([("a", 1), ("b", 2)])
    assert [node.id for node in cluster.nodes] == [-1, -2] and cluster.is_bootstrap and not CLUSTER.is_bootstrap


def test_nodes_read_as_kafka_writes_them() -> None:
    assert str(ONE) == "one:9092 (id: 1 rack: rack-a isFenced: false)"
    assert str(TWO) == "two:9092 (id: 2 rack: null isFenced: false)"
    assert ONE.has_rack and not TWO.has_rack and GONE.is_empty and not ONE.is_empty
