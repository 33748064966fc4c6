"""What stands in the address of a page of messages, as a query. Every value is text that anybody may have written."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, cast

from barnabas.console.messages.browse import STARTS, Isolation, MessageQuery
from barnabas.console.messages.cursor import parse_cursor
from barnabas.console.messages.decoding import READINGS, Reading
from barnabas.console.messages.filters import parse_filter

LIMITS: Final = (20, 50, 100, 200)
LIMIT_DEFAULT: Final = 50
PARTITIONS_NAMED_MAX: Final = 1000
KEY_CHARACTERS_MAX: Final = 5000
# Arguments that say what is asked for; a link to look further has all of them and the cursor.
ARGUMENTS: Final = ("start", "offset", "time", "partition", "key", "key_as", "kind", "filter", "isolation", "keys", "values", "limit")

_TOO_MANY_PARTITIONS: Final = f"At most {PARTITIONS_NAMED_MAX} partitions can be named"
_OFFSET_MAX: Final = 2**63 - 1
_TIME_MAX_MS: Final = 253_402_300_799_999
_AGO: Final = re.compile(r"-\s*(\d{1,9})\s*(ms|s|min|m|h|d|w)")
_MS_OF: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_KEY_NUMBERS: Final = {"int": struct.Struct(">i"), "long": struct.Struct(">q")}


class QueryError(ValueError):
    """One field of the form is not understood; the message says which and what to write."""


def parse_query(topic: str, argument: Callable[[str], str], now_ms: int) -> MessageQuery:
    """The query of an address. Raises QueryError and FilterError."""
    start = argument("start") or "newest"
    if start not in STARTS:
        raise QueryError(f"start is one of {', '.join(STARTS)}, not {start[:30]!r}")
    isolation = argument("isolation") or "read_uncommitted"
    if isolation not in ("read_uncommitted", "read_committed"):
        raise QueryError(f"isolation is read_uncommitted or read_committed, not {isolation[:30]!r}")
    cursor = argument("cursor")
    try:
        return MessageQuery(
            topic,
            start,
            offset=_offset(argument("offset")) if start == "offset" else 0,
            timestamp_ms=parse_time(argument("time"), now_ms) if start == "time" and not cursor else 0,
            partitions=parse_partitions(argument("partition")),
            key=parse_key(argument("key"), argument("key_as") or "text"),
            filter=parse_filter(argument("kind") or "text", argument("filter")),
            isolation=cast(Isolation, isolation),
            key_reading=_reading("keys", argument("keys")),
            value_reading=_reading("values", argument("values")),
            cursor=parse_cursor(cursor) if cursor else None,
        )
    except QueryError:
        raise
    except ValueError as fault:
        raise QueryError(str(fault)) from None


def parse_limit(text: str) -> int:
    """The number of messages of a page: one of LIMITS."""
    return int(text) if text in map(str, LIMITS) else LIMIT_DEFAULT


def parse_partitions(text: str) -> frozenset[int]:
    """Partitions as `0`, `0,3` or `2-5`; none for all."""
    partitions: set[int] = set()
    for part in text.replace(" ", "").split(","):
        if not part:
            continue
        low, dash, high = part.partition("-")
        if not _is_number(low, 9) or (dash and not _is_number(high, 9)):
            raise QueryError(f"Partitions are numbers such as 0 or 0,3 or 2-5, not {text[:40]!r}")
        if dash and int(high) - int(low) >= PARTITIONS_NAMED_MAX:
            raise QueryError(_TOO_MANY_PARTITIONS)
        partitions.update(range(int(low), int(high or low) + 1))
        if len(partitions) > PARTITIONS_NAMED_MAX:
            raise QueryError(_TOO_MANY_PARTITIONS)
    return frozenset(partitions)


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of `2026-11-18 20:15`, `2026-11-18T20:15:00+01:00`, `1763496900000` or `-15m`; UTC without a zone."""
    text = text.strip()
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now_ms - int(ago[1]) * _MS_OF[ago[2]])
    if _is_number(text, 15) and len(text) > 8:
        return min(int(text), _TIME_MAX_MS)
    try:
        moment = datetime.fromisoformat(text)
        return max(0, round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise QueryError(
            f"{text[:40]!r} is no time: write 2026-11-18 20:15 (UTC), 2026-11-18T20:15+01:00, milliseconds since 1970, or -15m, -2h, -7d"
        ) from None


def parse_key(text: str, form: str) -> bytes | None:
    """The bytes of the key that is searched; None for no text."""
    if not text:
        return None
    if len(text) > KEY_CHARACTERS_MAX:
        raise QueryError(f"A key that is searched has at most {KEY_CHARACTERS_MAX} characters")
    if form == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise QueryError("The key is not hexadecimal: write two digits for each byte, for example 00 ff 41") from None
    if form in _KEY_NUMBERS:
        try:
            return _KEY_NUMBERS[form].pack(int(text))
        except (ValueError, struct.error):
            raise QueryError(f"The key {text[:40]!r} is no whole number of {_KEY_NUMBERS[form].size} bytes") from None
    if form != "text":
        raise QueryError(f"A key is searched as text, hex, int or long, not as {form[:30]!r}")
    return text.encode("utf-8", "surrogateescape")


def _offset(text: str) -> int:
    text = text.strip()
    if not _is_number(text.removeprefix("-"), 19):
        raise QueryError(f"The offset is a number, for example 1000, or -100 for the last hundred of each partition, not {text[:30]!r}")
    return max(-_OFFSET_MAX, min(int(text), _OFFSET_MAX))


def _reading(name: str, text: str) -> Reading:
    text = text or "auto"
    if text not in READINGS:
        raise QueryError(f"{name} are shown as one of {', '.join(READINGS)}, not {text[:30]!r}")
    return text


def _is_number(text: str, digits_max: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= digits_max
