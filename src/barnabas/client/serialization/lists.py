"""Lists of elements of another serializer, in the format of Kafka's ListSerializer (KIP-466).

The first byte is the format: elements of a fixed size follow one another after a list of the indexes that are None; all others have their
length before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct, error
from typing import Any, Final, TypeVar

from barnabas.client.errors import SerializationError
from barnabas.client.serialization.api import BaseDeserializer, BaseSerializer, Deserializer, Headers, Serializer
from barnabas.client.serialization.resolve import load, resolve_deserializer, resolve_serializer
from barnabas.client.serialization.simple import (
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
    UUIDDeserializer,
    UUIDSerializer,
    refuse,
)
from barnabas.config_def import InvalidConfig

_CONSTANT_SIZE: Final = 0
_VARIABLE_SIZE: Final = 1
_NULL_ENTRY: Final = -1
_INT: Final = Struct(">i")
_FIXED: Final = frozenset((ShortSerializer, IntegerSerializer, FloatSerializer, LongSerializer, DoubleSerializer, UUIDSerializer))
_SIZES: Final[dict[type[Any], int]] = {
    ShortDeserializer: 2,
    IntegerDeserializer: 4,
    FloatDeserializer: 4,
    LongDeserializer: 8,
    DoubleDeserializer: 8,
    UUIDDeserializer: 36,
}
_LIST_TYPES: Final = {"java.util.ArrayList": list, "java.util.LinkedList": list, "java.util.List": list}

R = TypeVar("R")


class ListSerializer(BaseSerializer[Sequence[Any]]):
    """The serializer of elements is `inner`, or the one in `default.list.key.serde.inner` (`…value…`)."""

    def __init__(self, inner: Serializer[Any] | None = None) -> None:
        self.inner = inner
        self._given = inner is not None

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        if self._given:
            raise InvalidConfig("List serializer was already initialized using a non-default constructor")
        self.inner = _configured_inner(configs, is_key, "Serializer", resolve_serializer)

    def serialize(self, topic: str, data: Sequence[Any] | None, headers: Headers | None = None) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, Sequence) or isinstance(data, str | bytes | bytearray | memoryview):
            refuse(data, "a list")
        inner = _known(self.inner)
        entries = [None if entry is None else inner.serialize(topic, entry, headers) for entry in data]
        if type(inner) in _FIXED:
            missing = [index for index, entry in enumerate(entries) if entry is None]
            front = [b"\0", _INT.pack(len(missing)), *map(_INT.pack, missing), _INT.pack(len(entries))]
            return b"".join(front + [entry for entry in entries if entry is not None])
        written = [b"\1", _INT.pack(len(entries))]
        for entry in entries:
            written += (_INT.pack(_NULL_ENTRY),) if entry is None else (_INT.pack(len(entry)), entry)
        return b"".join(written)

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


class ListDeserializer(BaseDeserializer[Any]):
    """Returns a `list`, or the result of `list_type` (`default.list.key.serde.type`) for one."""

    def __init__(self, inner: Deserializer[Any] | None = None, list_type: Callable[[list[Any]], Any] = list) -> None:
        self.inner = inner
        self.list_type = list_type
        self._given = inner is not None

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        if self._given:
            raise InvalidConfig("List deserializer was already initialized using a non-default constructor")
        name = f"default.list.{'key' if is_key else 'value'}.serde.type"
        list_type = configs.get(name, list)
        if isinstance(list_type, str):
            list_type = _LIST_TYPES.get(list_type) or load(name, list_type)
        self.list_type = list_type
        self.inner = _configured_inner(configs, is_key, "Deserializer", resolve_deserializer)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any | None:
        if data is None:
            return None
        inner = _known(self.inner)
        try:
            entries = _entries(bytes(data), _SIZES.get(type(inner)))
        except (error, IndexError) as fault:
            raise SerializationError("End of the stream was reached prematurely") from fault
        return self.list_type([None if entry is None else inner.deserialize(topic, entry, headers) for entry in entries])

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


def _configured_inner(configs: Mapping[str, Any], is_key: bool, half: str, resolve: Callable[[Any, Mapping[str, Any], bool], R]) -> R:
    name = f"default.list.{'key' if is_key else 'value'}.serde.inner"
    inner = configs.get(name)
    if inner is None:
        raise InvalidConfig(
            f"Not able to determine the {half.lower()} class because it was neither passed via the constructor "
            f"nor set in the config: set {name}"
        )
    if isinstance(inner, str):
        # Java names both in one class: org.apache.kafka.common.serialization.Serdes$IntegerSerde
        package, nested, serde = inner.partition("Serdes$")
        if nested:
            inner = package + serde.removesuffix("Serde") + half
    return resolve(inner, configs, is_key)


def _known(inner: R | None) -> R:
    if inner is None:
        raise SerializationError("The list's entries have no serializer: give it `inner`, or configure it")
    return inner


def _entries(data: bytes, fixed_size: int | None) -> list[bytes | None]:
    """The bytes of each element. Counts are compared with the remaining bytes before anything is allocated for them."""
    flag = data[0]
    if flag not in (_CONSTANT_SIZE, _VARIABLE_SIZE):
        raise SerializationError("Invalid serialization strategy flag value")
    at = 1
    missing: frozenset[int] = frozenset()
    if flag == _CONSTANT_SIZE:
        if fixed_size is None:
            raise SerializationError("The list holds entries of one fixed size, but its deserializer's have none")
        count = _INT.unpack_from(data, at)[0]
        _check(count, 4, len(data) - at)
        missing = frozenset(_INT.unpack_from(data, at + 4 + 4 * index)[0] for index in range(count))
        at += 4 + 4 * count
    count = _INT.unpack_from(data, at)[0]
    at += 4
    _check(count - len(missing) if flag == _CONSTANT_SIZE else count, 4 if flag == _VARIABLE_SIZE else fixed_size or 1, len(data) - at)
    entries: list[bytes | None] = []
    for index in range(count):
        if flag == _VARIABLE_SIZE:
            size = _INT.unpack_from(data, at)[0]
            at += 4
            if size == _NULL_ENTRY:
                entries.append(None)
                continue
        elif index in missing:
            entries.append(None)
            continue
        else:
            size = fixed_size or 0
        _check(size, 1, len(data) - at)
        entries.append(data[at : at + size])
        at += size
    return entries


def _check(count: int, size: int, left: int) -> None:
    if count < 0 or count * size > left:
        raise SerializationError("End of the stream was reached prematurely")
