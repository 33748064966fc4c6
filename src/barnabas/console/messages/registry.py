"""Decodes keys and values whose schema is in a schema registry: Avro, Protobuf and JSON Schema, as Confluent's serializers write them.

The registry is asked once for each schema, with a short timeout, and not again for a while after it failed: a page of messages must not
wait long for a registry that is down. What a schema makes of a few bytes is bounded: a schema and its messages may come from anybody who
may write to the topic.
"""

from __future__ import annotations

import datetime
import decimal
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from barnabas.client.serialization.registry import AVRO, JSON, PROTOBUF, SchemaRegistryClient, SchemaRegistryError
from barnabas.console.messages.json_values import DEPTH_MAX, parse_json
from barnabas.errors import KafkaError

SchemaForm = Literal["avro", "protobuf", "json schema"]

TIMEOUT_MS: Final = 2000
FAILURE_KEPT_S: Final = 30.0
FAILURES_MAX: Final = 1000
REQUESTS_MAX: Final = 100  # of one decoder: a scan does not ask for thousands of ids that random bytes may look like
_FRONT_BYTES: Final = 5
_GUID_BYTES: Final = 16

Headers = Sequence[tuple[str, bytes | None]]


class NotDecoded(Exception):
    """The bytes begin like those of a registry's serializer, but cannot be decoded; the message says why."""


class _Deserializer(Protocol):
    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any: ...


@dataclass(frozen=True)
class _Kind:
    """What must be known of a schema before its messages are decoded."""

    type: str


