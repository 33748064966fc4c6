"""The cut of a backup: how many bytes of each segment file belong to the copy.

The broker answers DescribeLogDirs within one iteration of its event loop, so the sizes in one response belong to one moment: the cut. A
log only grows at its end, so the cut lies where the sizes of its segment files, first to last, add up to the size in the response. Only
retention, compaction and truncation break this sum; a listing of the files before the request and one after it show them, and the cut is
taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class SegmentFile(NamedTuple):
    base_offset: int
    size: int
    inode: int


@dataclass(frozen=True)
class SegmentCut:
    """`size` bytes of the segment file belong to the copy. A settled segment is below the high watermark, and no process changes it."""

    base_offset: int
    size: int
    inode: int
    is_settled: bool


class LogChanged(Exception):
    """Segments were removed, cleaned or truncated while the cut was taken."""


def cut_log(before: Mapping[int, SegmentFile] | None, size: int, after: Mapping[int, SegmentFile], high_watermark: int) -> list[SegmentCut]:
    """The segments of a log up to `size` bytes; `before` and `after` are its files by base offset. Raises LogChanged."""
    if not after:
        raise LogChanged  # the log was moved or deleted
    _require_unchanged(before or {}, after)
    segments = sorted(after.values())
    cut: list[SegmentCut] = []
    left = size
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        taken = min(left, segment.size)
        is_whole = following is not None and taken == segment.size
        is_settled = is_whole and following is not None and following.base_offset <= high_watermark
        cut.append(SegmentCut(segment.base_offset, taken, segment.inode, is_settled))
        left -= taken
        if not is_whole:
            break
    if left:
        raise LogChanged
    return cut


def _require_unchanged(before: Mapping[int, SegmentFile], after: Mapping[int, SegmentFile]) -> None:
    last = max(before, default=-1)
    for base_offset, earlier in before.items():
        later = after.get(base_offset)
        if (
            later is None
            or later.inode != earlier.inode
            or later.size < earlier.size
            or (base_offset != last and later.size != earlier.size)
        ):
            raise LogChanged
    if before and min(after) < min(before):
        raise LogChanged
