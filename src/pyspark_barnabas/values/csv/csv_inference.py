"""Types of CSV texts, by the rules of spark.read.csv with inferSchema: the narrowest type that fits all cells of a column.

Columns are named _c0, _c1…; the first line gives their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_barnabas.values.csv.csv_text import CsvFault, CsvSyntax, split_line
from pyspark_barnabas.values.json.json_rows import Misfit
from pyspark_barnabas.values.text.text_numbers import java_double_of, java_integer
from pyspark_barnabas.values.text.times import TimeFault, Times

_DIGITS_MAX: Final = 38
_WHOLE: Final = re.compile(r"[+-]?\d{1,38}", re.ASCII)


def infer_csv(texts: Iterable[str], syntax: CsvSyntax, times: Times) -> StructType:
    """The columns of these lines; none if there is no line."""
    kinds: list[DataType] = []
    for text in texts:
        try:
            cells = split_line(text, syntax)
        except CsvFault:
            continue
        if cells is None:
            continue
        if not kinds:
            kinds = [NullType()] * len(cells)
        for number, cell in enumerate(cells[: len(kinds)]):
            if cell is not None and cell != syntax.null_value:
                kinds[number] = _common(kinds[number], _narrowest(cell, syntax, times))
    return StructType([StructField(f"_c{number}", _settled(kind)) for number, kind in enumerate(kinds)])


def _narrowest(cell: str, syntax: CsvSyntax, times: Times) -> DataType:
    for bits, kind in ((32, IntegerType()), (64, LongType())):
        try:
            java_integer(cell, bits)
            return kind
        except Misfit:
            continue
    if _WHOLE.fullmatch(cell):
        return _whole(cell)
    try:
        if cell not in syntax.special_numbers:
            java_double_of(cell)
        return DoubleType()
    except Misfit:
        pass
    for read, time_kind in ((times.date, DateType()), (times.timestamp, TimestampType())):
        if isinstance(time_kind, DateType) and not _looks_like_a_date(cell, times):
            continue
        try:
            read(cell)
            return time_kind
        except TimeFault:
            continue
    return BooleanType() if cell.lower() in ("true", "false") else StringType()


def _whole(cell: str) -> DataType:
    try:
        digits = len(Decimal(cell).as_tuple().digits)
    except InvalidOperation:
        return DoubleType()
    return DecimalType(digits, 0) if digits <= _DIGITS_MAX else DoubleType()


def _looks_like_a_date(cell: str, times: Times) -> bool:
    """Whether a text is a date only. A text with a time of day is a timestamp, although it starts with a date."""
    return times.date_format is not None or re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", cell, re.ASCII) is not None


_ORDER: Final = (IntegerType, LongType, DecimalType, DoubleType)


def _common(one: DataType, other: DataType) -> DataType:
    if one == other or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    if isinstance(one, _ORDER) and isinstance(other, _ORDER):
        if isinstance(one, DecimalType) and isinstance(other, DecimalType):
            return one if one.precision >= other.precision else other
        return max((one, other), key=lambda kind: _ORDER.index(type(kind)))
    if {type(one), type(other)} == {DateType, TimestampType}:
        return TimestampType()
    return StringType()


def _settled(kind: DataType) -> DataType:
    return StringType() if isinstance(kind, NullType) else kind
