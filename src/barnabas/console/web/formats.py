"""How values are written on pages: numbers with units, names with what is invisible in them made visible, and durations.

Times are written in UTC; console.js shows them in the reader's zone.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

TEXT_MAX: Final = 10_000  # characters of a name or value that a page shows; a longer text ends with how much is missing
CODES_MAX: Final = 1_000  # invisible characters of a text that a page shows by their codes: the markup of one has about 60 characters
_BYTE_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_COUNT_UNITS: Final = ("", "k", "M", "G", "T", "P", "E")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")
_LAST_TIME_MS: Final = 253_402_300_799_999  # the end of the year 9999
_UNBOUNDED: Final = 2**62  # Kafka's largest numbers stand for no bound
NONE: Final = "–"


def number(value: float | None) -> str:
    """All digits, in groups: 1,234,567."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 or value == int(value) else f"{value:,.1f}"


def count(value: float | None) -> str:
    """At most four characters and a unit: 1.2 M."""
    return NONE if value is None else _scaled(value, _COUNT_UNITS)


def size(value: float | None) -> str:
    """Bytes, in units of 1,000: 1.2 MB."""
    return NONE if value is None else _scaled(value, _BYTE_UNITS)


def rate(value: float | None, unit: str = "records") -> str:
    """A rate per second: 1.2 k records/s. With the unit `bytes`: 1.2 MB/s."""
    if value is None:
        return NONE
    return f"{size(value)}/s" if unit == "bytes" else f"{count(value)} {unit}/s"


def percent(share: float | None) -> str:
    return NONE if share is None else f"{share * 100:.0f} %" if share >= 0.1 or share == 0 else f"{share * 100:.1f} %"


def duration(ms: float | None) -> str:
    """The two largest units: 2 h 5 min."""
    if ms is None:
        return NONE
    if ms < 1_000:
        return f"{ms:.0f} ms"
    parts: list[str] = []
    rest = int(ms // 1_000)
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if rest >= seconds:
            parts.append(f"{rest // seconds} {unit}")
            rest %= seconds
        elif parts:
            break
    return " ".join(parts[:2])


def meaning(value: str | None, setting: str) -> str | None:
    """The value of a setting in the unit that its name has, for a number that is not plain: 604800000 of retention.ms is 7 d."""
    if value is None or not value.isascii() or not value.isdigit() or int(value) < 1_000 or int(value) >= _UNBOUNDED:
        return None
    return duration(int(value)) if setting.endswith(".ms") else size(int(value)) if setting.endswith(".bytes") else None


def iso(ms: int | None) -> str | None:
    """A time as ISO 8601 in UTC; None for a time that no calendar has."""
    if ms is None or not 0 <= ms <= _LAST_TIME_MS:
        return None
    return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc(ms: int | None) -> str:
    """A time for people without JavaScript: 2026-11-18 20:15:00.000 UTC."""
    text = iso(ms)
    if text is None:
        return NONE if ms is None or ms < 0 else f"{ms} ms"
    return text.replace("T", " ").replace("Z", " UTC")


def visible(value: object, limit: int = TEXT_MAX) -> Markup:
    """A name or value as HTML. Control characters, characters that change the direction of text, and bytes that are not UTF-8 are shown by
    their codes. A text longer than `limit`, or with more than CODES_MAX such characters, is cut, and the page says so."""
    if value is None:
        return Markup('<span class="null">null</span>')
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
    shown = text[:limit]
    pieces: list[Markup] = []
    start = codes = 0
    for position, character in enumerate(shown):
        if character in _KEPT or (character.isascii() and character.isprintable()) or not _is_invisible(character):
            continue
        if codes == CODES_MAX:
            shown = shown[:position]
            break
        codes += 1
        pieces += [
            escape(shown[start:position]),
            Markup('<span class="code" title="{}">{}</span>').format(_name(character), _code(character)),
        ]
        start = position + 1
    pieces.append(escape(shown[start:]))
    missing = len(text) - len(shown)
    if missing > 0:
        pieces.append(Markup('<span class="cut"> … {} more characters</span>').format(number(missing)))
    return Markup("").join(pieces)


def visible_text(value: object, limit: int = TEXT_MAX) -> str:
    """What `visible` shows, as a text without markup, for attributes."""
    return visible(value, limit).striptags()


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE and character != "\u200d"  # the joiner holds emoji together


def _code(character: str) -> str:
    number_of = ord(character)
    if 0xDC80 <= number_of <= 0xDCFF:  # a byte that is not UTF-8, by surrogateescape
        return f"\\x{number_of - 0xDC00:02x}"
    return f"U+{number_of:04X}"


def _name(character: str) -> str:
    return "a byte that is not UTF-8" if 0xDC80 <= ord(character) <= 0xDCFF else unicodedata.name(character, "a control character").lower()


def _scaled(value: float, units: tuple[str, ...]) -> str:
    scaled, index = float(value), 0
    while abs(scaled) >= 999.5 and index < len(units) - 1:
        scaled, index = scaled / 1_000, index + 1
    text = f"{scaled:.0f}" if abs(scaled) >= 99.95 or scaled == int(scaled) else f"{scaled:.1f}"
    return f"{text} {units[index]}".rstrip()
