"""`value.format=json`: JSON objects as columns of a schema, with the meaning of Spark's from_json.

Arrow reads a batch of plain objects at once. If it fails, the batch is halved until few rows are left, and these are read one by one as
Spark's parser reads them (`json_text`, `json_rows`): so a malformed record does not slow down the others. Arrow only gets types that it
reads exactly as Spark does, and rejects other texts; a test compares the two paths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
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

from pyspark_barnabas.values.arrow_types import arrow_type
from pyspark_barnabas.values.halving import read_apart
from pyspark_barnabas.values.json.json_rows import Convert, Misfit, PartlyMisfit, root_converter
from pyspark_barnabas.values.json.json_text import JsonFault, Leniency, read_json
from pyspark_barnabas.values.registry import Unframed, strip_json_frames
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.text.arrow_times import NotPlain, dates, timestamps, timestamps_ntz
from pyspark_barnabas.values.text.times import Times
from pyspark_barnabas.values.value_decoder import Parsed

_BLANK: Final = "".join(map(chr, range(33)))
_AS_ARROW_READS: Final = (BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, StringType)
_AS_TEXT: Final = (DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class JsonFormat:
    struct: StructType
    times: Times = field(default_factory=Times)
    leniency: Leniency = field(default_factory=Leniency)
    registry: dict[str, str] | None = None  # settings of the registry's client, if values have the frame of its serializers

    @classmethod
    def of(cls, settings: ValueSettings, struct: StructType) -> JsonFormat:
        times = Times.of(settings.parser)
        root_converter(struct, times)  # rejects types that JSON cannot represent, before the query runs
        return cls(struct, times, Leniency.of(settings.parser), dict(settings.registry) or None)

    @property
    def data_type(self) -> DataType:
        return self.struct

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        if self.registry is None:
            return JsonReader(self).read(values)
        unframed: Unframed = strip_json_frames(values, batch, self.registry)
        parsed = JsonReader(self).read(unframed.values)
        return Parsed(parsed.column, {**parsed.faults, **unframed.faults})


class JsonReader:
    """Reads one batch."""

    def __init__(self, form: JsonFormat) -> None:
        self._form = form
        self._type = arrow_type(form.struct)
        self._convert: Convert | None = None
        plain = _plain_type(form.struct, form.times)
        self._plain_schema = None if plain is None else pa.schema(list(plain))

    def read(self, values: pa.Array) -> Parsed:
        if self._plain_schema is None or not len(values):
            return self._singly(values)
        # A complete object: then no text can continue from one record into the next.
        whole = pc.and_(pc.starts_with(values, pattern=b"{"), pc.ends_with(values, pattern=b"}")).fill_null(False)
        return read_apart(values, whole, self._at_once, self._singly)

    def _at_once(self, values: pa.Array) -> pa.Array:
        """Reads the values with Arrow. Raises an error if any value is not plain."""
        values.cast(pa.string())  # raises an error if it is not UTF-8, which Arrow's reader does not check
        lines = pc.binary_join_element_wise(values, pa.scalar(b"", values.type), pa.scalar(b"\n", values.type))
        text = _content(lines)
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=max(text.size, 1)),
            parse_options=pj.ParseOptions(explicit_schema=self._plain_schema, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(values):
            raise NotPlain
        columns = [
            self._finished(table.column(name).combine_chunks(), kind.dataType)
            for name, kind in zip(table.column_names, self._form.struct, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self._type))

    def _finished(self, column: Any, kind: DataType) -> pa.Array:
        """A column of Arrow's reader in the type that Spark expects."""
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
        if isinstance(kind, DateType):
            return dates(column)
        if isinstance(kind, TimestampType):
            return timestamps(column, self._form.times.zone)
        if isinstance(kind, TimestampNTZType):
            return timestamps_ntz(column)
        if isinstance(kind, StructType):
            columns = [self._finished(column.field(number), field.dataType) for number, field in enumerate(kind.fields)]
            return pa.StructArray.from_arrays(columns, fields=list(arrow_type(kind)), mask=column.is_null())
        if isinstance(kind, ArrayType):
            offsets, values = _list_parts(column)
            target = arrow_type(kind)
            return pa.ListArray.from_arrays(offsets, self._finished(values, kind.elementType), type=target, mask=column.is_null())
        if isinstance(kind, DoubleType | FloatType) and _has_negative_zero(column):
            raise NotPlain  # -0 is 0.0 in Spark, and -0.0 is -0.0
        return column

    def _singly(self, values: pa.Array) -> Parsed:
        if self._convert is None:
            self._convert = root_converter(self._form.struct, self._form.times, self._form.leniency.not_a_number)
        faults: dict[int, str] = {}
        rows: list[Any] = []
        for number, value in enumerate(values.to_pylist()):
            row = None
            if value is not None:
                try:
                    row = self._row(value)
                except PartlyMisfit as fault:
                    row, faults[number] = fault.partial, str(fault)
                except (Misfit, JsonFault) as fault:
                    row, faults[number] = {}, str(fault)
                except RecursionError:
                    row, faults[number] = {}, "it is nested too deeply"
            rows.append(row)
        return Parsed(pa.array(rows, self._type), faults)

    def _row(self, value: bytes) -> Any:
        text = value.decode("utf-8", "replace")
        if not text.strip(_BLANK):
            return None
        assert self._convert is not None
        return self._convert(read_json(text, self._form.leniency))


def _plain_type(kind: DataType, times: Times) -> pa.DataType | None:
    """The type for Arrow's reader, or None if Arrow and Spark read it differently."""
    if isinstance(kind, StructType):
        fields = [(field.name, _plain_type(field.dataType, times)) for field in kind.fields]
        names = {name for name, _ in fields}
        if len(names) < len(fields) or any(plain is None for _, plain in fields):
            return None
        return pa.struct([pa.field(name, plain) for name, plain in fields])
    if isinstance(kind, ArrayType):
        element = _plain_type(kind.elementType, times)
        return None if element is None else pa.list_(pa.field("element", element))
    if isinstance(kind, _AS_TEXT):
        return pa.string() if times.are_default else None
    return arrow_type(kind) if isinstance(kind, _AS_ARROW_READS) else None


def _content(lines: pa.Array) -> pa.Buffer:
    """The bytes of all values, concatenated."""
    _, offsets, content = lines.buffers()
    positions = np.frombuffer(offsets, dtype=np.int32)
    start, end = int(positions[lines.offset]), int(positions[lines.offset + len(lines)])
    return content.slice(start, end - start)


def _has_negative_zero(column: pa.Array) -> bool:
    numbers = column.fill_null(1).to_numpy(zero_copy_only=False)
    return bool(np.any((numbers == 0) & np.signbit(numbers)))


def _list_parts(column: pa.ListArray) -> tuple[pa.Array, pa.Array]:
    """Offsets that start at zero, and the elements that they index."""
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return pc.subtract(column.offsets, pa.scalar(first, pa.int32())), column.values.slice(first, last - first)
