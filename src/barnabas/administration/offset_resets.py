"""New offsets of a group: where a reset goes to, what it skips and what is read again. Plain values; this module sends nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from barnabas.topic_partition import TopicPartition

Offsets = dict[TopicPartition, int]

UNKNOWN_OFFSET: Final = -1  # of a partition without a record at or after a time
_DATETIME: Final = re.compile(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d(?::?\d\d)?)")
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?(T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """The reset of one partition. `before` is None for a partition without a committed offset."""

    partition: TopicPartition
    before: int | None
    after: int
    start_offset: int
    end_offset: int

    @property
    def skipped(self) -> int:
        """The records that the group has not read and will not read. Without a committed offset, those before the new one."""
        begin = self.start_offset if self.before is None else max(self.before, self.start_offset)
        return max(0, self.after - begin)

    @property
    def read_again(self) -> int:
        """The records that the group has read and will read once more."""
        return 0 if self.before is None else max(0, min(self.before, self.end_offset) - self.after)

    @property
    def lag_before(self) -> int | None:
        return None if self.before is None else max(0, self.end_offset - self.before)

    @property
    def lag_after(self) -> int:
        return max(0, self.end_offset - self.after)


def changes(committed: Mapping[TopicPartition, int], after: Offsets, starts: Offsets, ends: Offsets) -> list[OffsetChange]:
    """What a reset does to each partition, in the order of the partitions."""
    return [
        OffsetChange(partition, committed.get(partition), after[partition], starts[partition], ends[partition])
        for partition in sorted(after)
    ]


def in_range(offsets: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Offsets:
    """The nearest offsets that the logs have."""
    return {partition: max(min(offset, ends[partition]), starts[partition]) for partition, offset in offsets.items()}


def shifted(committed: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition], shift: int) -> Offsets:
    """The committed offsets and `shift`. Raises KeyError for the first partition that has none."""
    return {partition: committed[partition] + shift for partition in partitions}


def parse_datetime(text: str) -> int:
    """Milliseconds of `2026-01-31T23:59:59.999`, in UTC unless it names a zone. Raises ValueError."""
    if "T" in text and not re.search("[+Z-]", text.split("T")[1]):
        text += "Z"
    match = _DATETIME.match(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, millis = map(int, match.groups()[:7])
    moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(match[8])) + timedelta(milliseconds=millis)
    if millis > 999:
        raise ValueError(text)
    return round(moment.timestamp() * 1000)


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-offset if text[0] == "-" else offset)


def parse_duration_ms(text: str) -> int:
    """Milliseconds of a duration as in ISO 8601: `P1DT2H`, `PT15M`. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match[group] for group in (2, 4, 5, 6)) or match[3] in ("T", "t"):
        raise ValueError(text)
    days, hours, minutes, seconds = (int(match[group] or 0) for group in (2, 4, 5, 6))
    fraction = int((match[7] or "0").ljust(9, "0")) // 1_000_000
    total = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000
    total += -fraction if (match[6] or "").startswith("-") else fraction
    return -total if match[1] == "-" else total
