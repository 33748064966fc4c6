"""The hash of the topics a group is subscribed to; the group detects a change of one of them by it.

It is Kafka's hash (XXH3 over id, name, partitions and racks), so that a group moved from or to Kafka is not rebalanced without need.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from barnabas.coordinator.group.consumer.xxh3 import xxh3_64
from barnabas.coordinator.group.topics_image import TopicsImage

_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_TWO_LONGS_BIG: Final = Struct(">qq")
_TWO_LONGS: Final = Struct("<qq")
_MAGIC: Final = b"\0"


class MetadataHashes:
    """Caches the hash of each topic until the topic changes."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._hashes: dict[str, int] = {}

    def group_hash(self, topics: Iterable[str]) -> int:
        """The hash of those of these topics that exist; 0 when none does."""
        data = b"".join(_LONG.pack(value) for topic in sorted(topics, key=_utf16) if (value := self._topic_hash(topic)) is not None)
        return _signed(xxh3_64(data)) if data else 0

    def forget(self, topic: str) -> None:
        self._hashes.pop(topic, None)

    def _topic_hash(self, topic: str) -> int | None:
        cached = self._hashes.get(topic)
        if cached is None:
            cached = topic_hash(topic, self._image)
            if cached is not None:
                self._hashes[topic] = cached
        return cached


def topic_hash(topic: str, image: TopicsImage) -> int | None:
    """None when the topic does not exist."""
    topic_id = image.topic_id(topic)
    count = image.partition_count(topic)
    if topic_id is None or count is None:
        return None
    parts = [_MAGIC, _TWO_LONGS.pack(*_TWO_LONGS_BIG.unpack(topic_id.value)), _string(topic), _INT.pack(count)]
    for partition in range(count):
        parts.append(_INT.pack(partition))
        for rack in sorted(image.partition_racks(topic, partition), key=_utf16):
            parts.append(_INT.pack(len(_utf16(rack)) // 2) + _string(rack))
    return _signed(xxh3_64(b"".join(parts)))


def _string(text: str) -> bytes:
    """The bytes that the Java library hashes for a string: its UTF-16 units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")  # compares like Java's strings


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
