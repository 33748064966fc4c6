"""The progress of copies: bytes, replicas and the time that is left."""

from __future__ import annotations

import pytest

from barnabas.administration.copy_progress import CopiedBytes, CopyProgress, pending_copies
from barnabas.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_time_left_follows_from_the_rate() -> None:
    copies = CopyProgress({(A, 4): 1000, (B, 4): 3000})
    both = pending_copies([(A, (4,)), (B, (4,))])
    assert copies.at(0.0, both, {}) == CopiedBytes(0, 4000, 0, 2, None)
    assert copies.at(10.0, both, {(A, 4): 1000, (B, 4): 1000}) == CopiedBytes(2000, 4000, 0, 2, 10.0)


def test_a_copy_that_is_complete_counts_whole_and_none_for_more_than_its_size() -> None:
    copies = CopyProgress({(A, 4): 1000, (B, 5): 1000})
    progress = copies.at(0.0, {(B, 5)}, {(A, 4): 10, (B, 5): 5000})
    assert (progress.done_bytes, progress.done_copies) == (2000, 1)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    copies = CopyProgress({(A, 4): 100_000})
    for second in range(100):
        progress = copies.at(float(second), {(A, 4)}, {(A, 4): min(second, 50) * 100 + max(0, second - 50) * 10})
    assert progress.left_s == pytest.approx((100_000 - 5490) / 10, rel=0.01)


def test_empty_partitions_are_counted_by_replicas() -> None:
    copies = CopyProgress({(A, 4): 0, (B, 4): 0})
    assert copies.at(0.0, {(B, 4)}, {}).share == 0.5
    assert CopyProgress({}).at(0.0, (), {}).share == 1.0
