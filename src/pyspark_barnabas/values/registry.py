"""Schemas of a schema registry, and the frames that its serializers write before values.

The driver converts a subject's schema to Spark's types. On executors each value has the id of its writer's schema, which a process requests
once. The client is that of `barnabas.client`. Frames are Confluent's: a zero and the schema's id, a one and its GUID, or the GUID in a
header (needs includeHeaders). A registry that does not answer fails the task; it never makes a record malformed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from barnabas.client.serialization.registry import RegisteredSchema, Schema, SchemaRegistryClient, SchemaRegistryError
from barnabas.client.serialization.schema_serde import VALUE_HEADER
from pyspark_barnabas.errors import DataSourceError, OptionError
from pyspark_barnabas.options import given
from pyspark_barnabas.subscription import parse_subscription
from pyspark_barnabas.values.settings import REGISTRY_URL, ValueSettings

SUBJECT: Final = "value.schema.subject"
_NUMBER_BYTES: Final = 5
_GUID_BYTES: Final = 17
_NOT_FOUND: Final = 404
CLIENTS_MAX: Final = 8


@dataclass(frozen=True)
class Frame:
    """The writer's schema of a value, and the start of the data in the value."""

    schema: int | str  # its id or its GUID
    start: int


@dataclass(frozen=True)
class Unframed:
    values: pa.Array  # null if the frame is invalid
    faults: dict[int, str]


class UnknownFrame(Exception):
    """A value without the id of a schema, or with an id that does not exist."""


def registered_schema(settings: ValueSettings, options: Mapping[str, str], form: str | None = None) -> RegisteredSchema:
    """The schema of the options: the latest or a given version of a subject."""
    subject = settings.subject or _subject(options)
    client = registry_client(settings.registry)
    try:
        registered = client.latest(subject, form) if settings.version is None else client.version(subject, settings.version, form)
    except SchemaRegistryError as fault:
        if fault.http_status != _NOT_FOUND:
            raise OptionError(REGISTRY_URL, f"the schema registry cannot be asked: {fault}.") from fault
        version = "" if settings.version is None else f" with a version {settings.version}"
        raise OptionError(SUBJECT, f"the schema registry has no subject '{subject}'{version}: {fault}.") from fault
    _refuse_rules(registered, settings.registry)
    expected = settings.format.upper()
    if registered.schema.type != expected:
        raise OptionError("value.format", f"the schema of subject '{subject}' is {registered.schema.type}, not {expected}.")
    return registered


def registered_json_struct(settings: ValueSettings, options: Mapping[str, str]) -> StructType:
    from pyspark_barnabas.values.json.json_schema import struct_of_json_schema

    registered = registered_schema(settings, options)
    named = dict(registry_client(settings.registry).referenced_schemas(registered.schema))
    return struct_of_json_schema(registered.schema.text, {name: schema.text for name, schema in named.items()})


def registry_client(settings: Mapping[str, str]) -> SchemaRegistryClient:
    """The client of this process for these settings."""
    return _client(frozenset(settings.items()))


@lru_cache(maxsize=CLIENTS_MAX)
def _client(settings: frozenset[tuple[str, str]]) -> SchemaRegistryClient:
    return SchemaRegistryClient(dict(settings))


def writer_schema(settings: Mapping[str, str], schema: int | str, form: str | None = None) -> Schema:
    """The schema of a frame. Raises UnknownFrame if there is none, and DataSourceError if the registry does not answer."""
    client = registry_client(settings)
    try:
        registered = client.schema_by_id(schema, form=form) if isinstance(schema, int) else client.schema_by_guid(schema, form)
    except SchemaRegistryError as fault:
        if fault.http_status == _NOT_FOUND:
            raise UnknownFrame(f"the registry has no schema {schema}") from None
        raise DataSourceError(f"The schema registry (option '{REGISTRY_URL}') cannot be asked for schema {schema}: {fault}") from fault
    _refuse_rules(registered, settings)
    return registered.schema


