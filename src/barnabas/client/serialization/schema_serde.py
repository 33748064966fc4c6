"""The common part of serializers with schemas: the choice of the schema and subject, and the encoding of the schema id.

Bytes are framed like Confluent's: a zero byte, the schema id in four bytes, and for Protobuf the path to the message; or, if configured,
the schema's GUID in a header and the bare payload. Readers check the header first and then the start of the payload.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Headers
from barnabas.client.serialization.registry import RegisteredSchema, Schema, SchemaRegistryClient
from barnabas.client.serialization.resolve import load
from barnabas.config_def import InvalidConfig

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
_NUMBERED: Final = 0  # the magic bytes: followed by a schema id, or by a GUID
_BY_GUID: Final = 1
_FRONT: Final = struct.Struct(">bI")
_GUID_BYTES: Final = 16
PARSED_MAX: Final = 1000

# Returns the subject for a topic, for keys or values, and for the record's full name if the schema has one.
SubjectNameStrategy: TypeAlias = Callable[[str, bool, str | None], str]


def topic_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    return _needed(record_name, is_key)


def topic_record_name_strategy(topic: str, is_key: bool, record_name: str | None) -> str:
    return f"{topic}-{_needed(record_name, is_key)}"


def _needed(record_name: str | None, is_key: bool) -> str:
    if record_name is None:
        raise SerializationError(
            f"The {'key' if is_key else 'value'}'s schema has no name, which {'key' if is_key else 'value'}.subject.name.strategy asks for"
        )
    return record_name


_STRATEGIES: Final[dict[str, SubjectNameStrategy]] = {
    "io.confluent.kafka.serializers.subject.TopicNameStrategy": topic_name_strategy,
    "io.confluent.kafka.serializers.subject.RecordNameStrategy": record_name_strategy,
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy": topic_record_name_strategy,
}
_SCHEMA_ID_PLACES: Final = {
    "prefix": False,
    "header": True,
    "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer": False,
    "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer": True,
}


@dataclass(frozen=True)
class SchemaId:
    """The identity of the writer's schema: an id or a GUID, and for Protobuf the path to the message."""

    number: int | None = None
    guid: str = ""
    message_indexes: tuple[int, ...] = ()


class _SchemaSerde:
    """The settings and registry of both directions, from the constructor or from a client's settings through `configure`."""

    schema_type: ClassVar[str]

    def __init__(self, registry: SchemaRegistryClient | None, is_key: bool | None, settings: Mapping[str, Any]) -> None:
        self._own_settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._given_registry = registry
        self.is_key = is_key
        if registry is not None or "schema.registry.url" in self._own_settings:
            self._apply(self._own_settings)

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.is_key = is_key
        self._apply({**configs, **self._own_settings})

    def assign_role(self, is_key: bool) -> None:
        """Called by a client that receives this instance ready-made, for its keys or for its values."""
        if self.is_key is not None and self.is_key != is_key:
            raise InvalidConfig(f"A {type(self).__name__} is either for keys or for values: make one for each")
        self.is_key = is_key

    def close(self) -> None:
        return

    def _apply(self, configs: Mapping[str, Any]) -> None:
        self.registry = self._given_registry or SchemaRegistryClient(configs)
        self.strategy = _strategy(configs, "key" if self.is_key else "value")
        self._ignores_rules = flag(configs, "rules.ignore", False)

    def _subject(self, topic: str, record_name: str | None) -> str:
        return self.strategy(topic, bool(self.is_key), record_name)

    def _without_rules(self, registered: RegisteredSchema) -> RegisteredSchema:
        """Rejects schemas with rules. A rule may require to encrypt a field, so ignoring it silently would be worse than an error."""
        if registered.has_rules and not self._ignores_rules:
            raise SerializationError(
                f"The schema {registered.id} has rules (data contracts), which are not carried out here; "
                "rules.ignore=true goes on without them"
            )
        return registered

    def _ready(self) -> None:
        if not hasattr(self, "registry"):
            raise SerializationError(f"This {type(self).__name__} has no schema registry: give it `registry`, or set schema.registry.url")


