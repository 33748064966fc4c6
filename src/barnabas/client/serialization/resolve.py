"""Resolves a setting to a serializer: an instance, a class, a dotted name, the Java name of a Kafka serializer, or a function.

As in Kafka, the client configures what it creates itself, with all its settings; it uses a given instance as it is. A name that cannot be
resolved raises an error in Kafka's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Deserializer, Headers, Serializer
from barnabas.client.serialization.simple import BytesDeserializer, BytesSerializer
from barnabas.config_def import InvalidConfig

_HERE: Final = __name__.rpartition(".")[0]
_KAFKA: Final = "org.apache.kafka.common.serialization."
_OURS: Final = frozenset(("Boolean", "Bytes", "Double", "Float", "Integer", "List", "Long", "Short", "String", "UUID", "Void"))
_BYTES_IN_JAVA: Final = frozenset(("ByteArray", "ByteBuffer"))
_CONFLUENT: Final = {
    "io.confluent.kafka.serializers.KafkaJson": "json_text.Json",
    "io.confluent.kafka.serializers.KafkaAvro": "avro.Avro",
    "io.confluent.kafka.serializers.json.KafkaJsonSchema": "json_schema.JsonSchema",
    "io.confluent.kafka.serializers.protobuf.KafkaProtobuf": "protobuf.Protobuf",
}

R = TypeVar("R")


def resolve_serializer(value: Any, configs: Mapping[str, Any] | None = None, is_key: bool = False) -> Serializer[Any]:
    """The serializer of `key.serializer` or `value.serializer`; None means bytes."""
    name = "key.serializer" if is_key else "value.serializer"
    if value is None:
        return BytesSerializer()
    resolved = _made(name, value, "serialize", configs or {}, is_key)
    return cast(Serializer[Any], resolved) if hasattr(resolved, "serialize") else FunctionSerializer(resolved)


def resolve_deserializer(value: Any, configs: Mapping[str, Any] | None = None, is_key: bool = False) -> Deserializer[Any]:
    """The deserializer of `key.deserializer` or `value.deserializer`; None means bytes."""
    name = "key.deserializer" if is_key else "value.deserializer"
    if value is None:
        return BytesDeserializer()
    resolved = _made(name, value, "deserialize", configs or {}, is_key)
    return cast(Deserializer[Any], resolved) if hasattr(resolved, "deserialize") else FunctionDeserializer(resolved)


class FunctionSerializer(BaseSerializer[Any]):
    """Calls a function with the value alone. It is not called for None, which remains None."""

    def __init__(self, function: Callable[[Any], bytes | None]) -> None:
        self.function = function

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        return None if data is None else self.function(data)


class FunctionDeserializer(BaseDeserializer[Any]):
    """Calls a function with the bytes alone. It is not called for None, which remains None."""

    def __init__(self, function: Callable[[bytes], Any]) -> None:
        self.function = function

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        return None if data is None else self.function(data)


def _made(name: str, value: Any, method: str, configs: Mapping[str, Any], is_key: bool) -> Any:
    """An object with the method, or a callable."""
    if isinstance(value, str):
        value = load(name, value.strip())
    if isinstance(value, type):
        if not hasattr(value, method):
            raise InvalidConfig(f"{value.__module__}.{value.__qualname__} is not a {method}r: a class for {name} has a method {method}")
        instance: Any = value()
        instance.configure(configs, is_key)
        return instance
    if hasattr(value, method):
        if hasattr(value, "assign_role"):
            value.assign_role(is_key)  # schemas of keys and values have different subjects
        return value
    if callable(value):
        return value
    raise InvalidConfig(f"Invalid value {value} for configuration {name}: Expected a class, its dotted name, an instance or a function")


def load(name: str, path: str) -> Any:
    """The object of a dotted path, Java's or Python's; also `module:name`."""
    module_name, _, attribute = _in_python(path).replace(":", ".").rpartition(".")
    if not module_name:
        raise _not_found(name, path)
    try:
        module = import_module(module_name)
    except ImportError as fault:
        if isinstance(fault, ModuleNotFoundError) and fault.name is not None and (module_name + ".").startswith(fault.name + "."):
            raise _not_found(name, path) from None
        raise InvalidConfig(f"Invalid value {path} for configuration {name}: {fault}") from fault
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise _not_found(name, path) from None


def _in_python(path: str) -> str:
    """Our class for one of Kafka's or Confluent's; other names are unchanged."""
    ending = "Deserializer" if path.endswith("Deserializer") else "Serializer"
    stem = path.removesuffix(ending)
    if stem in _CONFLUENT:
        return f"{_HERE}.{_CONFLUENT[stem]}{ending}"
    kind = stem.removeprefix(_KAFKA)
    if kind in _BYTES_IN_JAVA:
        kind = "Bytes"
    return f"{_HERE}.{kind}{ending}" if stem.startswith(_KAFKA) and kind in _OURS else path


def _not_found(name: str, path: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {path} for configuration {name}: Class {path} could not be found.")