class CachedSchemaRegistry:
    """The client of one registry with its caches, for all visitors of a cluster. Thread-safe."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.client = SchemaRegistryClient({"max.retries": 0, "http.read.timeout.ms": TIMEOUT_MS, "latest.cache.ttl.sec": 60, **settings})
        self._kinds: dict[int | str, _Kind] = {}
        self._failures: dict[int | str, tuple[float, str]] = {}
        self._down: tuple[float, str] = (0.0, "")  # until when it is not asked at all, and why
        self._lock = threading.Lock()

    def known_kind(self, schema_id: int | str) -> _Kind | None:
        """The kind of a schema that was asked for before. Raises NotDecoded if that failed a short while ago."""
        with self._lock:
            known = self._kinds.get(schema_id)
            if known is not None:
                return known
            for until, message in (self._failures.get(schema_id, _NO_FAILURE), self._down):
                if time.monotonic() < until:
                    raise NotDecoded(message)
            return None

    def ask_kind(self, schema_id: int | str) -> _Kind:
        """The kind of a schema, from the registry. Blocks; raises NotDecoded."""
        try:
            registered = self.client.schema_by_id(schema_id) if isinstance(schema_id, int) else self.client.schema_by_guid(schema_id)
            kind = _Kind(registered.schema.type)
            if kind.type == AVRO:
                referred = [schema for _, schema in self.client.referenced_schemas(registered.schema)]
                check_avro([json.loads(schema.text) for schema in (registered.schema, *referred)])
        except NotDecoded as fault:
            raise self._failed(schema_id, str(fault)) from None
        except (KafkaError, OSError, ValueError, RecursionError) as fault:
            if isinstance(fault, SchemaRegistryError) and fault.http_status == 0:
                with self._lock:
                    self._down = (time.monotonic() + FAILURE_KEPT_S, str(fault)[:300])
                raise NotDecoded(str(fault)[:300]) from None
            where = (
                f"the schema registry has no schema {schema_id}" if _is_unknown(fault) else f"schema {schema_id} of the registry: {fault}"
            )
            raise self._failed(schema_id, where[:300]) from None
        with self._lock:
            if len(self._kinds) >= FAILURES_MAX:
                self._kinds.clear()
            self._kinds[schema_id] = kind
        return kind

    def _failed(self, schema_id: int | str, message: str) -> NotDecoded:
        with self._lock:
            if len(self._failures) >= FAILURES_MAX:
                self._failures.clear()
            self._failures[schema_id] = (time.monotonic() + FAILURE_KEPT_S, message)
        return NotDecoded(message)

    def decoder(self) -> RegistryDecoder:
        """A decoder for one reader."""
        return RegistryDecoder(self)


_registries: dict[tuple[tuple[str, str], ...], CachedSchemaRegistry] = {}


def shared_registry(settings: Mapping[str, str]) -> CachedSchemaRegistry | None:
    """The registry with these settings, one for the whole process; None without settings."""
    if not settings:
        return None
    key = tuple(sorted(settings.items()))
    if key not in _registries:
        _registries[key] = CachedSchemaRegistry(settings)
    return _registries[key]


_NO_FAILURE: Final = (0.0, "")


class RegistryDecoder:
    """Decodes for one reader. Blocks while it asks the registry: call it in a thread."""

    def __init__(self, registry: CachedSchemaRegistry) -> None:
        self._registry = registry
        self._requests_left = REQUESTS_MAX
        self._deserializers: dict[tuple[str, bool], _Deserializer] = {}

    def decode(self, topic: str, data: bytes, headers: Headers, is_key: bool) -> tuple[SchemaForm, Any] | None:
        """The form and the value as JSON has it; None if the bytes name no schema. Raises NotDecoded."""
        schema_id = _schema_id(data, headers, is_key)
        if schema_id is None:
            return None
        kind = self._registry.known_kind(schema_id)
        if kind is None:
            if self._requests_left == 0:
                raise NotDecoded(f"schema {schema_id} was not asked for: there are more than {REQUESTS_MAX} different ones here")
            self._requests_left -= 1
            kind = self._registry.ask_kind(schema_id)
        form, as_json = _FORMS.get(kind.type, (None, None))
        if form is None or as_json is None:
            raise NotDecoded(f"schema {schema_id} has the type {kind.type[:50]}, which is not known here")
        try:
            decoded = as_json(self._deserializer(kind.type, is_key).deserialize(topic, data, list(headers)))
            _check_depth(decoded)
            return form, decoded
        except ImportError as fault:
            raise NotDecoded(str(fault)) from None
        except (KafkaError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as fault:
            raise NotDecoded(f"{form}, schema {schema_id}: {fault}"[:300]) from None

    def _deserializer(self, kind: str, is_key: bool) -> _Deserializer:
        made = self._deserializers.get((kind, is_key))
        if made is None:
            made = self._deserializers[kind, is_key] = _make(kind, self._registry.client, is_key)
        return made


def _make(kind: str, client: SchemaRegistryClient, is_key: bool) -> _Deserializer:
    """A deserializer. Each type needs a package of its own; without it, ImportError says which."""
    if kind == AVRO:
        from barnabas.client.serialization.avro import AvroDeserializer

        return AvroDeserializer(registry=client, is_key=is_key, rules_ignore=True)
    if kind == PROTOBUF:
        from barnabas.client.serialization.protobuf import ProtobufDeserializer

        return ProtobufDeserializer(registry=client, is_key=is_key, rules_ignore=True)
    return _JsonBehindItsId(_ID_HEADERS[0 if is_key else 1])


class _JsonBehindItsId:
    """JSON Schema's values are shown, not validated: neither the package jsonschema nor time for it is needed."""

    def __init__(self, id_header: str) -> None:
        self._id_header = id_header

    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any:
        assert data is not None
        rest = (
            data if any(name == self._id_header for name, _ in headers) else data[_FRONT_BYTES if data[:1] == b"\0" else 1 + _GUID_BYTES :]
        )
        return parse_json(rest.decode())


_ID_HEADERS: Final = ("__key_schema_id", "__value_schema_id")


def _schema_id(data: bytes, headers: Headers, is_key: bool) -> int | str | None:
    for name, value in headers:
        if name == _ID_HEADERS[0 if is_key else 1] and value is not None:
            return _id_at_start(value)
    return _id_at_start(data)


