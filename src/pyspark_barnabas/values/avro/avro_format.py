"""`value.format=avro`: Avro records as columns, with a given schema or the schemas of a schema registry.

With a given schema, a value is one datum written with it. With a registry, each value has the id of its writer's schema and is resolved to
the subject's (or the given) schema by Avro's rules: so one query reads the values of several versions. Needs the package fastavro.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.types import DataType

from pyspark_barnabas.errors import OptionError, SchemaError
from pyspark_barnabas.values.avro.avro_types import finished, raw_type, spark_type, without_logical_types
from pyspark_barnabas.values.registry import (
    UnknownFrame,
    frame_of,
    registered_schema,
    registry_client,
    schema_headers,
    writer_schema,
)
from pyspark_barnabas.values.settings import ValueSettings
from pyspark_barnabas.values.value_decoder import Parsed, ValueFormat

try:
    import fastavro
    from fastavro.schema import load_schema

    from barnabas.client.serialization.avro_guard import read_datum
except ImportError as missing:
    raise ImportError("value.format=avro needs the package fastavro: pip install fastavro") from missing

_ROOT: Final = "\0root"  # not a valid name in Avro
PARSED_MAX: Final = 1000


def avro_format(settings: ValueSettings, options: Mapping[str, str]) -> ValueFormat:
    if settings.schema is not None:
        text = _given(settings.schema)
    else:
        registered = registered_schema(settings, options)
        named = registry_client(settings.registry).referenced_schemas(registered.schema)
        text = _whole(registered.schema.text, {name: schema.text for name, schema in named})
    try:
        return AvroFormat(text, spark_type(json.loads(text)), dict(settings.registry) or None)
    except SchemaError as fault:
        raise OptionError("value.schema", str(fault)) from None


@dataclass(frozen=True)
class AvroFormat:
    reader: str  # the reader's schema, with all references inlined
    data_type: DataType
    registry: dict[str, str] | None = None

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        schema = json.loads(self.reader)
        empty: dict[str, Any] | None = {} if isinstance(schema, dict) and schema.get("type") == "record" else None
        faults: dict[int, str] = {}
        rows: list[Any] = []
        for row, (value, header) in enumerate(zip(values.to_pylist(), schema_headers(batch), strict=True)):
            datum: Any = None
            if value is not None:
                try:
                    datum = self._read(value, header)
                except UnknownFrame as fault:
                    datum, faults[row] = empty, str(fault)
                except _Malformed as fault:
                    datum, faults[row] = empty, str(fault)
            rows.append(datum)
        return Parsed(finished(pa.array(rows, raw_type(schema)), schema, self.data_type), faults)

    def _read(self, value: bytes, header: bytes | None) -> Any:
        if self.registry is None:
            return _datum(value, _parsed(self.reader), None)
        frame = frame_of(value, header)
        writer = _writer(frozenset(self.registry.items()), frame.schema)
        return _datum(value[frame.start :], writer, _parsed(self.reader))


class _Malformed(Exception):
    """The bytes are not a datum of the schema."""


def _datum(data: bytes, writer: Any, reader: Any) -> Any:
    if _is_bytes(writer):
        return data if reader is not None else read_datum(data, writer, reader)
    try:
        return read_datum(data, writer, reader)
    except Exception as fault:  # hostile bytes can raise anything from EOFError to OverflowError
        raise _Malformed(f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__) from None


def _is_bytes(schema: Any) -> bool:
    """Whether the schema is plain bytes, which Confluent's clients write without a length."""
    return (schema.get("type") if isinstance(schema, dict) else schema) == "bytes"


@lru_cache(maxsize=PARSED_MAX)
def _parsed(text: str) -> Any:
    """A schema parsed by fastavro, with numbers for dates and times, because whole columns are converted to times at once."""
    return fastavro.parse_schema(without_logical_types(json.loads(text)))


@lru_cache(maxsize=PARSED_MAX)
def _writer(settings: frozenset[tuple[str, str]], number: int | str) -> Any:
    writer = writer_schema(dict(settings), number)
    named = registry_client(dict(settings)).referenced_schemas(writer)
    return _parsed(_whole(writer.text, {name: schema.text for name, schema in named}))


def _given(schema: str) -> str:
    try:
        text = schema.strip()
        return _whole(text if text[:1] in ("{", "[", '"') else json.dumps(text), {})
    except SchemaError as fault:
        raise OptionError("value.schema", f"is no Avro schema: {fault}") from None


class _Named:
    """Schemas by name, in the form of fastavro's repository."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def load(self, name: str) -> Any:
        try:
            return self._schemas[name]
        except KeyError:
            raise SchemaError(f"there is no schema named {name}") from None


def _whole(text: str, referred: Mapping[str, str]) -> str:
    """A schema with the schemas that it refers to inlined."""
    try:
        schemas = {_ROOT: json.loads(text), **{name: json.loads(other) for name, other in referred.items()}}
        loaded = load_schema(_ROOT, repo=cast(Any, _Named(schemas)))
    except SchemaError:
        raise
    except Exception as fault:  # an invalid schema can raise any exception
        raise SchemaError(f"{fault or type(fault).__name__}: {text[:200]}") from None
    return json.dumps(_plain(loaded))


def _plain(schema: Any) -> Any:
    """The schema without the marks that fastavro adds when it parses."""
    if isinstance(schema, dict):
        return {name: _plain(part) for name, part in schema.items() if not name.startswith("__")}
    return [_plain(part) for part in schema] if isinstance(schema, list) else schema