class SchemaSerializer(_SchemaSerde, BaseSerializer[Any]):
    _given_schema: Schema | None = None

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self._plans: dict[str, tuple[RegisteredSchema, Any]] = {}  # by topic
        self.use_schema_id = int(configs.get("use.schema.id", -1))
        self.use_latest_version = flag(configs, "use.latest.version", False)
        self.auto_register = flag(configs, "auto.register.schemas", not self._is_schema_chosen)
        self.normalize = flag(configs, "normalize.schemas", False)
        if self.auto_register and self._is_schema_chosen:
            raise InvalidConfig(
                "auto.register.schemas cannot be true together with use.latest.version or use.schema.id: nothing would be registered"
            )
        name = f"{'key' if self.is_key else 'value'}.schema.id.serializer"
        place = configs.get(name, configs.get("schema.id.serializer", "prefix"))
        if place not in _SCHEMA_ID_PLACES:
            raise InvalidConfig(f"Invalid value {place} for configuration {name}: Expected prefix or header")
        self.in_header = _SCHEMA_ID_PLACES[place]

    @property
    def _is_schema_chosen(self) -> bool:
        """Whether the registry's schema is used, instead of the schema of the data."""
        return self.use_latest_version or self.use_schema_id >= 0

    @property
    def _has_one_schema(self) -> bool:
        """Whether all values of a topic have the same schema while this serializer lives."""
        return self.use_schema_id >= 0 or (self._given_schema is not None and not self.use_latest_version)

    def _plan(
        self, topic: str, schema: Schema | None, parsed: ParsedSchemas, name_of: Callable[[Any], str | None]
    ) -> tuple[RegisteredSchema, Any]:
        """The registered schema and the parsed schema with which a value is written.

        The result is cached for a topic if neither the value nor time can change it.
        """
        cached = self._plans.get(topic)
        if cached is not None:
            return cached
        name = None if schema is None else name_of(parsed(schema))
        registered = self._without_rules(self._registered(self._subject(topic, name), schema))
        plan = registered, parsed(registered.schema if schema is None or self._is_schema_chosen else schema)
        if self._has_one_schema and len(self._plans) < PARSED_MAX:
            self._plans[topic] = plan
        return plan

    def _registered(self, subject: str, schema: Schema | None, form: str | None = None) -> RegisteredSchema:
        if self.use_schema_id >= 0:
            return self.registry.schema_by_id(self.use_schema_id, subject, form)
        if self.use_latest_version:
            return self.registry.latest(subject, form)
        if schema is None:
            raise SerializationError(
                f"{type(self).__name__} needs a schema for this value: give it `schema`, or set use.latest.version=true"
            )
        if self.auto_register:
            return self.registry.register(subject, schema, self.normalize)
        return self.registry.lookup(subject, schema, self.normalize)

    def _framed(self, payload: bytes, registered: RegisteredSchema, headers: Headers | None, indexes: bytes = b"") -> bytes:
        if not self.in_header:
            return _FRONT.pack(_NUMBERED, registered.id) + indexes + payload
        if headers is None:
            raise SerializationError("The schema's number was to go into a header, but there are no headers here")
        if not registered.guid:
            raise SerializationError(
                "This schema registry gives schemas no GUIDs, so they cannot be named in headers: use schema.id.serializer=prefix"
            )
        headers.append((KEY_HEADER if self.is_key else VALUE_HEADER, bytes((_BY_GUID,)) + uuid.UUID(registered.guid).bytes + indexes))
        return payload


class SchemaDeserializer(_SchemaSerde, BaseDeserializer[Any]):
    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self.use_latest_version = flag(configs, "use.latest.version", False)

    def _unframed(self, data: bytes, headers: Headers | None) -> tuple[SchemaId, bytes]:
        """The id of the writer's schema, and the bare payload."""
        with_indexes = self.schema_type == "PROTOBUF"
        header_name = KEY_HEADER if self.is_key else VALUE_HEADER
        for name, value in headers or ():
            if name == header_name and value is not None:
                return _read_id(value, with_indexes)[0], bytes(data)
        return _read_id(bytes(data), with_indexes)

    def _writer_schema(self, schema_id: SchemaId, form: str | None = None) -> Schema:
        if schema_id.number is not None:
            return self._without_rules(self.registry.schema_by_id(schema_id.number, form=form)).schema
        return self._without_rules(self.registry.schema_by_guid(schema_id.guid, form)).schema


def _read_id(data: bytes, with_indexes: bool) -> tuple[SchemaId, bytes]:
    if data[:1] == b"\0" and len(data) >= _FRONT.size:
        number, guid, at = _FRONT.unpack_from(data)[1], "", _FRONT.size
    elif data[:1] == b"\1" and len(data) > _GUID_BYTES:
        number, guid, at = None, str(uuid.UUID(bytes=data[1 : 1 + _GUID_BYTES])), 1 + _GUID_BYTES
    else:
        raise SerializationError("Unknown magic byte!" if data[:1] not in (b"\0", b"\1") else "The data is too short to name its schema")
    indexes: tuple[int, ...] = ()
    if with_indexes:
        indexes, at = read_message_indexes(data, at)
    return SchemaId(number, guid, indexes), data[at:]


def write_message_indexes(indexes: tuple[int, ...]) -> bytes:
    """The path to a message in its file; the path of the first message, the most common one, is a single zero byte."""
    if indexes == (0,):
        return b"\0"
    return b"".join(map(_zigzag, (len(indexes), *indexes)))


def read_message_indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _read_zigzag(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= len(data) - at:
        raise SerializationError(f"The path to the message has {count} steps, which cannot be")
    indexes = []
    for _ in range(count):
        index, at = _read_zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _zigzag(value: int) -> bytes:
    left = value << 1 if value >= 0 else (-value << 1) - 1
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            raise SerializationError("The data ends in the middle of the path to its message")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise SerializationError("The path to the message holds a number that is too large")


def flag(configs: Mapping[str, Any], name: str, default: bool) -> bool:
    value = configs.get(name, default)
    if isinstance(value, bool):
        return value
    if str(value).strip().lower() not in ("true", "false"):
        raise InvalidConfig(f"Invalid value {value} for configuration {name}: Expected value to be either true or false")
    return str(value).strip().lower() == "true"


def _strategy(configs: Mapping[str, Any], role: str) -> SubjectNameStrategy:
    name = f"{role}.subject.name.strategy"
    value = configs.get(name) or configs.get("subject.name.strategy") or topic_name_strategy
    if isinstance(value, str):
        value = _STRATEGIES.get(value) or load(name, value)
    if not callable(value):
        raise InvalidConfig(f"Invalid value {value} for configuration {name}: Expected a function of topic, is_key and record name")
    strategy: SubjectNameStrategy = value
    return strategy


class ParsedSchemas:
    """A cache of schemas as parsed by their library; the oldest is dropped when there are too many."""

    def __init__(self, parse: Callable[[Schema], Any]) -> None:
        self._parse = parse
        self._known: dict[Schema, Any] = {}

    def __call__(self, schema: Schema) -> Any:
        try:
            return self._known[schema]
        except KeyError:
            pass
        parsed = self._parse(schema)
        if len(self._known) >= PARSED_MAX:
            self._known.pop(next(iter(self._known)), None)
        self._known[schema] = parsed
        return parsed
