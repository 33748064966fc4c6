"""`value.format=csv`: each value is one line of CSV, with the meaning of Spark's from_csv.

Rows without a quote are split and converted as whole columns. Other rows, and rows for which the conversion of a column fails, are read
one by one as Spark's parser reads them (`csv_text`). A line break in a value is text, as in from_csv: a record is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.values.arrow_types import arrow_type
from pyspark_barnabas.values.csv.csv_text import CsvFault, CsvSyntax, Split, split_line
from pyspark_barnabas.values.halving import read_apart
from pyspark_barnabas.values.json.json_rows import Misfit, decimal_rounder
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.text.arrow_times import NotPlain, check_all, dates, timestamps, timestamps_ntz
from pyspark_barnabas.values.text.text_numbers import java_double_of, java_integer
from pyspark_barnabas.values.text.times import TimeFault, Times
from pyspark_barnabas.values.value_decoder import Parsed

_WHOLE: Final = r"^-?[0-9]{1,18}$"
_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"
_RANGES: Final[dict[type[DataType], int]] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_TEXTS: Final = (StringType, BinaryType)
_SPACE: Final = "".join(map(chr, range(33)))


@dataclass(frozen=True)
class CsvFormat:
    struct: StructType
    times: Times = field(default_factory=Times)
    syntax: CsvSyntax = field(default_factory=CsvSyntax)

    @classmethod
    def of(cls, settings: ValueSettings, struct: StructType) -> CsvFormat:
        for column in struct.fields:
            if not isinstance(
                column.dataType,
                (*_RANGES, *_TEXTS, BooleanType, FloatType, DoubleType, DecimalType, DateType, TimestampType, TimestampNTZType),
            ):
                raise OptionError("value.schema", f"CSV has no columns of type {column.dataType.simpleString()}: '{column.name}'.")
        return cls(struct, Times.of(settings.parser), CsvSyntax.of(settings.parser))

    @property
    def data_type(self) -> DataType:
        return self.struct

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        return CsvReader(self).read(values)


class CsvReader:
    """Reads one batch."""

    def __init__(self, form: CsvFormat) -> None:
        self._form = form
        self._syntax = form.syntax
        self._kinds = [column.dataType for column in form.struct.fields]
        self._type = arrow_type(form.struct)
        self._converters: list[Callable[[str], Any]] = []

    def read(self, values: pa.Array) -> Parsed:
        if not self._form.times.are_default or not len(values):
            return self._singly(values)
        plain = pc.greater(pc.binary_length(values), 0)
        for mark in (self._syntax.quote, self._syntax.comment):
            if mark:
                plain = pc.and_(plain, pc.invert(pc.match_substring(values, pattern=mark.encode())))
        return read_apart(values, plain.fill_null(False), self._at_once, self._singly)

    def _at_once(self, values: pa.Array) -> pa.Array:
        parts = pc.split_pattern(values.cast(pa.string()), pattern=self._syntax.separator)
        width = len(self._kinds)
        check_all(pc.equal(pc.list_value_length(parts), width))
        cells = self._trimmed(pc.list_flatten(parts))
        if pc.max(pc.binary_length(cells)).as_py() > self._syntax.characters_max >= 0:
            raise NotPlain
        first = np.arange(len(values), dtype=np.int64) * width
        columns = [self._column(cells.take(pa.array(first + number)), kind) for number, kind in enumerate(self._kinds)]
        return pa.StructArray.from_arrays(columns, fields=list(self._type))

    def _trimmed(self, cells: pa.Array) -> pa.Array:
        if self._syntax.trims_left:
            cells = pc.utf8_ltrim(cells, characters=_SPACE)
        if self._syntax.trims_right:
            cells = pc.utf8_rtrim(cells, characters=_SPACE)
        return cells

    def _column(self, cells: pa.Array, kind: DataType) -> pa.Array:
        is_null = pc.equal(cells, "")
        if self._syntax.null_value:
            is_null = pc.or_(is_null, pc.equal(cells, self._syntax.null_value))
        if pc.any(is_null).as_py():
            cells = pc.if_else(is_null, pa.scalar(None, pa.string()), cells)
        target = arrow_type(kind)
        if isinstance(kind, _TEXTS):
            return cells.cast(target)
        if isinstance(kind, tuple(_RANGES)):
            return _matching(cells, _WHOLE).cast(target)
        if isinstance(kind, DoubleType):
            return _matching(cells, _NUMBER).cast(target)
        if isinstance(kind, DateType):
            return dates(cells)
        if isinstance(kind, TimestampType):
            return timestamps(cells, self._form.times.zone)
        if isinstance(kind, TimestampNTZType):
            return timestamps_ntz(cells)
        if isinstance(kind, BooleanType):
            return _matching(pc.ascii_lower(cells), "^(true|false)$").cast(target)
        if isinstance(kind, DecimalType) and kind.precision > kind.scale:
            fraction = rf"(\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
            return _matching(cells, rf"^-?[0-9]{{1,{kind.precision - kind.scale}}}{fraction}$").cast(target)
        if pc.all(pc.is_null(cells)).as_py():
            return pa.nulls(len(cells), target)
        raise NotPlain

    def _singly(self, values: pa.Array) -> Parsed:
        if not self._converters:
            self._converters = [self._converter(kind) for kind in self._kinds]
        names = [column.name for column in self._form.struct.fields]
        rows: list[dict[str, Any] | None] = []
        faults: dict[int, str] = {}
        for number, value in enumerate(values.to_pylist()):
            if value is None:
                rows.append(None)
                continue
            try:
                cells = split_line(value.decode("utf-8", "replace"), self._syntax)
            except CsvFault as fault:
                rows.append({})
                faults[number] = str(fault)
                continue
            row, reason = self._row(cells, names)
            rows.append(row)
            if reason:
                faults[number] = reason
        return Parsed(pa.array(rows, self._type), faults)

    def _row(self, cells: Split, names: Sequence[str]) -> tuple[dict[str, Any], str]:
        """The fields that could be read, and the fault, if there is one."""
        row: dict[str, Any] = {}
        if cells is None:
            return row, ""
        reason = "" if len(cells) == len(names) else f"it has {len(cells)} columns, not {len(names)}"
        for name, cell, convert in zip(names, cells, self._converters, strict=False):
            if cell is None or cell == self._syntax.null_value:
                continue
            try:
                row[name] = convert(cell)
            except (Misfit, TimeFault) as fault:
                reason = reason or f"{name}: {fault}"
        return row, reason

    def _converter(self, kind: DataType) -> Callable[[str], Any]:
        times = self._form.times
        if isinstance(kind, StringType):
            return str
        if isinstance(kind, BinaryType):
            return str.encode
        if isinstance(kind, DateType):
            return times.date
        if isinstance(kind, TimestampType):
            return times.timestamp
        if isinstance(kind, TimestampNTZType):
            return times.timestamp_ntz
        if isinstance(kind, BooleanType):
            return _boolean
        if isinstance(kind, DecimalType):
            rounded = decimal_rounder(kind.precision, kind.scale)
            return lambda cell: rounded(cell.replace(",", ""))
        bits = _RANGES.get(type(kind))
        if bits is not None:
            return lambda cell: java_integer(cell, bits)
        return self._double

    def _double(self, cell: str) -> float:
        special = self._syntax.special_numbers.get(cell)
        return java_double_of(cell) if special is None else special


def _matching(cells: pa.Array, pattern: str) -> pa.Array:
    check_all(pc.match_substring_regex(cells, pattern=pattern))
    return cells


def _boolean(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise Misfit(f"{cell[:40]!r} is no boolean")
    return cell.lower() == "true"
