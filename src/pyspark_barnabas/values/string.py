"""`value.format=string`: the value is text, in UTF-8 or the charset of `value.encoding`.

A value that is not valid in this charset is malformed; Spark's cast would accept it and leave invalid text in the column.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import DataType, StringType

from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.value_decoder import Parsed


@dataclass(frozen=True)
class StringFormat:
    encoding: str = "utf-8"

    @classmethod
    def of(cls, settings: ValueSettings) -> StringFormat:
        encoding = settings.parser.get("encoding", "utf-8")
        try:
            return cls(codecs.lookup(encoding).name)
        except LookupError:
            raise OptionError("value.encoding", f"there is no encoding named '{encoding}'.") from None

    @property
    def data_type(self) -> DataType:
        return StringType()

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        if self.encoding == "utf-8":
            try:
                return Parsed(values.cast(pa.string()), {})
            except pa.ArrowInvalid:
                pass  # some value is invalid: check them one by one
        faults: dict[int, str] = {}
        texts: list[str | None] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode(self.encoding))
            except UnicodeDecodeError as fault:
                faults[row] = f"it is not {self.encoding}: {fault.reason} at byte {fault.start}"
                texts.append(None)
        return Parsed(pa.array(texts, pa.string()), faults)
