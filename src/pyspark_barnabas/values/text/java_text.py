"""Numbers and JSON as Java formats them, for fields that are strings in the schema and have another type in the record.

Spark formats such a value with Jackson: without blanks, integers unchanged, other numbers as Double.toString formats them.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from pyspark_barnabas.values.json.json_text import Float, Int, NotANumber, Pairs

_PLAIN_MIN: Final = 1e-3
_PLAIN_MAX: Final = 1e7
_CONTROL: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\",
}  # fmt: skip


def java_double(value: float) -> str:
    """Double.toString: plain from 0.001 up to ten millions, else with an exponent, and always with a digit behind the point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _digits(abs(value))
    if _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(value: float) -> tuple[str, int]:
    """The shortest digits that identify this number, and the exponent of the first digit."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    first = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return digits.rstrip("0") or "0", first + int(exponent or 0)


def json_again(node: Any) -> str:
    """A parsed value as text."""
    if isinstance(node, Pairs):
        return "{" + ",".join(f"{_quoted(name)}:{json_again(value)}" for name, value in node) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(json_again, node)) + "]"
    if isinstance(node, Int):
        return str(int(node)) if len(node) < 4000 else str(node)
    if isinstance(node, Float):
        value = float(node)
        return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
    if isinstance(node, NotANumber):
        return f'"{java_double(special(node))}"'
    return _quoted(node) if isinstance(node, str) else json.dumps(node)


def special(word: str) -> float:
    """NaN and the infinities as text."""
    if word == "NaN":
        return math.nan
    return -math.inf if word.startswith("-") else math.inf


def _quoted(text: str) -> str:
    return '"' + text.translate(_CONTROL) + '"'
