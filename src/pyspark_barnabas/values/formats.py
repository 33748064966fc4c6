"""Creates the format of the settings: resolves its schema and chooses its class.

Runs on the driver. A format is imported at its first use, because some need optional packages.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import DataType, StructField, StructType

from pyspark_barnabas.values.schema_text import struct_of
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.value_decoder import ValueFormat


def format_of(settings: ValueSettings, options: Mapping[str, str], schema: StructType | None) -> ValueFormat:
    """The format of the settings. `schema` is the schema of the whole source from an earlier call; it saves resolving it again."""
    if settings.format == "string":
        from pyspark_barnabas.values.string import StringFormat

        return StringFormat.of(settings)
    if settings.format == "avro":
        from pyspark_barnabas.values.avro.avro_format import avro_format

        return avro_format(settings, options)
    if settings.format == "protobuf":
        from pyspark_barnabas.values.protobuf.protobuf_format import protobuf_format

        return protobuf_format(settings, options)
    kind = _struct(settings, options, schema)
    if settings.format == "csv":
        from pyspark_barnabas.values.csv.csv_format import CsvFormat

        return CsvFormat.of(settings, kind)
    from pyspark_barnabas.values.json.json_format import JsonFormat

    return JsonFormat.of(settings, kind)


def _struct(settings: ValueSettings, options: Mapping[str, str], schema: StructType | None) -> StructType:
    if settings.schema is not None:
        return struct_of(settings.schema)
    if settings.infer:
        from pyspark_barnabas.values.inference import inferred_struct

        return _known(settings, schema) or inferred_struct(settings, options)
    from pyspark_barnabas.values.registry import registered_json_struct

    return _known(settings, schema) or registered_json_struct(settings, options)


def _known(settings: ValueSettings, schema: StructType | None) -> StructType | None:
    """The value's part of the schema of the whole source, if it can be separated."""
    if schema is None or settings.flatten:
        return None if schema is None else _unflattened(settings, schema)
    kinds: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    kind = kinds.get(settings.column)
    return kind if isinstance(kind, StructType) else None


_OF_THE_RECORD = frozenset(("key", "topic", "partition", "offset", "timestamp", "timestampType", "headers"))


def _unflattened(settings: ValueSettings, schema: StructType) -> StructType | None:
    fields: list[StructField] = [
        field for field in schema.fields if field.name not in _OF_THE_RECORD and field.name != settings.corrupt_column
    ]
    return StructType(fields) if fields else None
