"""Parses dates and times in whole columns of text with the usual form; the fast path beside `times`.

A column with any other form raises NotPlain, and the caller reads it value by value.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Years for which Arrow's calendar is the usual one; Arrow rejects days that do not exist.
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LOCAL: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
_ZONED: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])$"
_UTC: Final = ("UTC", "GMT", "Z", "UT", "Etc/UTC", "+00:00")


class NotPlain(Exception):
    """A column has a value that must be read singly; `row` is its first such row, if known."""

    def __init__(self, row: int | None = None) -> None:
        super().__init__(row)
        self.row = row


def dates(column: pa.Array) -> pa.Array:
    _check(column, _DATE)
    return _cast(column, pa.date32())


def timestamps(column: pa.Array, zone: str) -> pa.Array:
    """A column of timestamps. `zone` is used for times without a zone. Either all times of a column have a zone, or none has one."""
    if _all(column, _ZONED):
        return _cast(column, pa.timestamp("us", tz="UTC"))
    _check(column, _LOCAL)
    local = _cast(column, pa.timestamp("us"))
    if zone in _UTC:
        return local.cast(pa.timestamp("us", tz="UTC"))
    try:
        zoned = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise")
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        raise NotPlain from None
    return zoned.cast(pa.timestamp("us", tz="UTC"))


def timestamps_ntz(column: pa.Array) -> pa.Array:
    _check(column, _LOCAL)
    return _cast(column, pa.timestamp("us"))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise NotPlain from None


def _check(column: pa.Array, pattern: str) -> None:
    check_all(pc.match_substring_regex(column, pattern=pattern))


def check_all(matches: pa.Array) -> None:
    """Raises NotPlain with the first row that does not match; nulls match."""
    row = pc.index(matches, False).as_py()
    if row >= 0:
        raise NotPlain(row)


def _all(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern=pattern)).as_py() is not False
