"""Java's .properties format, in which Kafka stores settings and `meta.properties`.

It reads what java.util.Properties reads (comments, three separators, escapes, continued lines) and writes the same format, so that Kafka
reads files of Barnabas and the other way round.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

_SPACE: Final = " \t\f"
_SEPARATORS: Final = "=:" + _SPACE
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE_ESCAPE: Final = re.compile(r"[0-9a-fA-F]{4}")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_properties(text: str) -> dict[str, str]:
    """The settings in a properties text; the last of several with one name wins. Raises ValueError for an invalid escape."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _end_of_name(line)
        rest = line[end:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        properties[_unescape(line[:end])] = _unescape(rest)
    return properties


def format_properties(properties: Mapping[str, str], now_ms: int) -> str:
    """The text that java.util.Properties stores with an empty comment, dated in UTC."""
    lines = ["#", f"#{_java_date(now_ms)}"]
    lines += [f"{_escape(name, in_name=True)}={_escape(value, in_name=False)}" for name, value in properties.items()]
    return "\n".join(lines) + "\n"


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines; a line that ends in an odd number of backslashes continues in the next."""
    pending: str | None = None
    for natural in io.StringIO(text, newline=None):
        line = natural.rstrip("\n").lstrip(_SPACE)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = line if pending is None else pending + line
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            pending = line[:-1]
            continue
        pending = None
        yield line
    if pending:
        yield pending


def _end_of_name(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in _SEPARATORS:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == "u":
            if not _UNICODE_ESCAPE.fullmatch(text[at + 2 : at + 6]):
                raise ValueError("Malformed \\uxxxx encoding.")
            out.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
            at += 2
    return "".join(out)


def _escape(text: str, in_name: bool) -> str:
    named = {value: "\\" + letter for letter, value in _ESCAPES.items()}
    out: list[str] = []
    for at, char in enumerate(text):
        if char in "\\=:#!" or (char == " " and (in_name or at == 0)):
            out.append("\\" + char)
        else:
            out.append(named.get(char, char))
    return "".join(out)


def _java_date(now_ms: int) -> str:
    """The text of java.util.Date.toString, in any locale of this process."""
    t = datetime.fromtimestamp(now_ms // 1000, UTC)
    return f"{_DAYS[t.weekday()]} {_MONTHS[t.month - 1]} {t.day:02d} {t:%H:%M:%S} UTC {t.year}"
