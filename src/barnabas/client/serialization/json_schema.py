"""JSON with a schema registry, wire-compatible with Confluent's KafkaJsonSchemaSerializer. Needs `pip install barnabas[json-schema]`.

Values are those of the `json` module, unless `to_dict` and `from_dict` convert objects to these and back. They are validated in both
directions; `json.fail.invalid.schema=false` disables that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import Headers
from barnabas.client.serialization.json_text import JsonDeserializer, JsonSerializer
from barnabas.client.serialization.registry import JSON, Schema, SchemaRegistryClient
from barnabas.client.serialization.schema_serde import ParsedSchemas, SchemaDeserializer, SchemaSerializer, flag

try:
    from jsonschema import Draft7Validator, SchemaError, ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7
except ImportError as missing:
    raise ImportError("JSON Schema needs the package jsonschema: pip install 'barnabas[json-schema]'") from missing


class JsonSchemaSerializer(SchemaSerializer):
    """`JsonSchemaSerializer(schema, registry=…)`; the schema is JSON text, the same as a dict, or a Schema if it refers to others."""

    schema_type = JSON

    def __init__(
        self,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        to_dict: Callable[[Any], Any] | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._given_schema = as_schema(schema)
        self._to_dict = to_dict
        self._text = JsonSerializer()
        self._parsed = ParsedSchemas(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self._validates = flag(configs, "json.fail.invalid.schema", True)

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        self._ready()
        value = data if self._to_dict is None else self._to_dict(data)
        registered, validator = self._plan(topic, self._given_schema, self._parsed, _title)
        if self._validates:
            _validate(validator, value)
        payload = self._text.serialize(topic, value)
        assert payload is not None
        return self._framed(payload, registered, headers)


class JsonSchemaDeserializer(SchemaDeserializer):
    """Validates with the writer's schema, or with `schema` if it is given."""

    schema_type = JSON

    def __init__(
        self,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        from_dict: Callable[[Any], Any] | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._reader_schema = as_schema(schema)
        self._from_dict = from_dict
        self._text = JsonDeserializer()
        self._parsed = ParsedSchemas(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self._validates = flag(configs, "json.fail.invalid.schema", True)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        if data is None:
            return None
        self._ready()
        schema_id, payload = self._unframed(data, headers)
        value = self._text.deserialize(topic, payload)
        if self._validates:
            _validate(self._parsed(self._schema_for(topic, self._writer_schema(schema_id))), value)
        return value if self._from_dict is None else self._from_dict(value)

    def _schema_for(self, topic: str, writer: Schema) -> Schema:
        if self._reader_schema is not None:
            return self._reader_schema
        if self.use_latest_version:
            return self.registry.latest(self._subject(topic, _title(self._parsed(writer)))).schema
        return writer


def as_schema(schema: str | Mapping[str, Any] | Schema | None) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    return Schema(schema if isinstance(schema, str) else json.dumps(schema), JSON)


def _title(validator: Any) -> str | None:
    """The schema's title, which serves as the record name."""
    return validator.schema.get("title") if isinstance(validator.schema, dict) else None


def _validate(validator: Any, value: Any) -> None:
    try:
        validator.validate(value)
    except ValidationError as fault:
        where = "/".join(map(str, fault.absolute_path))
        raise SerializationError(f"JSON does not fit its schema{' at ' + where if where else ''}: {fault.message}") from fault
    except (Unresolvable, RecursionError) as fault:
        raise SerializationError(f"The JSON schema refers to what cannot be found: {fault}") from fault


def _parse(registry: SchemaRegistryClient, schema: Schema) -> Any:
    """A validator. References are resolved only with the registry, never with an address on the web."""
    try:
        resources: Registry[Any] = Registry()
        for name, referred in registry.referenced_schemas(schema):
            resources = resources.with_resource(name, Resource.from_contents(json.loads(referred.text), default_specification=DRAFT7))
        contents = json.loads(schema.text)
        kind = validator_for(contents, default=Draft7Validator)
        kind.check_schema(contents)
        return kind(contents, registry=resources)
    except (ValueError, TypeError, SchemaError) as fault:
        raise SerializationError(f"This is not a JSON schema: {fault}: {schema.text[:200]}") from fault
