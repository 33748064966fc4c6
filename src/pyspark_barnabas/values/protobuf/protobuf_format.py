"""`value.format=protobuf`: Protobuf messages as columns, with a descriptor file or the schemas of a schema registry.

A descriptor file (`protoc --include_imports --descriptor_set_out=…`) is read on the driver and pickled with the query. With a registry,
values have the frame of its serializers, and the subject's latest schema (or a chosen version) defines the columns; Protobuf reads older
and newer messages with it. Needs the package protobuf.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import DataType

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.schema_serde import read_message_indexes
from pyspark_barnabas.errors import OptionError, SchemaError
from pyspark_barnabas.options import boolean
from pyspark_barnabas.values.arrow_types import arrow_type
from pyspark_barnabas.values.protobuf.protobuf_types import ReadingRules, message_reader, struct_of_message
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
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass
except ImportError as missing:
    raise ImportError("value.format=protobuf needs the package protobuf: pip install protobuf") from missing

_SERIALIZED: Final = "serialized"
_ROOT: Final = "the-schema-itself.proto"
_IMPORTABLE: Final = ("google/protobuf/", "google/type/")
POOLS_MAX: Final = 100


def protobuf_format(settings: ValueSettings, options: Mapping[str, str]) -> ValueFormat:
    files = _registered_files(settings, options) if settings.registry else _descriptor_file(settings)
    rules = ReadingRules(boolean(_flags(settings), "value.emitDefaultValues", False), boolean(_flags(settings), "value.enumsAsInts", False))
    name = settings.parser.get("messagename")
    try:
        message = _message(files, name)
        kind = struct_of_message(message, rules)
    except SchemaError as fault:
        raise OptionError("value.messageName", str(fault)) from None
    return ProtobufFormat(files, message.full_name, kind, rules, dict(settings.registry) or None)


@dataclass(frozen=True)
class ProtobufFormat:
    files: tuple[bytes, ...]  # file descriptors, each after its imports
    message: str
    data_type: DataType
    rules: ReadingRules
    registry: dict[str, str] | None = None

    def parse(self, values: pa.Array, batch: pa.RecordBatch) -> Parsed:
        message = _message(self.files, self.message)
        make, read = GetMessageClass(message), message_reader(message, self.rules)
        faults: dict[int, str] = {}
        rows: list[Any] = []
        for row, (value, header) in enumerate(zip(values.to_pylist(), schema_headers(batch), strict=True)):
            parsed: Any = None
            if value is not None:
                try:
                    parsed = read(make.FromString(self._payload(value, header)))
                except (UnknownFrame, DecodeError, SerializationError) as fault:
                    parsed, faults[row] = {}, str(fault) or type(fault).__name__
            rows.append(parsed)
        return Parsed(pa.array(rows, arrow_type(self.data_type)), faults)

    def _payload(self, value: bytes, header: bytes | None) -> bytes:
        if self.registry is None:
            return value
        frame = frame_of(value, header)
        if frame.start:
            indexes, start = read_message_indexes(value, frame.start)
        else:
            assert header is not None
            indexes, start = read_message_indexes(header, 5 if header[:1] == b"\0" else 17)[0], 0
        name = _written_message(frozenset(self.registry.items()), frame.schema, indexes)
        if name != self.message:
            raise UnknownFrame(f"it is a {name}, not a {self.message}")
        return value[start:]


@lru_cache(maxsize=1000)
def _written_message(settings: frozenset[tuple[str, str]], schema: int | str, indexes: tuple[int, ...]) -> str:
    """The full name of the message with the indexes of a frame."""
    writer = writer_schema(dict(settings), schema, _SERIALIZED)
    file = _file(writer.text)
    among, names = list(file.message_type), [file.package] if file.package else []
    for index in indexes:
        if not 0 <= index < len(among):
            raise UnknownFrame(f"its schema has no message at {list(indexes)}")
        names.append(among[index].name)
        among = list(among[index].nested_type)
    return ".".join(names)


def _registered_files(settings: ValueSettings, options: Mapping[str, str]) -> tuple[bytes, ...]:
    root = registered_schema(settings, options, _SERIALIZED)
    files: list[bytes] = []
    for name, schema in (*registry_client(settings.registry).referenced_schemas(root.schema, _SERIALIZED), (_ROOT, root.schema)):
        file = _file(schema.text)
        file.name = name  # the name in import statements
        files.append(file.SerializeToString())
    return tuple(files)


def _file(text: str) -> Any:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        raise OptionError(
            "value.schema.registry.url",
            "the registry gave a Protobuf schema as text, not as a descriptor: set 'value.descFilePath' instead.",
        ) from None


def _descriptor_file(settings: ValueSettings) -> tuple[bytes, ...]:
    path = settings.parser.get("descfilepath", "")
    if "messagename" not in settings.parser:
        raise OptionError("value.messageName", "must be set with 'value.descFilePath': the full name of the message.")
    try:
        files = FileDescriptorSet.FromString(Path(path).read_bytes())
    except OSError as fault:
        raise OptionError("value.descFilePath", f"cannot be read: {fault}.") from None
    except DecodeError:
        raise OptionError("value.descFilePath", f"'{path}' is no descriptor set; protoc --descriptor_set_out makes one.") from None
    return tuple(file.SerializeToString() for file in files.file)


def _message(files: tuple[bytes, ...], name: str | None) -> Descriptor:
    """The message with this name, or the first message of the last file."""
    pool, last = _pool(files)
    if name is None:
        messages = list(last.message_types_by_name.values())
        if not messages:
            raise SchemaError("the Protobuf schema has no message")
        first: Descriptor = messages[0]
        return first
    for full_name in (name, f"{last.package}.{name}"):
        try:
            named: Descriptor = pool.FindMessageTypeByName(full_name)
            return named
        except KeyError:
            continue
    raise SchemaError(f"the Protobuf schema has no message '{name}'")


@lru_cache(maxsize=POOLS_MAX)
def _pool(files: tuple[bytes, ...]) -> tuple[DescriptorPool, Any]:
    pool = DescriptorPool()
    last: Any = None
    try:
        for data in files:
            file = FileDescriptorProto.FromString(data)
            for imported in file.dependency:
                _add_built_in(pool, imported)
            if not _has(pool, file.name):
                pool.Add(file)
            last = pool.FindFileByName(file.name)
    except (TypeError, KeyError, ImportError) as fault:
        raise SchemaError(f"the Protobuf schema cannot be used (was protoc run with --include_imports?): {fault}") from None
    return pool, last


def _add_built_in(pool: DescriptorPool, name: str) -> None:
    """Adds Google's files, which are part of the protobuf package."""
    if not name.startswith(_IMPORTABLE) or _has(pool, name):
        return
    file = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR
    for imported in file.dependencies:
        _add_built_in(pool, imported.name)
    pool.AddSerializedFile(file.serialized_pb)


def _has(pool: DescriptorPool, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


def _flags(settings: ValueSettings) -> dict[str, str]:
    names = {"emitdefaultvalues": "value.emitDefaultValues", "enumsasints": "value.enumsAsInts"}
    return {names[name]: value for name, value in settings.parser.items() if name in names}
