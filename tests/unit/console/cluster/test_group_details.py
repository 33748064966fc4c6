"""A group as its page shows it."""

from __future__ import annotations

from types import MappingProxyType

from barnabas.console.cluster.group_details import GroupDetails, GroupPartition, MemberDetails, rows_of
from barnabas.console.cluster.snapshot import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from barnabas.topic_partition import TopicPartition

A, B, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


def snapshot() -> ClusterSnapshot:
    partitions = (PartitionSnapshot(0, 1, (1,), (1,), 20, 100, 5), PartitionSnapshot(1, None, (1,), (), None, None, None))
    topic = TopicSnapshot("t", False, "id", partitions, None, None, None, None, None, None, None)
    return ClusterSnapshot(topics=MappingProxyType({"t": topic}))


def test_a_row_is_assigned_or_has_an_offset() -> None:
    member = MemberDetails("m", None, "client", "/host", None, (B,))
    rows = rows_of([member], {A: 10, GONE: 3}, snapshot(), {}, frozenset({A}))
    assert rows == (
        GroupPartition(GONE, 3, None, None, None, False),
        GroupPartition(A, 10, 20, 100, None, True),
        GroupPartition(B, None, None, None, member, False),
    )
    assert [row.lag for row in rows] == [None, 90, None]


def test_records_that_were_deleted_before_they_were_read_are_lost() -> None:
    rows = rows_of([], {A: 10, GONE: 3}, snapshot(), {}, frozenset())
    assert [row.is_lost for row in rows] == [False, True]


def test_only_groups_of_consumers_have_offsets() -> None:
    def details(kind: str, protocol: str) -> GroupDetails:
        return GroupDetails("g", kind, protocol, "Stable", "", None, None, (), ())

    assert not details("Classic", "connect").has_offsets
    assert all(details(kind, protocol).has_offsets for kind, protocol in (("Classic", "consumer"), ("Classic", ""), ("Streams", "streams")))
