"""Kafka's own serializers: bytes, text, numbers, booleans, UUIDs and void, byte for byte as in Java.

Values that cannot be written or read raise SerializationError. Only text that the encoding cannot represent is replaced, as in Java, unless
`errors="strict"` is set.
"""

from __future__ import annotations

import codecs
import uuid
from collections.abc import Mapping
from struct import Struct, error
from typing import Any, Final, NoReturn

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Headers


class BytesSerializer(BaseSerializer[bytes]):
    """Bytes as they are; a bytearray or memoryview is copied. Covers Java's ByteArray-, Bytes- and ByteBufferSerializer."""

    def serialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> bytes | None:
        if data is None or type(data) is bytes:
            return data
        if isinstance(data, bytes | bytearray | memoryview):
            return bytes(data)
        refuse(data, "bytes", "; give the producer a key.serializer or value.serializer for this type, or encode it first")


class BytesDeserializer(BaseDeserializer[bytes]):
    """Bytes as they are."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> bytes | None:
        if data is None or type(data) is bytes:
            return data
        return bytes(data)


class StringSerializer(BaseSerializer[str]):
    """Text. The encoding is `key.serializer.encoding` or `value.serializer.encoding`, else `serializer.encoding`, else UTF-8."""

    def __init__(self, encoding: str = "utf-8", errors: str = "replace") -> None:
        self.encoding = _known_encoding(encoding)
        self.errors = errors

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.encoding = _configured_encoding(configs, is_key, "serializer.encoding", self.encoding)

    def serialize(self, topic: str, data: str | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        try:
            return data.encode(self.encoding, self.errors)
        except AttributeError:
            refuse(data, "a str")
        except UnicodeError as fault:
            raise SerializationError(f"{self.encoding} cannot hold this text: {fault}") from fault


class StringDeserializer(BaseDeserializer[str]):
    """Text. The encoding is `key.deserializer.encoding` or `value.deserializer.encoding`, else `deserializer.encoding`, else UTF-8."""

    def __init__(self, encoding: str = "utf-8", errors: str = "replace") -> None:
        self.encoding = _known_encoding(encoding)
        self.errors = errors

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.encoding = _configured_encoding(configs, is_key, "deserializer.encoding", self.encoding)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> str | None:
        if data is None:
            return None
        try:
            return str(data, self.encoding, self.errors)
        except UnicodeError as fault:
            raise SerializationError(f"These bytes are no text in {self.encoding}: {fault}") from fault


def _configured_encoding(configs: Mapping[str, Any], is_key: bool, name: str, default: str) -> str:
    encoding = configs.get(f"{'key' if is_key else 'value'}.{name}")
    if encoding is None:
        encoding = configs.get(name)
    return _known_encoding(encoding) if isinstance(encoding, str) else default


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError as fault:
        raise SerializationError(f"Unsupported encoding {name}") from fault
    return name


class _NumberSerializer(BaseSerializer[Any]):
    """A number in big-endian bytes of a fixed width."""

    _packing: Struct
    _wanted: str

    def serialize(self, topic: str, data: Any | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        try:
            return self._packing.pack(data)
        except (error, OverflowError) as fault:
            raise SerializationError(f"{data!r} is not {self._wanted}") from fault


class _NumberDeserializer(BaseDeserializer[Any]):
    _packing: Struct

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        if data is None:
            return None
        try:
            return self._packing.unpack(data)[0]
        except error:
            raise _wrong_size(self, self._packing.size) from None


_SHORT: Final = Struct(">h")
_INTEGER: Final = Struct(">i")
_LONG: Final = Struct(">q")
_FLOAT: Final = Struct(">f")
_DOUBLE: Final = Struct(">d")


class ShortSerializer(_NumberSerializer):
    """An integer as 2 bytes, big-endian: -32768 to 32767."""

    _packing, _wanted = _SHORT, "an integer of 16 bits"


class IntegerSerializer(_NumberSerializer):
    """An integer as 4 bytes, big-endian: -2**31 to 2**31 - 1."""

    _packing, _wanted = _INTEGER, "an integer of 32 bits"


class LongSerializer(_NumberSerializer):
    """An integer as 8 bytes, big-endian: -2**63 to 2**63 - 1."""

    _packing, _wanted = _LONG, "an integer of 64 bits"


class FloatSerializer(_NumberSerializer):
    """A float as 4 bytes, IEEE 754."""

    _packing, _wanted = _FLOAT, "a number that a float of 32 bits can hold"


class DoubleSerializer(_NumberSerializer):
    """A float as 8 bytes, IEEE 754."""

    _packing, _wanted = _DOUBLE, "a number"


class ShortDeserializer(_NumberDeserializer):
    """An integer of 2 bytes, big-endian."""

    _packing = _SHORT


class IntegerDeserializer(_NumberDeserializer):
    """An integer of 4 bytes, big-endian."""

    _packing = _INTEGER


class LongDeserializer(_NumberDeserializer):
    """An integer of 8 bytes, big-endian."""

    _packing = _LONG


class FloatDeserializer(_NumberDeserializer):
    """A float of 4 bytes, IEEE 754."""

    _packing = _FLOAT


class DoubleDeserializer(_NumberDeserializer):
    """A float of 8 bytes, IEEE 754."""

    _packing = _DOUBLE


class BooleanSerializer(BaseSerializer[bool]):
    """A bool as one byte, 1 or 0."""

    def serialize(self, topic: str, data: bool | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        if data is True:
            return b"\x01"
        if data is False:
            return b"\x00"
        refuse(data, "True or False")


class BooleanDeserializer(BaseDeserializer[bool]):
    """A bool of one byte, 1 or 0."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> bool | None:
        if data is None:
            return None
        if len(data) != 1:
            raise _wrong_size(self, 1)
        if data[0] > 1:
            raise SerializationError(f"Unexpected byte received by BooleanDeserializer: {data[0] - 256 if data[0] > 127 else data[0]}")
        return data[0] == 1


class UUIDSerializer(BaseSerializer[uuid.UUID]):
    """A UUID as its 36 characters, in the encoding of StringSerializer."""

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self._encoding = _configured_encoding(configs, is_key, "serializer.encoding", self._encoding)

    def serialize(self, topic: str, data: uuid.UUID | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, uuid.UUID):
            refuse(data, "a uuid.UUID")
        return str(data).encode(self._encoding)


class UUIDDeserializer(BaseDeserializer[uuid.UUID]):
    """A uuid.UUID from its text; `deserializer.encoding` and the like say in which encoding."""

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self._encoding = _configured_encoding(configs, is_key, "deserializer.encoding", self._encoding)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> uuid.UUID | None:
        if data is None:
            return None
        try:
            return uuid.UUID(str(data, self._encoding))
        except ValueError as fault:
            raise SerializationError("Error parsing data into UUID") from fault


class VoidSerializer(BaseSerializer[None]):
    """Always None, for any value."""

    def serialize(self, topic: str, data: object, headers: Headers | None = None) -> None:
        return None


class VoidDeserializer(BaseDeserializer[None]):
    """None, from no bytes; anything else is refused."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> None:
        if data is not None:
            raise SerializationError("Data should be null for a VoidDeserializer.")


def refuse(data: object, expected: str, advice: str = "") -> NoReturn:
    raise SerializationError(f"A {type(data).__name__} was given where {expected} is expected{advice}")


def _wrong_size(reader: object, size: int) -> SerializationError:
    return SerializationError(f"Size of data received by {type(reader).__name__} is not {size}")
