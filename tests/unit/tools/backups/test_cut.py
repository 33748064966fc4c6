"""The cut of a log: which bytes of which segments belong to a backup."""

from __future__ import annotations

import pytest

from barnabas.tools.backups.cut import LogChanged, SegmentCut, SegmentFile, cut_log


def files(*segments: tuple[int, int], inode: int = 7) -> dict[int, SegmentFile]:
    return {base: SegmentFile(base, size, inode + base) for base, size in segments}


def test_the_active_segment_is_cut_at_the_size_that_the_broker_named() -> None:
    cut = cut_log(files((0, 100), (10, 30)), 140, files((0, 100), (10, 55)), high_watermark=10)
    assert cut == [SegmentCut(0, 100, 7, True), SegmentCut(10, 40, 17, False)]


def test_segments_that_were_rolled_after_the_cut_are_left_out() -> None:
    cut = cut_log(files((0, 100)), 100, files((0, 120), (12, 50), (20, 10)), high_watermark=20)
    assert [(file.base_offset, file.size, file.is_settled) for file in cut] == [(0, 100, False)]


def test_an_empty_active_segment_keeps_the_end_of_the_log() -> None:
    cut = cut_log(files((50, 0)), 0, files((50, 0)), high_watermark=50)
    assert [(file.base_offset, file.size) for file in cut] == [(50, 0)]


def test_a_preallocated_active_segment_is_cut_at_its_records() -> None:
    cut = cut_log(files((0, 100), (10, 1000)), 130, files((0, 100), (10, 1000)), high_watermark=0)
    assert [file.size for file in cut] == [100, 30]


def test_a_closed_segment_above_the_high_watermark_is_not_settled_because_a_follower_may_truncate_it() -> None:
    cut = cut_log(files((0, 100), (10, 5)), 105, files((0, 100), (10, 5)), high_watermark=9)
    assert [file.is_settled for file in cut] == [False, False]


def test_a_log_that_is_new_is_cut_by_its_files_alone() -> None:
    assert [file.size for file in cut_log(None, 10, files((0, 12)), high_watermark=0)] == [10]


@pytest.mark.parametrize(
    "after",
    [
        files((10, 50)),  # retention removed the first segment
        files((0, 60), (10, 50)),  # the cleaner replaced it, in the same file name
        files((0, 100), (10, 40)),  # a follower truncated the last one
        files((0, 100), (10, 50), inode=99),  # swapped by the cleaner
        {},  # the topic was deleted
    ],
)
def test_a_log_that_lost_bytes_meanwhile_is_cut_again(after: dict[int, SegmentFile]) -> None:
    with pytest.raises(LogChanged):
        cut_log(files((0, 100), (10, 50)), 150, after, high_watermark=0)


@pytest.mark.parametrize("before", [None, {}])
def test_a_log_without_files_is_cut_again(before: dict[int, SegmentFile] | None) -> None:
    with pytest.raises(LogChanged):
        cut_log(before, 0, {}, high_watermark=0)


def test_a_log_whose_files_are_shorter_than_its_size_is_cut_again() -> None:
    with pytest.raises(LogChanged):
        cut_log(None, 200, files((0, 100)), high_watermark=0)
