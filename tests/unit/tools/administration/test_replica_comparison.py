"""Whether replicas hold the same: what kafka-replica-verification decides."""

from __future__ import annotations

import pytest

from barnabas.tools.administration.replica_comparison import FetchedBatch, OffsetsDiffer, ReplicaBuffer, ReplicaFetch
from barnabas.topic_partition import TopicPartition

P = TopicPartition("t", 0)
START_MS = 1_000_000


def fetched(high_watermark: int, *batches: tuple[int, int]) -> ReplicaFetch:
    return ReplicaFetch(high_watermark, [FetchedBatch(*batch) for batch in batches])


def buffer(interval_ms: int = 10**9) -> ReplicaBuffer:
    return ReplicaBuffer({P: 0}, interval_ms, START_MS)


def test_equal_replicas_are_gone_through_up_to_the_high_watermark() -> None:
    compared = buffer()
    for replica in (1, 2):
        compared.add(P, replica, fetched(10, (4, 77), (9, 88), (14, 99)))
    assert list(compared.verify(START_MS)) == []
    assert compared.offsets[P] == 10


def test_a_replica_that_is_behind_holds_the_comparison_up() -> None:
    compared = buffer()
    compared.add(P, 1, fetched(10, (4, 77), (9, 88)))
    compared.add(P, 2, fetched(5, (4, 77)))
    list(compared.verify(START_MS))
    assert compared.offsets[P] == 5


def test_a_broker_that_does_not_answer_holds_it_up_too() -> None:
    compared = buffer()
    compared.add(P, 1, fetched(10, (4, 77)))
    compared.add(P, 2, ReplicaFetch())
    list(compared.verify(START_MS))
    assert compared.offsets[P] == 0


def test_other_checksums_are_told() -> None:
    compared = buffer()
    compared.add(P, 1, fetched(10, (4, 77)))
    compared.add(P, 2, fetched(10, (4, 78)))
    (line,) = compared.verify(START_MS)
    assert line.endswith(": partition t-0 has unmatched checksum at offset 4; replica 1's checksum 77; replica 2's checksum 78")
    assert compared.mismatches == 1


def test_other_offsets_end_it() -> None:
    compared = buffer()
    compared.add(P, 1, fetched(10, (4, 77)))
    compared.add(P, 2, fetched(10, (5, 77)))
    with pytest.raises(OffsetsDiffer, match=r"partition t-0: replica 1's offset 4 doesn't match replica 2's offset 5"):
        list(compared.verify(START_MS))


def test_the_greatest_lag_is_reported_now_and_then() -> None:
    compared = buffer(interval_ms=1000)
    compared.add(P, 1, fetched(12, (4, 77)))
    assert list(compared.verify(START_MS + 500)) == []
    compared.add(P, 1, fetched(12))
    (line,) = compared.verify(START_MS + 1501)
    assert line.endswith(": max lag is 7 for partition t-0 at offset 5 among 1 partitions")