def _id_at_start(data: bytes) -> int | str | None:
    if data[:1] == b"\0" and len(data) >= _FRONT_BYTES:
        return int.from_bytes(data[1:_FRONT_BYTES], "big")
    if data[:1] == b"\1" and len(data) > _GUID_BYTES:
        return str(uuid.UUID(bytes=data[1 : 1 + _GUID_BYTES]))
    return None


def _is_unknown(fault: Exception) -> bool:
    return isinstance(fault, SchemaRegistryError) and fault.http_status == 404


def _plain_avro(value: Any) -> Any:
    """Avro's logical types and bytes as JSON has them. Numbers keep their digits."""
    if isinstance(value, dict):
        return {str(name): _plain_avro(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_avro(item) for item in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return parse_json(str(value)) if value.is_finite() else str(value)
    if isinstance(value, uuid.UUID | datetime.timedelta):
        return str(value)
    return value


def _plain_protobuf(message: Any) -> Any:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)


def _as_it_is(value: Any) -> Any:
    return value


_FORMS: Final[dict[str, tuple[SchemaForm, Callable[[Any], Any]]]] = {
    AVRO: ("avro", _plain_avro),
    PROTOBUF: ("protobuf", _plain_protobuf),
    JSON: ("json schema", _as_it_is),
}


def _check_depth(value: Any, level: int = 0) -> None:
    if level > DEPTH_MAX:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, level + 1)


def check_avro(schemas: list[Any]) -> None:
    """Raises NotDecoded for arrays of elements without bytes (null, records without fields): three bytes can announce a billion of them."""
    named: dict[str, Any] = {}
    for schema in schemas:
        _collect(schema, named, 0)
    empty: dict[str, bool] = {}
    if any(_has_empty_elements(schema, named, empty) for schema in schemas):
        raise NotDecoded("the Avro schema has an array whose elements take no bytes")


def _collect(schema: Any, named: dict[str, Any], level: int) -> None:
    """The named types of a schema, by their names without a namespace: two of one name are taken for the same, which errs on the safe
    side."""
    if level > DEPTH_MAX:
        raise NotDecoded("the Avro schema is nested too deep")
    if isinstance(schema, dict) and isinstance(schema.get("name"), str):
        named[_short(schema["name"])] = {**schema, "fields": [*named.get(_short(schema["name"]), {}).get("fields", ()), *_fields(schema)]}
    for child in _children(schema):
        _collect(child, named, level + 1)


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [field for field in schema.get("fields") or [] if isinstance(field, dict)]


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _children(schema: Any) -> list[Any]:
    """The schemas that a schema is made of."""
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, dict):
        return []
    inner = schema.get("type")
    return [
        schema.get("items"),
        schema.get("values"),
        *(field.get("type") for field in _fields(schema)),
        inner if not isinstance(inner, str) else None,
    ]


def _has_empty_elements(schema: Any, named: dict[str, Any], empty: dict[str, bool]) -> bool:
    if isinstance(schema, dict) and schema.get("type") == "array" and _is_empty(schema.get("items"), named, empty):
        return True
    return any(_has_empty_elements(child, named, empty) for child in _children(schema))


def _is_empty(schema: Any, named: dict[str, Any], empty: dict[str, bool]) -> bool:
    """Whether a value of this schema may take no bytes. A union writes the number of its branch. `empty` has the answers by name."""
    if isinstance(schema, str):
        short = _short(schema)
        if short in named and short not in empty:
            empty[short] = False  # for a type that contains itself
            empty[short] = _is_empty(named[short], named, empty)
        return schema == "null" or empty.get(short, False)
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind in ("record", "error"):
        return all(_is_empty(field.get("type"), named, empty) for field in _fields(schema))
    if kind == "fixed":
        return schema.get("size") == 0
    return not isinstance(kind, list) and kind not in ("array", "map", "enum") and _is_empty(kind, named, empty)
