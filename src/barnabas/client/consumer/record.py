# Compiled by mypyc: src/compiled.toml lists this module.
"""The records that a poll returns, and the collection of all records of one poll by partition.

A record has no reference to the data of its fetch. A poll creates one object for every record, so these classes only hold values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.topic_partition import TopicPartition

K = TypeVar("K")
V = TypeVar("V")

Header: TypeAlias = tuple[str, bytes | None]

NULL_SIZE: Final = -1
NO_TIMESTAMP: Final = -1


class TimestampType(IntEnum):
    """The meaning of a record's timestamp; str() is Kafka's spelling."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    def __str__(self) -> str:
        return _TIMESTAMP_TYPE_NAMES[self]


_TIMESTAMP_TYPE_NAMES: Final = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


class ConsumerRecord(Generic[K, V]):
    """A record of the log with deserialized key and value.

    The serialized sizes are -1 for a null key or value. `leader_epoch` is the epoch of the leader that appended the record, if the log has
    it. `delivery_count` is only for records of share groups.
    """

    __slots__ = (
        "delivery_count",
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "serialized_key_size",
        "serialized_value_size",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: TimestampType,
        serialized_key_size: int,
        serialized_value_size: int,
        key: K | None,
        value: V | None,
        headers: tuple[Header, ...] = (),
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch = leader_epoch
        self.delivery_count = delivery_count

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that the record was read from."""
        return TopicPartition(self.topic, self.partition)

    def last_header(self, name: str) -> bytes | None:
        """The value of the last header with that name; None if there is none."""
        for key, value in reversed(self.headers):
            if key == name:
                return value
        return None

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic = {self.topic}, partition = {self.partition}, leaderEpoch = {self.leader_epoch}, "
            f"offset = {self.offset}, {self.timestamp_type} = {self.timestamp}, deliveryCount = {self.delivery_count}, "
            f"serialized key size = {self.serialized_key_size}, serialized value size = {self.serialized_value_size}, "
            f"headers = {list(self.headers)}, key = {self.key!r}, value = {self.value!r})"
        )


class ConsumerRecords(Generic[K, V]):
    """The records of one poll: in log order within a partition, in no particular order between partitions."""

    __slots__ = ("_by_partition", "_count", "_next_offsets")

    def __init__(
        self,
        by_partition: Mapping[TopicPartition, list[ConsumerRecord[K, V]]],
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        self._by_partition = by_partition
        self._next_offsets: Mapping[TopicPartition, OffsetAndMetadata] = next_offsets if next_offsets is not None else {}
        self._count = sum([len(records) for records in by_partition.values()])

    @staticmethod
    def empty() -> ConsumerRecords[K, V]:
        """What a poll without records returns."""
        return ConsumerRecords({})

    def records(self, of: TopicPartition | str) -> list[ConsumerRecord[K, V]]:
        """The records of a partition, or of all partitions of a topic."""
        if isinstance(of, str):
            return [record for partition, records in self._by_partition.items() if partition.topic == of for record in records]
        return list(self._by_partition.get(of, ()))

    def partitions(self) -> set[TopicPartition]:
        """The partitions that have records here."""
        return set(self._by_partition)

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets to commit after all of these records are processed."""
        return dict(self._next_offsets)

    def count(self) -> int:
        """The number of records of all partitions."""
        return self._count

    def is_empty(self) -> bool:
        """Whether there is no record."""
        return self._count == 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        for records in self._by_partition.values():
            yield from records

    def __repr__(self) -> str:
        return f"ConsumerRecords({self._count} records of {len(self._by_partition)} partitions)"


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a timestamp: its offset, its own timestamp, and its leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None
