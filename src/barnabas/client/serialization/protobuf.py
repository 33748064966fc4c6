"""Protobuf with a schema registry, wire-compatible with Confluent's KafkaProtobufSerializer. Needs `pip install barnabas[protobuf]`.

Messages are of the classes that protoc made. A deserializer without a class makes one from the registry's schema, if the registry gives
descriptors (`format=serialized`); schemas are registered as descriptors in base64, with the files they import as references.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import Headers
from barnabas.client.serialization.registry import PROTOBUF, Schema, SchemaReference, SchemaRegistryClient
from barnabas.client.serialization.resolve import load
from barnabas.client.serialization.schema_serde import Parsed, SchemaDeserializer, SchemaSerializer, flag, write_message_indexes
from barnabas.client.serialization.simple import refuse

try:
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError, EncodeError, Message
    from google.protobuf.message_factory import GetMessageClass
except ImportError as missing:
    raise ImportError("Protobuf needs the package protobuf: pip install 'barnabas[protobuf]'") from missing

_BUILT_IN: Final = ("google/protobuf/", "google/type/", "confluent/")  # what every reader has, and no registry needs
_IMPORTABLE: Final = ("google/protobuf/", "google/type/")
_SERIALIZED: Final = "serialized"
_ROOT: Final = "the-schema-itself.proto"


class ProtobufSerializer(SchemaSerializer):
    """`ProtobufSerializer(registry=…)`; with `message_type` other messages are refused."""

    schema_type = PROTOBUF

    def __init__(
        self,
        message_type: type[Message] | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._message_type = message_type
        self._schemas: dict[str, Schema] = {}  # by the name of the message's file
        self._paths: dict[Descriptor, bytes] = {}
        self._files = Parsed(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        self._skips_known_types = flag(configs, "skip.known.types", True)

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        self._ready()
        if not isinstance(data, self._message_type or Message):
            refuse(data, f"a {self._message_type.__name__}" if self._message_type else "a Protobuf message")
        descriptor: Descriptor = data.DESCRIPTOR
        subject = self._subject(topic, descriptor.full_name)
        schema = None if self._is_schema_chosen else self._schema_of(descriptor.file)
        registered = self._without_rules(self._registered(subject, schema, _SERIALIZED))
        path = self._path(descriptor if schema is not None else _find(self._files(registered.schema), descriptor.full_name))
        try:
            payload = data.SerializeToString()
        except EncodeError as fault:
            raise SerializationError(f"Error serializing Protobuf message: {fault}") from fault
        return self._framed(payload, registered, headers, path)

    def _path(self, descriptor: Descriptor) -> bytes:
        path = self._paths.get(descriptor)
        if path is None:
            path = self._paths[descriptor] = write_message_indexes(message_indexes(descriptor))
        return path

    def _schema_of(self, file: FileDescriptor) -> Schema:
        """A file's schema; the files it imports are registered first, each under its own name."""
        schema = self._schemas.get(file.name)
        if schema is None:
            schema = Schema(base64.b64encode(file.serialized_pb).decode(), PROTOBUF, self._references(file))
            self._schemas[file.name] = schema
        return schema

    def _references(self, file: FileDescriptor) -> tuple[SchemaReference, ...]:
        found = []
        for imported in file.dependencies:
            if self._skips_known_types and imported.name.startswith(_BUILT_IN):
                continue
            schema = self._schema_of(imported)
            if self.auto_register:
                self.registry.register(imported.name, schema, self.normalize)
            found.append(SchemaReference(imported.name, imported.name, self.registry.lookup(imported.name, schema, self.normalize).version))
        return tuple(found)


class ProtobufDeserializer(SchemaDeserializer):
    """Gives messages of `message_type` (or `specific.protobuf.value.type`); without one, of classes made from the writer's schema."""

    schema_type = PROTOBUF

    def __init__(
        self,
        message_type: type[Message] | None = None,
        *,
        registry: SchemaRegistryClient | None = None,
        is_key: bool | None = None,
        **settings: Any,
    ) -> None:
        self._message_type = message_type
        self._files = Parsed(lambda schema: _parse(self.registry, schema))
        super().__init__(registry, is_key, settings)

    def _apply(self, configs: Mapping[str, Any]) -> None:
        super()._apply(configs)
        name = f"specific.protobuf.{'key' if self.is_key else 'value'}.type"
        wanted = configs.get(name)
        if self._message_type is None and wanted is not None:
            self._message_type = load(name, wanted) if isinstance(wanted, str) else wanted

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Message | None:
        if data is None:
            return None
        self._ready()
        found, payload = self._opened(data, headers)
        kind = self._message_type
        if kind is None or not self._ignores_rules:
            writer = self._writer_schema(found, _SERIALIZED)
            kind = kind or GetMessageClass(_at(self._files(writer), found.message_indexes))
        message = kind()
        try:
            message.ParseFromString(payload)
        except DecodeError as fault:
            raise SerializationError(f"Error deserializing Protobuf message: {fault}") from fault
        return message


def message_indexes(descriptor: Descriptor) -> tuple[int, ...]:
    """The way from the file down to a message: its index, or those of the messages around it and then its own."""
    path: list[int] = []
    at: Descriptor | None = descriptor
    while at is not None:
        around = at.containing_type
        siblings = around.nested_types if around is not None else at.file.message_types_by_name.values()
        path.insert(0, next(index for index, each in enumerate(siblings) if each.name == at.name))
        at = around
    return tuple(path)


def _at(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor:
    among = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(among):
            raise SerializationError(f"The schema has no message at {list(indexes)}")
        found = among[index]
        among = list(found.nested_types)
    assert found is not None
    return found


def _find(file: FileDescriptor, full_name: str) -> Descriptor:
    pool: DescriptorPool = file.pool
    try:
        found = pool.FindMessageTypeByName(full_name)
    except KeyError:
        raise SerializationError(f"The schema in the registry has no message {full_name}") from None
    return found


def _parse(registry: SchemaRegistryClient, schema: Schema) -> FileDescriptor:
    pool = DescriptorPool()
    for name, referred in registry.referenced_schemas(schema, _SERIALIZED):
        _add(pool, name, referred)
    return _add(pool, _ROOT, schema)


def _add(pool: DescriptorPool, name: str, schema: Schema) -> FileDescriptor:
    """Files go into a pool under the names that others import them by."""
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        raise SerializationError(
            "The registry gave this Protobuf schema as text, not as a descriptor: give the deserializer its message_type"
        ) from None
    file.name = name
    try:
        for imported in file.dependency:
            _add_built_in(pool, imported)
        pool.Add(file)
        found: FileDescriptor = pool.FindFileByName(name)
    except (TypeError, KeyError, ImportError) as fault:
        raise SerializationError(f"The Protobuf schema cannot be used: {fault}") from fault
    return found


def _add_built_in(pool: DescriptorPool, name: str) -> None:
    """Google's own files, which come with the protobuf and googleapis-common-protos packages."""
    if not name.startswith(_IMPORTABLE):
        return
    try:
        pool.FindFileByName(name)
        return
    except KeyError:
        pass
    file: FileDescriptor = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR
    for imported in file.dependencies:
        _add_built_in(pool, imported.name)
    pool.AddSerializedFile(file.serialized_pb)
