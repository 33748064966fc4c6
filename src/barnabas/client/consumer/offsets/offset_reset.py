"""What `auto.offset.reset` may say: where a partition is read from when no offset is known, or the known one is gone.

A value of this kind also stands behind `seek_to_beginning` and `seek_to_end`. It names a place; finding its offset is `offsets`' work.
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


class OffsetReset(NamedTuple):
    kind: ResetKind
    duration_ms: int = 0

    def timestamp(self, now_ms: int) -> int | None:
        """What ListOffsets is asked for; None where there is nothing to ask."""
        if self.kind is ResetKind.EARLIEST:
            return EARLIEST_TIMESTAMP
        if self.kind is ResetKind.LATEST:
            return LATEST_TIMESTAMP
        if self.kind is ResetKind.BY_DURATION:
            return max(0, now_ms - self.duration_ms)  # below 0 the numbers have other meanings
        return None

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.duration_ms}ms" if self.kind is ResetKind.BY_DURATION else self.kind.value


EARLIEST: Final = OffsetReset(ResetKind.EARLIEST)
LATEST: Final = OffsetReset(ResetKind.LATEST)
NONE: Final = OffsetReset(ResetKind.NONE)

_NAMED: Final = {"earliest": EARLIEST, "latest": LATEST, "none": NONE}
_PREFIX: Final = "by_duration:"


def parse_offset_reset(text: str) -> OffsetReset:
    """A value of `auto.offset.reset`: earliest, latest, none, or by_duration with a duration of ISO 8601, such as by_duration:PT1H."""
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
    return OffsetReset(ResetKind.BY_DURATION, duration_ms)


_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def _duration_ms(text: str) -> int | None:
    """Java's Duration.parse in milliseconds; None for a text it would refuse."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[part] for part in ("days", "hours", "minutes", "seconds")) or found["time"] in ("T", "t"):
        return None
    whole = int(found["days"] or 0) * 86_400_000 + int(found["hours"] or 0) * 3_600_000 + int(found["minutes"] or 0) * 60_000
    seconds = found["seconds"] or "0"
    fraction_ms = int((found["fraction"] or "").ljust(3, "0")[:3])
    whole += int(seconds) * 1000 + (-fraction_ms if seconds.startswith("-") else fraction_ms)
    return -whole if found["sign"] == "-" else whole
