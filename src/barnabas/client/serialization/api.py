"""The interfaces of serializers and deserializers.

A producer serializes in the caller's thread before it chooses a partition; a consumer deserializes in the polling thread. None means "no
key" or a tombstone, and remains None in both directions. Serializers may add headers to a record, so they receive them; they must not keep
them, nor block for longer than a call to a schema registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Header: TypeAlias = tuple[str, bytes | None]
Headers: TypeAlias = list[Header]


@runtime_checkable
class Serializer(Protocol[T_contra]):
    """Kafka's Serializer. A client that creates one, from a class or its name, configures it; it uses a given instance as it is."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the producer, before the first record; `is_key` says what it serializes."""

    def serialize(self, topic: str, data: T_contra | None, headers: Headers | None = None) -> bytes | None:
        """The bytes of a key or value; None stays None. `headers` are those of the record, and may be added to."""

    def close(self) -> None:
        """Called when the producer is closed."""


@runtime_checkable
class Deserializer(Protocol[T_co]):
    """Kafka's Deserializer, configured and closed like a Serializer."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the consumer, before the first record; `is_key` says what it deserializes."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> T_co | None:
        """The key or value of these bytes; None stays None. An exception makes `poll` raise RecordDeserializationError."""

    def close(self) -> None:
        """Called when the consumer is closed."""


# The accepted values of key.serializer, value.deserializer …: an instance, a class, a function, or a dotted name.
GivenSerializer: TypeAlias = Serializer[T] | type[Serializer[T]] | Callable[[T], bytes | None] | str
GivenDeserializer: TypeAlias = Deserializer[T] | type[Deserializer[T]] | Callable[[bytes], T] | str


class BaseSerializer(Generic[T]):
    """A Serializer without settings and state: subclasses implement `serialize`."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the producer, before the first record; `is_key` says what it serializes. Does nothing by
        default.
        """
        return

    def serialize(self, topic: str, data: T | None, headers: Headers | None = None) -> bytes | None:
        """The bytes of a key or value; None stays None. Raises SerializationError for what it cannot write."""
        raise NotImplementedError(f"{type(self).__name__} has no serialize")

    def close(self) -> None:
        """May be called more than once."""
        return


class BaseDeserializer(Generic[T]):
    """A Deserializer without settings and state: subclasses implement `deserialize`."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the consumer, before the first record; `is_key` says what it deserializes. Does nothing by
        default.
        """
        return

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> T | None:
        """The key or value of these bytes; None stays None. Raises SerializationError for what it cannot read."""
        raise NotImplementedError(f"{type(self).__name__} has no deserialize")

    def close(self) -> None:
        """May be called more than once."""
        return
