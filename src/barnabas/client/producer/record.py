"""A record to send, and its metadata after it is acknowledged.

An application creates a `ProducerRecord`, and interceptors may replace it; after that only its bytes are kept. `RecordMetadata` is the
result of the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.errors import IllegalArgument
from barnabas.records.record import Header
from barnabas.topic_partition import TopicPartition

GivenHeaders = Iterable[Header] | Mapping[str, bytes | None]

UNKNOWN_PARTITION = -1
NO_TIMESTAMP = -1
INVALID_OFFSET = -1


class ProducerRecord:
    """A record to send. Only the topic is required; a value of None is a tombstone.

    Without a partition the partitioner chooses one; without a timestamp (milliseconds since 1970) the record gets the time of sending.
    """

    __slots__ = ("headers", "key", "partition", "timestamp", "topic", "value")

    def __init__(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders | None = None,
    ) -> None:
        check_record(topic, partition, timestamp)
        self.topic = topic
        self.value = value
        self.key = key
        self.partition = partition
        self.timestamp = timestamp
        self.headers: list[Header] = [] if headers is None else headers_of(headers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerRecord) and self._fields() == other._fields()

    def __repr__(self) -> str:
        return (
            f"ProducerRecord(topic={self.topic!r}, partition={self.partition}, headers={self.headers!r}, key={self.key!r}, "
            f"value={self.value!r}, timestamp={self.timestamp})"
        )

    __hash__ = None  # type: ignore[assignment]

    def _fields(self) -> tuple[Any, ...]:
        return (self.topic, self.partition, self.timestamp, self.key, self.value, self.headers)


def headers_of(headers_or_mapping: GivenHeaders) -> list[Header]:
    """Pairs of a name and bytes or None; a dict is possible if every name occurs once."""
    headers = list(headers_or_mapping.items() if isinstance(headers_or_mapping, Mapping) else headers_or_mapping)
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2 or not isinstance(header[0], str):
            raise IllegalArgument(f"A header is a pair of a name and bytes, not {header!r}")
        if not isinstance(header[1], bytes | None):
            raise IllegalArgument(f"The value of header {header[0]} must be bytes or None, not {header[1]!r}: encode it first")
    return headers


def check_record(topic: Any, partition: int | None, timestamp: int | None) -> None:
    """Rejects values that no record can have, in Kafka's words."""
    if topic is None:
        raise IllegalArgument("The topic must not be None.")
    if timestamp is not None and timestamp < 0:
        raise IllegalArgument(f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or None.")
    if partition is not None and partition < 0:
        raise IllegalArgument(f"Invalid partition: {partition}. Partition number should always be non-negative or None.")


class RecordMetadata:
    """Where a record was appended. The offset is -1 with acks=0, and if the broker detected a duplicate.

    Sizes are those of the serialized key and value, -1 for None. The timestamp is the record's own or, for a topic with LogAppendTime, the
    broker's.
    """

    __slots__ = ("offset", "partition", "serialized_key_size", "serialized_value_size", "timestamp", "topic")

    def __init__(
        self, topic: str, partition: int, offset: int, timestamp: int, serialized_key_size: int = -1, serialized_value_size: int = -1
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that has the record."""
        return TopicPartition(self.topic, self.partition)

    def has_offset(self) -> bool:
        """Whether the offset is known: it is not with acks=0."""
        return self.offset != INVALID_OFFSET

    def has_timestamp(self) -> bool:
        """Whether the timestamp is known."""
        return self.timestamp != NO_TIMESTAMP

    def __repr__(self) -> str:
        partition = "" if self.partition == UNKNOWN_PARTITION else f"partition={self.partition}, "
        return f"RecordMetadata(topic={self.topic!r}, {partition}offset={self.offset}, timestamp={self.timestamp})"

    def __str__(self) -> str:
        """topic-partition@offset, as far as known: a record that failed early has no partition (-1)."""
        place = self.topic if self.partition == UNKNOWN_PARTITION else f"{self.topic}-{self.partition}"
        return f"{place}@{self.offset}" if self.has_offset() else place
