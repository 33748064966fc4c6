"""Avro with a schema registry, wire-compatible with Confluent's KafkaAvroSerializer. Needs `pip install barnabas[avro]`.

Records are dicts (and Avro's logical types are Python's: datetime, Decimal, UUID), unless `to_dict` and `from_dict` convert objects to
dicts and back. A value without a schema may be a str, bytes, int, float or bool: it gets Avro's primitive schema, as in Java.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import Headers
from barnabas.client.serialization.registry import AVRO, Schema, SchemaRegistryClient
from barnabas.client.serialization.schema_serde import ParsedSchemas, SchemaDeserializer, SchemaSerializer, flag

try:
    import fastavro
    from fastavro.schema import load_schema

    from barnabas.client.serialization.avro_guard import read_datum
except ImportError as missing:
    raise ImportError("Avro needs the package fastavro: pip install 'barnabas[avro]'") from missing

_PRIMITIVES: Final[tuple[tuple[type, str], ...]] = (
    (bool, '"boolean"'),  # before int, because bool is a subclass of int
    (str, '"string"'),
    (bytes, '"bytes"'),
    (int, '"long"'),
    (float, '"double"'),
)
_ROOT: Final = "\0root"  # not a valid name in Avro


class AvroSerializer(SchemaSerializer):
    """`AvroSerializer(schema, registry=…)`, or by settings alone; settings are keyword arguments with `_` for `.`.

    The schema is JSON text, the same as a dict, or a Schema if it refers to others.
    """

    schema_type = AVRO

    def __init__(
        self,
        schema: str | Mapping[str, Any] | list[Any] | Schema | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        to_dict: Callable[[Any], Any] | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._given_schema = as_schema(schema)
        self._to_dict = to_dict
        self._parsed = ParsedSchemas(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self._strict = flag(configs, "validate.strict", False)

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        self._ready()
        value = data if self._to_dict is None else self._to_dict(data)
        schema = self._given_schema
        if schema is None and not self._is_schema_chosen:
            schema = _primitive(value)
        registered, parsed = self._plan(topic, schema, self._parsed, record_name)
        return self._framed(self._written(parsed, value), registered, headers)

    def _written(self, parsed: Any, value: Any) -> bytes:
        if _type_of(parsed) == "bytes" and isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)  # Confluent's clients write bare bytes without their length
        buffer = io.BytesIO()
        try:
            fastavro.schemaless_writer(buffer, parsed, value, strict=self._strict)
        except Exception as fault:  # fastavro's exception depends on where the value does not fit
            raise SerializationError(f"Error serializing Avro message: {fault or type(fault).__name__}") from fault
        return buffer.getvalue()


class AvroDeserializer(SchemaDeserializer):
    """Reads with the writer's schema, and converts to `schema` (or to the subject's latest, with use.latest.version) if there is one."""

    schema_type = AVRO

    def __init__(
        self,
        schema: str | Mapping[str, Any] | list[Any] | Schema | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        from_dict: Callable[[Any], Any] | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._reader_schema = as_schema(schema)
        self._from_dict = from_dict
        self._parsed = ParsedSchemas(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        if data is None:
            return None
        self._ready()
        schema_id, payload = self._unframed(data, headers)
        writer = self._parsed(self._writer_schema(schema_id))
        if _type_of(writer) == "bytes":
            value: Any = payload
        else:
            try:
                value = read_datum(payload, writer, self._reader(topic, writer))
            except SerializationError:
                raise
            except Exception as fault:  # malformed bytes cause anything from EOFError to OverflowError
                raise SerializationError(f"Error deserializing Avro message: {fault or type(fault).__name__}") from fault
        return value if self._from_dict is None else self._from_dict(value)

    def _reader(self, topic: str, writer: Any) -> Any:
        if self._reader_schema is not None:
            return self._parsed(self._reader_schema)
        if self.use_latest_version:
            return self._parsed(self.registry.latest(self._subject(topic, record_name(writer))).schema)
        return None


def as_schema(schema: str | Mapping[str, Any] | list[Any] | Schema | None) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, str):
        return Schema(json.dumps(schema))
    text = schema.strip()
    return Schema(text if text[:1] in ("{", "[", '"') else json.dumps(text))  # in Avro a bare name may denote a type


def record_name(parsed: Any) -> str | None:
    """The full name of a record; for a primitive its type, None for a union."""
    if isinstance(parsed, dict):
        name = parsed.get("name")
        return str(name) if name is not None else str(parsed["type"])
    return parsed if isinstance(parsed, str) else None


def _type_of(parsed: Any) -> Any:
    return parsed.get("type") if isinstance(parsed, dict) else parsed


def _primitive(value: Any) -> Schema | None:
    return next((Schema(text) for kind, text in _PRIMITIVES if isinstance(value, kind)), None)


class _Named:
    """Schemas by name, in the interface that fastavro uses."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def load(self, name: str) -> Any:
        try:
            return self._schemas[name]
        except KeyError:
            raise SerializationError(f"no schema named {name}") from None


def _parse(registry: SchemaRegistryClient, schema: Schema) -> Any:
    try:
        named = {_ROOT: json.loads(schema.text)}
        for name, referred in registry.referenced_schemas(schema):
            named[name] = json.loads(referred.text)
        return load_schema(_ROOT, repo=cast(Any, _Named(named)))
    except SerializationError:
        raise
    except Exception as fault:  # an invalid schema can cause any exception
        raise SerializationError(f"This is not an Avro schema: {fault or type(fault).__name__}: {schema.text[:200]}") from fault
