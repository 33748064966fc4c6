# Compiled by mypyc: src/compiled.toml lists this module.
"""What a poll hands out: records, and all records of one poll by partition.

A record is plain and whole: it keeps nothing of the fetch it came in. Poll makes one for every record of the log that is read, so nothing
here does more than hold values.
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
    """What a record's timestamp means; written as Kafka writes it."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    def __str__(self) -> str:
        return _TIMESTAMP_TYPE_NAMES[self]


_TIMESTAMP_TYPE_NAMES: Final = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


class ConsumerRecord(Generic[K, V]):
    """A record of the log, its key and value deserialized.

    The serialized sizes are -1 where key or value is null. `leader_epoch` is that of the leader which appended the record, where the log
    knows it. `delivery_count` is for records of share groups only.
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
        """The value of the last header of that name; None if there is none."""
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
    """The records of one poll: in the order of the log within a partition, in no order between partitions."""

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
        """Those of a partition, or of all partitions of a topic."""
        if isinstance(of, str):
            return [record for partition, records in self._by_partition.items() if partition.topic == of for record in records]
        return list(self._by_partition.get(of, ()))

    def partitions(self) -> set[TopicPartition]:
        """The partitions that have records here."""
        return set(self._by_partition)

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit once all of these have been processed."""
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
    """The first record at or after a time: its offset, its own timestamp, the epoch of its leader."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None
