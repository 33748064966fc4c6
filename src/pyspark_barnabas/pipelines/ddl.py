"""Splits a schema in Spark's DDL into columns without a Spark session: the definitions of declarative pipelines must not use one.

Types are not validated here; Spark reports a wrong type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_COLUMN: Final = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|([^\s:`]+))(?:\s*:\s*|\s+)(.+?)(?:\s+NOT\s+NULL)?(?:\s+COMMENT\s.*)?\s*", re.IGNORECASE | re.DOTALL
)
_OPENING: Final = "<("
_CLOSING: Final = ">)"


def column_types(ddl: str) -> dict[str, str]:
    """The types by name: "id INT, place STRUCT<x: INT, y: INT>" gives {"id": "INT", "place": "STRUCT<x: INT, y: INT>"}."""
    types: dict[str, str] = {}
    for part in _parts(ddl):
        column = _COLUMN.fullmatch(part)
        if column is None:
            raise ValueError(f"{part.strip()!r} in the schema is no column: write a name and a type, as in 'id INT, name STRING'")
        types[column[1].replace("``", "`") if column[1] else column[2]] = column[3]
    return types


def _parts(ddl: str) -> Iterator[str]:
    """Splits the text at commas outside of brackets and quotes."""
    depth, quote, begin = 0, "", 0
    for position, letter in enumerate(ddl):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "`'\"":
            quote = letter
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and depth == 0:
            yield ddl[begin:position]
            begin = position + 1
    yield ddl[begin:]
