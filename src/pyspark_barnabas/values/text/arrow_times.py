"""Dates and times in whole columns of text, where all of them are written in the usual way; the fast way beside `times`.

A column that holds anything else raises NotPlain, and is read value by value.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Years that Arrow counts like everybody; a day that does not exist it refuses itself.
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LOCAL: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
_ZONED: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])$"
_UTC: Final = ("UTC", "GMT", "Z", "UT", "Etc/UTC", "+00:00")


class NotPlain(Exception):
    """Something in a column must be looked at by itself; `row` says where the first such thing is, if that is known."""

    def __init__(self, row: int | None = None) -> None:
        super().__init__(row)
        self.row = row


def dates(column: pa.Array) -> pa.Array:
    _check(column, _DATE)
    return _cast(column, pa.date32())


def timestamps(column: pa.Array, zone: str) -> pa.Array:
    """`zone` is that of times which name none. All of a column must name one, or none."""
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
    """Raises NotPlain with the first row that does not match; nulls do."""
    row = pc.index(matches, False).as_py()
    if row >= 0:
        raise NotPlain(row)


def _all(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern=pattern)).as_py() is not False
