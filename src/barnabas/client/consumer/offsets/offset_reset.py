"""The strategies of `auto.offset.reset`: where to read a partition from if there is no committed offset, or if it is out of range.

`seek_to_beginning` and `seek_to_end` use the same values. A strategy names a place; `offsets` finds its offset.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from barnabas.config_def import invalid

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1


class ResetKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    BY_DURATION = "by_duration"


class AutoOffsetResetStrategy(NamedTuple):
    kind: ResetKind
    duration_ms: int = 0

    def timestamp(self, now_ms: int) -> int | None:
        """The timestamp for ListOffsets; None if there is nothing to look up."""
        if self.kind is ResetKind.EARLIEST:
            return EARLIEST_TIMESTAMP
        if self.kind is ResetKind.LATEST:
            return LATEST_TIMESTAMP
        if self.kind is ResetKind.BY_DURATION:
            return max(0, now_ms - self.duration_ms)  # negative timestamps have special meanings
        return None

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.duration_ms}ms" if self.kind is ResetKind.BY_DURATION else self.kind.value


EARLIEST: Final = AutoOffsetResetStrategy(ResetKind.EARLIEST)
LATEST: Final = AutoOffsetResetStrategy(ResetKind.LATEST)
NONE: Final = AutoOffsetResetStrategy(ResetKind.NONE)

_NAMED: Final = {"earliest": EARLIEST, "latest": LATEST, "none": NONE}
_PREFIX: Final = "by_duration:"


def parse_offset_reset(text: str) -> AutoOffsetResetStrategy:
    """A value of `auto.offset.reset`: earliest, latest, none, or by_duration with an ISO 8601 duration, such as by_duration:PT1H."""
    if text in _NAMED:
        return _NAMED[text]
    duration_ms = _duration_ms(text[len(_PREFIX) :]) if text.startswith(_PREFIX) else None
    if duration_ms is None or duration_ms < 0:
        raise invalid(
            "auto.offset.reset",
            text,
            f"Invalid value `{text}` for configuration auto.offset.reset. The value must be either 'earliest', 'latest', 'none' or of the "
            "format 'by_duration:<PnDTnHnMn.nS.>'.",
        )
    return AutoOffsetResetStrategy(ResetKind.BY_DURATION, duration_ms)


_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def _duration_ms(text: str) -> int | None:
    """Java's Duration.parse in milliseconds; None for a text that it would reject."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match[part] for part in ("days", "hours", "minutes", "seconds")) or match["time"] in ("T", "t"):
        return None
    whole = int(match["days"] or 0) * 86_400_000 + int(match["hours"] or 0) * 3_600_000 + int(match["minutes"] or 0) * 60_000
    seconds = match["seconds"] or "0"
    fraction_ms = int((match["fraction"] or "").ljust(3, "0")[:3])
    whole += int(seconds) * 1000 + (-fraction_ms if seconds.startswith("-") else fraction_ms)
    return -whole if match["sign"] == "-" else whole
