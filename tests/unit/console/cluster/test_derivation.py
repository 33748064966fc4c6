"""Snapshots from readings: rates, lag, stuck partitions, health in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.client.admin.cluster.cluster import ClusterDescription
from barnabas.client.admin.cluster.log_dirs import LogDirDescription, ReplicaInfo
from barnabas.client.admin.groups.group_descriptions import GroupListing, GroupState, GroupType
from barnabas.client.admin.topics.topic_descriptions import TopicDescription, TopicPartitionInfo
from barnabas.client.cluster import Node
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.console.cluster.broker_load import absent_brokers, broker_loads
from barnabas.console.cluster.derivation import STUCK_MS, Derivation
from barnabas.console.cluster.health import health_of
from barnabas.console.cluster.reader import Readings
from barnabas.console.cluster.snapshot import ClusterSnapshot
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

ONE, TWO = Node(1, "one", 9092), Node(2, "two", 9092)
ORDERS = TopicPartition("orders", 0)


def readings(end: int = 100, committed: int | None = None, leader: Node | None = ONE, isr: tuple[Node, ...] = (ONE, TWO)) -> Readings:
    partition = TopicPartitionInfo(0, leader, (ONE, TWO), isr)
    made = Readings(
        cluster=ClusterDescription("cluster", ONE, (ONE, TWO)),
        topics={"orders": TopicDescription("orders", False, (partition,), None, Uuid.ZERO)},
        ends={ORDERS: end},
        starts={ORDERS: 0},
        configs={"orders": {"retention.ms": "604800000", "cleanup.policy": "delete", "min.insync.replicas": "2"}},
        log_dirs={1: {"/data": LogDirDescription(None, {ORDERS: ReplicaInfo(1_000, 0, False)}, 100_000, 50_000)}},
    )
    if committed is not None:
        made.groups = {"billing": GroupListing("billing", GroupType.CLASSIC, "consumer", GroupState.STABLE)}
        made.committed = {"billing": {ORDERS: OffsetAndMetadata(committed)}}
    return made


def snapshot(of: Readings, derivation: Derivation | None = None, monotonic_ms: int = 0) -> ClusterSnapshot:
    return (derivation or Derivation()).snapshot(of, 1_000, monotonic_ms)


def test_a_rate_needs_two_samples() -> None:
    derivation = Derivation()
    derivation.note_ends(readings(100), 0)
    assert snapshot(readings(100), derivation).topics["orders"].records_in_per_s is None
    derivation.note_ends(readings(150), 5_000)
    topic = snapshot(readings(150), derivation).topics["orders"]
    assert topic.records_in_per_s == 10
    assert topic.bytes_in_per_s == pytest.approx(10 * 1_000 / 150)


def test_a_topic_that_was_made_anew_has_no_rate() -> None:
    derivation = Derivation()
    derivation.note_ends(readings(100), 0)
    derivation.note_ends(readings(3), 5_000)
    assert snapshot(readings(3), derivation).topics["orders"].records_in_per_s is None


def test_lag_is_the_end_minus_the_committed_offset() -> None:
    made = snapshot(readings(100, committed=70))
    assert made.groups["billing"].lag == 30
    assert made.topics["orders"].worst_reader == ("billing", 30)
    assert snapshot(readings(100, committed=120)).groups["billing"].lag == 0  # the end was read before the commit
    assert snapshot(readings(100)).topics["orders"].worst_reader is None


def test_lag_does_not_grow_while_offsets_are_not_read_again() -> None:
    """Ends are read more often than committed offsets: what was written in between may have been read as well."""
    derivation = Derivation()
    derivation.note_commits(readings(100, committed=70), 0)
    assert snapshot(readings(500, committed=70), derivation, 5_000).groups["billing"].lag == 30


def test_a_partition_is_stuck_when_its_offset_does_not_move_for_a_minute() -> None:
    derivation = Derivation()
    derivation.note_commits(readings(100, committed=70), 0)
    assert snapshot(readings(100, committed=70), derivation, STUCK_MS - 1).groups["billing"].stuck == ()
    derivation.note_commits(readings(100, committed=70), STUCK_MS)
    assert snapshot(readings(100, committed=70), derivation, STUCK_MS).groups["billing"].stuck == (ORDERS,)
    derivation.note_commits(readings(100, committed=71), STUCK_MS + 1)
    made = snapshot(readings(100, committed=71), derivation, STUCK_MS + 1)
    assert made.groups["billing"].stuck == ()
    assert made.records_out_per_s == 1_000  # one record in one millisecond
    derivation.note_commits(readings(71, committed=71), 10 * STUCK_MS)
    assert snapshot(readings(71, committed=71), derivation, 10 * STUCK_MS).groups["billing"].stuck == ()  # nothing to read


def test_a_healthy_cluster_is_described_in_one_sentence() -> None:
    health = health_of(snapshot(readings()))
    assert health.level == "good"
    assert health.sentence == "All is well: 2 brokers, 1 topic, 1 partition, every replica in sync."


def test_the_worst_problem_is_named_first() -> None:
    offline = health_of(snapshot(readings(leader=None, isr=())))
    assert (offline.level, offline.sentence) == ("bad", "1 partition without a leader.")
    few = health_of(snapshot(readings(isr=(ONE,))))
    assert few.level == "bad"
    assert "min.insync.replicas=2" in few.partitions[0].why
    behind = readings(isr=(ONE,))
    behind.configs = {"orders": {"min.insync.replicas": "1"}}
    assert health_of(snapshot(behind)).sentence == "1 partition under-replicated."
    assert health_of(snapshot(behind)).partitions[0].why == "the replica on broker 2 is not in sync"


def test_full_disks_and_silent_clusters_are_named() -> None:
    full = readings()
    full.log_dirs = {1: {"/data": LogDirDescription(None, {}, 100, 5)}}
    assert health_of(snapshot(full)).sentence == "The disk of /data on broker 1 is 95 % full."
    silent = replace(snapshot(readings()), unknown={"cluster": "no answer"})
    assert health_of(silent).sentence == "The cluster does not answer (no answer)."


def test_the_load_of_brokers() -> None:
    down = readings(isr=(ONE,))
    down.cluster = ClusterDescription("cluster", ONE, (ONE,))
    made = snapshot(down)
    assert absent_brokers(made) == [2]
    assert [(load.broker.id, load.broker.leads, load.not_in_sync, load.fullest) for load in broker_loads(made)] == [(1, 1, 0, 0.5)]
