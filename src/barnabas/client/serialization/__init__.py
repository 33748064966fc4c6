"""Serializers and deserializers: Kafka's own, JSON, and serializers with a schema registry.

Those with a registry (`avro`, `json_schema`, `protobuf`) are imported from their own modules, because each needs an additional package.
"""

from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Deserializer, Header, Headers, Serializer
from barnabas.client.serialization.json_text import JsonDeserializer, JsonSerializer
from barnabas.client.serialization.lists import ListDeserializer, ListSerializer
from barnabas.client.serialization.resolve import FunctionDeserializer, FunctionSerializer, resolve_deserializer, resolve_serializer
from barnabas.client.serialization.simple import (
    BooleanDeserializer,
    BooleanSerializer,
    BytesDeserializer,
    BytesSerializer,
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    LongDeserializer,
    LongSerializer,
    ShortDeserializer,
    ShortSerializer,
    StringDeserializer,
    StringSerializer,
    UUIDDeserializer,
    UUIDSerializer,
    VoidDeserializer,
    VoidSerializer,
)

__all__ = [
    "Serializer",
    "Deserializer",
    "BaseSerializer",
    "BaseDeserializer",
    "Header",
    "Headers",
    "resolve_serializer",
    "resolve_deserializer",
    "FunctionSerializer",
    "FunctionDeserializer",
    "BytesSerializer",
    "BytesDeserializer",
    "StringSerializer",
    "StringDeserializer",
    "ShortSerializer",
    "ShortDeserializer",
    "IntegerSerializer",
    "IntegerDeserializer",
    "LongSerializer",
    "LongDeserializer",
    "FloatSerializer",
    "FloatDeserializer",
    "DoubleSerializer",
    "DoubleDeserializer",
    "BooleanSerializer",
    "BooleanDeserializer",
    "UUIDSerializer",
    "UUIDDeserializer",
    "VoidSerializer",
    "VoidDeserializer",
    "ListSerializer",
    "ListDeserializer",
    "JsonSerializer",
    "JsonDeserializer",
]
