"""Numbers as Java formats and parses them, where output, an error or a znode depends on it."""

from __future__ import annotations

import math
import re
from typing import Final

_DOUBLE: Final = re.compile(r"\s*[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)\s*")
_PLAIN_MIN: Final = 1e-3
_PLAIN_END: Final = 1e7


def parse_double(text: str) -> float | None:
    """Double.parseDouble; None if that fails."""
    if not _DOUBLE.fullmatch(text):
        return None
    return float(text.strip().rstrip("fFdD") if not text.strip().endswith("Infinity") else text)


def double_text(value: float) -> str:
    """Double.toString: 1.0E7 from ten million on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_END:
        text = repr(float(value))
        return text if "e" not in text else f"{value:.20f}".rstrip("0")
    exponent = f"{value:.16e}".partition("e")[2]
    digits = repr(float(value))
    short = re.sub(r"e.*", "", digits) if "e" in digits else None
    if short is None:
        # The shortest digits that parse to the same number, with the decimal point after the first one.
        plain = digits.lstrip("-").replace(".", "").strip("0") or "0"
        short = ("-" if value < 0 else "") + plain[0] + "." + (plain[1:] or "0")
    elif "." not in short:
        short += ".0"
    return f"{short}E{int(exponent)}"
