"""Spark's datetime patterns ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX") as functions that parse text.

The usual letters are supported; a pattern with another letter is rejected with that letter, because its results could differ from Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark_barnabas.errors import OptionError

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_FULL_WEEKDAYS: Final = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")
_FACTS: Final[dict[str, Any]] = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0, "zone": ""}


def compile_pattern(pattern: str, option: str) -> Callable[[str], Mapping[str, Any] | None]:
    """Returns a function that parses a text to year, month, day, hour, minute, second, microsecond and zone, or None. Raises
    OptionError."""
    expression = re.compile(_expression(pattern, option), re.ASCII)

    def read(text: str) -> Mapping[str, Any] | None:
        match = expression.fullmatch(text)
        return None if match is None else _facts(match.groupdict())

    return read


def _expression(pattern: str, option: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None:
            raise OptionError(option, f"has a quote without an end: {pattern}")
        at = match.end()
        quoted, letter, other = match.groups()
        if letter is not None:
            parts.append(_of_letters(match[0], option))
        elif quoted is not None:
            parts.append(re.escape(quoted.replace("''", "'") or "'"))
        elif other in "[]":
            parts.append("(?:" if other == "[" else ")?")
        else:
            parts.append(re.escape(other))
    try:
        re.compile("".join(parts))
    except re.error:
        raise OptionError(option, f"names a part of the time twice, or has brackets that do not match: {pattern}") from None
    return "".join(parts)


def _of_letters(letters: str, option: str) -> str:
    letter, count = letters[0], len(letters)
    if letter in "yu":
        return r"(?P<year2>\d{2})" if count == 2 else rf"(?P<year>-?\d{{{count},7}})"
    if letter in "ML" and count >= 3:
        return "(?P<month_name>[A-Za-z]+)"
    if letter == "S" and count <= 9:
        return rf"(?P<fraction>\d{{1,{count}}})"
    if letter == "E":
        return _FULL_WEEKDAYS if count == 4 else _WEEKDAYS
    if letter == "a" and count == 1:
        return "(?P<half>AM|PM|am|pm)"
    names = {"M": "month", "L": "month", "d": "day", "H": "hour", "h": "hour12", "m": "minute", "s": "second"}
    if letter in names and count <= 2:
        return rf"(?P<{names[letter]}>\d{{2}})" if count == 2 else rf"(?P<{names[letter]}>\d{{1,2}})"
    zones = {
        "X": {1: r"Z|[+-]\d\d(?:\d\d)?", 2: r"Z|[+-]\d{4}", 3: r"Z|[+-]\d\d:\d\d"},
        "x": {1: r"[+-]\d\d(?:\d\d)?", 2: r"[+-]\d{4}", 3: r"[+-]\d\d:\d\d"},
        "Z": {1: r"[+-]\d{4}", 2: r"[+-]\d{4}", 3: r"[+-]\d{4}", 5: r"Z|[+-]\d\d:\d\d"},
        "V": {2: r"[A-Za-z][\w/+:-]*|[+-][\d:]+"},
    }
    if count in zones.get(letter, {}):
        return f"(?P<zone>{zones[letter][count]})"
    raise OptionError(option, f"the letters '{letters}' of a pattern are not understood here; decode a string and parse it in the query.")


def _facts(groups: Mapping[str, str | None]) -> Mapping[str, Any] | None:
    given = {name: text for name, text in groups.items() if text is not None}
    facts = dict(_FACTS)
    for name in ("year", "month", "day", "hour", "minute", "second"):
        if name in given:
            facts[name] = int(given[name])
    if "year2" in given:
        facts["year"] = 2000 + int(given["year2"])
    if "month_name" in given:
        name = given["month_name"].lower()
        if name not in _MONTHS and name not in _FULL_MONTHS:
            return None
        facts["month"] = 1 + (_MONTHS.index(name) if name in _MONTHS else _FULL_MONTHS.index(name))
    if "hour12" in given:
        if not 1 <= int(given["hour12"]) <= 12:
            return None
        facts["hour"] = int(given["hour12"]) % 12 + (12 if given.get("half", "AM").upper() == "PM" else 0)
    facts["microsecond"] = int(given.get("fraction", "")[:6].ljust(6, "0"))
    facts["zone"] = given.get("zone", "")
    return facts
