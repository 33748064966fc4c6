"""What turns keys and values into bytes and back.

A producer serializes in the caller's thread before it looks for a partition; a consumer deserializes in the thread that polls. None stands
for "no key" and for a tombstone: it stays None both ways. Serializers may add to a record's headers, so these are handed to them; they
must not keep them, nor do anything that waits longer than a call to a schema registry.
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
    """Kafka's Serializer. A client that makes one, from a class or its name, configures it; one that it is given it uses as it is."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the producer, before the first record; `is_key` says what it serializes."""

    def serialize(self, topic: str, data: T_contra | None, headers: Headers | None = None) -> bytes | None:
        """The bytes of a key or value; None stays None. `headers` are those of the record, and may be added to."""

    def close(self) -> None:
        """Called when the producer is closed."""


@runtime_checkable
class Deserializer(Protocol[T_co]):
    """Kafka's Deserializer, configured and closed as a Serializer is."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Called once with the settings of the consumer, before the first record; `is_key` says what it deserializes."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> T_co | None:
        """The key or value of these bytes; None stays None. An exception makes `poll` raise RecordDeserializationError."""

    def close(self) -> None:
        """Called when the consumer is closed."""


# What a client takes for key.serializer, value.deserializer …: an instance, a class, a function, or a dotted name.
GivenSerializer: TypeAlias = Serializer[T] | type[Serializer[T]] | Callable[[T], bytes | None] | str
GivenDeserializer: TypeAlias = Deserializer[T] | type[Deserializer[T]] | Callable[[bytes], T] | str


class BaseSerializer(Generic[T]):
    """A Serializer that needs no settings and holds nothing: what is left to write is `serialize`."""

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
    """A Deserializer that needs no settings and holds nothing: what is left to write is `deserialize`."""

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
