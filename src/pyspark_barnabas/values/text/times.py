"""Parses dates and times as Spark does for JSON and CSV.

Without a format option they may have any form that Spark's cast accepts, from "2020" to "2020-1-2 3:4:5 Europe/Paris"; with one
(`value.timestampFormat`…) they must match it. The results are days and microseconds since 1970. A time without a zone is in
`value.timeZone`. A time of day without a date is rejected: Spark adds today's date, so that the same record would change every day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.values.text.time_patterns import compile_pattern

_TRIMMED: Final = "".join(map(chr, (*range(33), 127)))
_DATE: Final = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T]"
    r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(.*))?)?)?",
    re.ASCII | re.DOTALL,
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
_DAYS: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_GREGORIAN: Final = -141_427  # 1582-10-15: before this date, old versions of Spark use another calendar
_OFFSET_S_MAX: Final = 18 * 3600
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DAYS_OF_400_YEARS: Final = 146_097
_DAY_US: Final = 86_400_000_000
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TimeFault(Exception):
    """The text is not a date or time."""


@dataclass(frozen=True)
class Times:
    """The formats and the zone of dates and times. Plain data, so that it can be pickled."""

    zone: str = "UTC"
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    _compiled: dict[str, Callable[[str], Mapping[str, Any] | None]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, parser: Mapping[str, str]) -> Times:
        times = cls(
            parser.get("timezone", "UTC").strip(), parser.get("dateformat"), parser.get("timestampformat"), parser.get("timestampntzformat")
        )
        try:
            zone_of(times.zone)
        except TimeFault:
            raise OptionError("value.timeZone", f"there is no time zone '{times.zone}'.") from None
        for name, pattern in zip(("dateFormat", "timestampFormat", "timestampNTZFormat"), times.patterns, strict=True):
            if pattern is not None:
                compile_pattern(pattern, f"value.{name}")
        return times

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": {}}

    @property
    def patterns(self) -> tuple[str | None, str | None, str | None]:
        return self.date_format, self.timestamp_format, self.timestamp_ntz_format

    @property
    def are_default(self) -> bool:
        return self.patterns == (None, None, None)

    def date(self, text: str) -> int:
        """Days since 1970. Raises TimeFault."""
        if self.date_format is not None:
            parts = self._matched(self.date_format, text)
            return _date(parts["year"], parts["month"], parts["day"], text)
        match = _DATE.fullmatch(text.strip(_TRIMMED))
        if match is None:
            raise TimeFault(f"{text[:40]!r} is no date")
        sign, year, month, day = match.groups()
        return _date(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1), text)

    def date_or_days(self, text: str) -> int:
        """Days since 1970, from a date or from the number of days, which old versions of Spark write to JSON."""
        try:
            return self.date(text)
        except TimeFault:
            if self.date_format is not None or not _DAYS.fullmatch(text) or not _GREGORIAN <= int(text) < 2**31:
                raise
            return int(text)

    def timestamp(self, text: str) -> int:
        """Microseconds since 1970, UTC. Raises TimeFault."""
        local_us, zone = self._pattern_time(self.timestamp_format, text) if self.timestamp_format else _default_time(text)
        return _micros(_in_zone(local_us, zone_of(zone or self.zone)), text)

    def timestamp_ntz(self, text: str) -> int:
        """Microseconds since 1970 in local time. Raises TimeFault."""
        local_us, zone = self._pattern_time(self.timestamp_ntz_format, text) if self.timestamp_ntz_format else _default_time(text)
        if zone:
            raise TimeFault(f"{text[:40]!r} has a zone, which this time may not have")
        return _micros(local_us, text)

    def _matched(self, pattern: str, text: str) -> Mapping[str, Any]:
        match = self._compiled.get(pattern)
        if match is None:
            match = self._compiled[pattern] = compile_pattern(pattern, "value.timestampFormat")
        parts = match(text)
        if parts is None:
            raise TimeFault(f"{text[:40]!r} does not match {pattern}")
        return parts

    def _pattern_time(self, pattern: str, text: str) -> tuple[int, str]:
        parts = self._matched(pattern, text)
        days = _days(parts["year"], parts["month"], parts["day"], text)
        return days * _DAY_US + _time_us(parts["hour"], parts["minute"], parts["second"], parts["microsecond"], text), parts["zone"]


def _default_time(text: str) -> tuple[int, str]:
    match = _TIMESTAMP.fullmatch(text.strip(_TRIMMED))
    if match is None:
        raise TimeFault(f"{text[:40]!r} is no time")
    sign, year, month, day, hour, minute, second, fraction, zone = match.groups()
    zone = (zone or "").strip(_TRIMMED)
    if zone and second is None:
        raise TimeFault(f"{text[:40]!r} is no time: a zone follows seconds")
    days = _days(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1), text)
    microsecond = int((fraction or "")[:6].ljust(6, "0"))
    return days * _DAY_US + _time_us(int(hour or 0), int(minute or 0), int(second or 0), microsecond, text), zone


def _date(year: int, month: int, day: int, text: str) -> int:
    """Validates that the days fit into 32 bits."""
    days = _days(year, month, day, text)
    if not -(2**31) <= days < 2**31:
        raise TimeFault(f"{text[:40]!r} is too far away for a date")
    return days


def _micros(us: int, text: str) -> int:
    """Validates that the microseconds fit into 64 bits."""
    if not -(2**63) <= us < 2**63:
        raise TimeFault(f"{text[:40]!r} is too far away for a time")
    return us


def _days(year: int, month: int, day: int, text: str) -> int:
    """Days since 1970 in the proleptic Gregorian calendar, also for years after 9999."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] or (month == 2 and day == 29 and not leap):
        raise TimeFault(f"{text[:40]!r} is no date: there is no such day")
    cycles, in_cycle = divmod(year - 2000, 400)
    return date(2000 + in_cycle, month, day).toordinal() - _EPOCH_ORDINAL + cycles * _DAYS_OF_400_YEARS


def _time_us(hour: int, minute: int, second: int, microsecond: int, text: str) -> int:
    if hour > 23 or minute > 59 or second > 59:
        raise TimeFault(f"{text[:40]!r} is no time: there is no such time of day")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + microsecond


@lru_cache(maxsize=1000)
def zone_of(name: str) -> tzinfo:
    """The zone of a name or offset in Java's forms. Raises TimeFault."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        sign, hours, minutes, seconds = match.groups()
        total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        if total <= _OFFSET_S_MAX and int(minutes or 0) < 60 and int(seconds or 0) < 60:
            return timezone(timedelta(seconds=-total if sign == "-" else total))
    elif re.fullmatch(r"[A-Za-z][\w/+-]+", name, re.ASCII):
        try:
            return ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            pass
    raise TimeFault(f"there is no time zone {name[:40]!r}")


def _in_zone(local_us: int, zone: tzinfo) -> int:
    """Local time in a zone as UTC. In an hour that is skipped or repeated, the earlier offset is used, as in Java."""
    if zone is UTC:
        return local_us
    try:
        local = _EPOCH.replace(tzinfo=None) + timedelta(microseconds=local_us)
    except OverflowError:  # outside of Python's calendar: rules repeat every 400 years after it, and before it there are none
        in_cycle = timedelta(microseconds=local_us % (_DAYS_OF_400_YEARS * _DAY_US))
        local = datetime(1, 1, 1) if local_us < 0 else datetime(1970, 1, 1) + in_cycle
    offset = zone.utcoffset(local.replace(tzinfo=zone))
    assert offset is not None
    return local_us - int(offset.total_seconds()) * 1_000_000