def frame_of(value: bytes, header: bytes | None = None) -> Frame:
    """The frame of a value. Raises UnknownFrame."""
    for text, start in ((header, 0), (value, None)):
        if text is None:
            continue
        if text[:1] == b"\0" and len(text) >= _NUMBER_BYTES:
            return Frame(int.from_bytes(text[1:_NUMBER_BYTES], "big"), _NUMBER_BYTES if start is None else start)
        if text[:1] == b"\1" and len(text) >= _GUID_BYTES:
            return Frame(str(uuid.UUID(bytes=text[1:_GUID_BYTES])), _GUID_BYTES if start is None else start)
    if value[:1] in (b"\0", b"\1"):
        raise UnknownFrame("it is too short to name its schema")
    raise UnknownFrame("it does not begin with the number of a schema (Unknown magic byte!)")


def schema_headers(batch: pa.RecordBatch) -> Iterator[bytes | None]:
    """For each row the header with the schema of its value, if headers were read."""
    at = batch.schema.get_field_index("headers")
    if at < 0:
        for _ in range(batch.num_rows):
            yield None
        return
    for headers in batch.column(at).to_pylist():
        yield next((header["value"] for header in headers or () if header["key"] == VALUE_HEADER), None)


def strip_json_frames(values: pa.Array, batch: pa.RecordBatch, settings: Mapping[str, str]) -> Unframed:
    """Values without their frames. The schema of a frame must exist, but the query's schema is used to read the value."""
    framed = pc.and_(pc.starts_with(values, pattern=b"\0"), pc.greater_equal(pc.binary_length(values), _NUMBER_BYTES))
    if pc.all(framed).as_py() is not False:  # the values that are not null
        fronts = pc.binary_slice(values.drop_null(), 1, _NUMBER_BYTES)
        if _all_exist(fronts, settings):
            return Unframed(pc.binary_slice(values, _NUMBER_BYTES, 2**31 - 1), {})
    faults: dict[int, str] = {}
    bare: list[bytes | None] = []
    for row, (value, header) in enumerate(zip(values.to_pylist(), schema_headers(batch), strict=True)):
        if value is not None:
            try:
                frame = frame_of(value, header)
                writer_schema(settings, frame.schema)
                value = value[frame.start :]
            except UnknownFrame as fault:
                faults[row] = str(fault)
                value = b"?"  # not JSON: all columns of the row are null
        bare.append(value)
    return Unframed(pa.array(bare, pa.binary()), faults)


def _all_exist(fronts: pa.Array, settings: Mapping[str, str]) -> bool:
    numbers = np.unique(np.frombuffer(b"".join(fronts.unique().to_pylist()), dtype=">u4"))
    try:
        for number in numbers.tolist():
            writer_schema(settings, number)
    except UnknownFrame:
        return False
    return True


def _refuse_rules(registered: RegisteredSchema, settings: Mapping[str, str]) -> None:
    """Raises an error for a schema with rules: a rule may decrypt a field, and ignoring it would give wrong values."""
    if registered.has_rules and settings.get("rules.ignore", "false").lower() != "true":
        raise OptionError(
            "value.rules.ignore",
            f"schema {registered.id} has rules (data contracts), which are not carried out here; 'true' goes on without them.",
        )


def _subject(options: Mapping[str, str]) -> str:
    """The subject of the only topic, as Confluent's serializers name it."""
    names: Any = None
    if given(options, "logDirs") is None:
        names = parse_subscription(options).names()
    if names is None or len(names) != 1:
        raise OptionError(SUBJECT, "must be set where not exactly one topic is named to read.")
    return f"{next(iter(names))}-value"


__all__ = [
    "Frame",
    "UnknownFrame",
    "Unframed",
    "frame_of",
    "registered_json_struct",
    "registered_schema",
    "registry_client",
    "schema_headers",
    "strip_json_frames",
    "writer_schema",
]
