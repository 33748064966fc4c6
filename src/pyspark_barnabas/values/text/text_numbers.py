"""Numbers in text as Java's parseInt and parseDouble read them."""

from __future__ import annotations

import re
from typing import Final

from pyspark_barnabas.values.json.json_rows import Misfit

_INTEGER: Final = re.compile(r"[+-]?\d{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_SPACE: Final = "".join(map(chr, range(33)))


def java_integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise Misfit(f"{text[:40]!r} is no whole number")
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise Misfit(f"{text[:40]} is too large for {bits} bits")
    return value


def java_double_of(text: str) -> float:
    text = text.strip(_SPACE)
    if _DECIMAL.fullmatch(text):
        return float(text if text.endswith(("NaN", "Infinity")) else text.rstrip("fFdD"))
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if hexadecimal is None:
        raise Misfit(f"{text[:40]!r} is no number")
    try:
        return float.fromhex(hexadecimal[1])
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")
