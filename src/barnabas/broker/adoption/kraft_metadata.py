"""Reads the topics and configs of an Apache Kafka cluster from KRaft's metadata log, `__cluster_metadata-0`.

Only `adoption` uses it: a broker of Barnabas has its metadata in the metadata store and does not read this log. The newest snapshot and the
records after it are replayed. Record types that the metadata store cannot hold are counted, so that `barnabas adopt` can report them.
Nothing is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from barnabas.errors import CorruptRecord, KafkaError
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.reader import Reader
from barnabas.records.reader import read_records
from barnabas.storage.directory import names
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.segments.scan import scan
from barnabas.uuid import Uuid

FRAME_VERSION: Final = 1
NO_LEADER_CHANGE: Final = -2

TOPIC: Final = 2
PARTITION: Final = 3
CONFIG: Final = 4
PARTITION_CHANGE: Final = 5
REMOVE_TOPIC: Final = 9
PRODUCER_IDS: Final = 15
BEGIN_TRANSACTION: Final = 23
END_TRANSACTION: Final = 24
ABORT_TRANSACTION: Final = 25

# Record types that are only counted: their name, and whether a record adds or removes one.
_COUNTED: Final = {
    11: ("SCRAM credentials", 1),
    22: ("SCRAM credentials", -1),
    14: ("client quotas", 1),
    18: ("access control entries", 1),
    19: ("access control entries", -1),
    10: ("delegation tokens", 1),
    26: ("delegation tokens", -1),
}

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

_LEADER_TAG: Final = 1
_REPLICAS_TAG: Final = 2
_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


@dataclass
class KraftPartition:
    replicas: tuple[int, ...]
    leader_epoch: int


@dataclass
class KraftTopic:
    name: str
    topic_id: Uuid
    partitions: dict[int, KraftPartition] = field(default_factory=dict)


@dataclass
class KraftMetadata:
    topics: dict[Uuid, KraftTopic] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)  # by resource type and name
    next_producer_id: int = 0
    left_behind: Counter[str] = field(default_factory=Counter)

    def topic_named(self, name: str) -> KraftTopic | None:
        return next((topic for topic in self.topics.values() if topic.name == name), None)


def read_kraft_metadata(files: AnyFiles, directory: str) -> KraftMetadata:
    """Raises CorruptRecord, which names the file, if the log or its snapshot cannot be decoded."""
    replay = MetadataReplay()
    file_names = [entry.name for entry in files.list_dir(directory)]
    snapshots = sorted((int(match[1]), name) for name in file_names if (match := _SNAPSHOT.fullmatch(name)) is not None)
    first_offset = 0
    if snapshots:
        first_offset, snapshot = snapshots[-1]
        _read_file(files, f"{directory}/{snapshot}", 0, replay)
    for name in sorted(name for name in file_names if name.endswith(names.LOG_SUFFIX)):
        _read_file(files, f"{directory}/{name}", first_offset, replay)
    return replay.metadata


def _read_file(files: AnyFiles, path: str, first_offset: int, replay: MetadataReplay) -> None:
    try:
        for value in _values(files, path, first_offset):
            replay.record(value)
    except (KafkaError, MalformedMessage) as error:
        raise CorruptRecord(f"{path}: {error}") from error


def _values(files: AnyFiles, path: str, first_offset: int) -> Iterator[bytes]:
    file = files.open(path, writable=False)
    try:
        for chunk in scan(file, 0, file.size):
            for batch in chunk.batches:
                if batch.is_control or batch.last_offset < first_offset:
                    continue
                for record in read_records(chunk.data, batch):
                    if record.offset >= first_offset and record.value is not None:
                        yield record.value
    finally:
        file.close()


class MetadataReplay:
    """Applies metadata records. The records of a metadata transaction are applied at its end record; without one they are dropped."""

    def __init__(self) -> None:
        self.metadata = KraftMetadata()
        self._transaction: list[bytes] | None = None

    def record(self, value: bytes) -> None:
        kind, _ = _frame(value)
        if kind == BEGIN_TRANSACTION:
            self._transaction = []
        elif kind == ABORT_TRANSACTION:
            self._transaction = None
        elif kind == END_TRANSACTION:
            complete, self._transaction = self._transaction or [], None
            for buffered in complete:
                self._apply(buffered)
        elif self._transaction is not None:
            self._transaction.append(value)
        else:
            self._apply(value)

    def _apply(self, value: bytes) -> None:
        kind, reader = _frame(value)
        if kind == TOPIC:
            self._topic(reader)
        elif kind == PARTITION:
            self._partition(reader)
        elif kind == PARTITION_CHANGE:
            self._partition_change(reader)
        elif kind == CONFIG:
            self._config(reader)
        elif kind == REMOVE_TOPIC:
            self._remove_topic(reader)
        elif kind == PRODUCER_IDS:
            reader.int32()
            reader.int64()
            self.metadata.next_producer_id = max(self.metadata.next_producer_id, reader.int64())
        elif kind in _COUNTED:
            what, change = _COUNTED[kind]
            self.metadata.left_behind[what] += change

    def _topic(self, reader: Reader) -> None:
        name, topic_id = reader.string(True), reader.uuid()
        self.metadata.topics[topic_id] = KraftTopic(name, topic_id)

    def _partition(self, reader: Reader) -> None:
        number, topic_id, replicas = reader.int32(), reader.uuid(), _integers(reader)
        for _ in ("isr", "removing", "adding"):
            _integers(reader)
        reader.int32()  # the leader
        self._topic_of(topic_id).partitions[number] = KraftPartition(replicas, reader.int32())

    def _partition_change(self, reader: Reader) -> None:
        number, topic_id = reader.int32(), reader.uuid()
        partition = self._topic_of(topic_id).partitions.get(number)
        if partition is None:
            raise CorruptRecord(f"partition {number} of topic {topic_id} changes before it is made")
        for _ in range(reader.tagged_fields()):
            tag, end = reader.uvarint(), reader.tagged_field_end()
            if tag == _LEADER_TAG:
                # Every election increments the epoch, also one with the same leader or without a leader.
                partition.leader_epoch += reader.int32() != NO_LEADER_CHANGE
            elif tag == _REPLICAS_TAG:
                partition.replicas = _integers(reader)
            reader.skip_tagged_field(end)

    def _config(self, reader: Reader) -> None:
        resource = reader.int8(), reader.string(True)
        name, value = reader.string(True), reader.nullable_string(True)
        configs = self.metadata.configs.setdefault(resource, {})
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value

    def _remove_topic(self, reader: Reader) -> None:
        topic = self.metadata.topics.pop(reader.uuid(), None)
        if topic is not None:
            self.metadata.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _topic_of(self, topic_id: Uuid) -> KraftTopic:
        if topic_id not in self.metadata.topics:
            raise CorruptRecord(f"a partition of topic {topic_id}, which is not there")
        return self.metadata.topics[topic_id]


def _frame(value: bytes) -> tuple[int, Reader]:
    """The type of a record, and a reader at its first field. All versions of a type begin with the fields that are read here."""
    reader = Reader(value)
    frame_version = reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise CorruptRecord(f"a metadata record has frame version {frame_version}, only {FRAME_VERSION} is known")
    kind = reader.uvarint()
    reader.uvarint()  # the version of the record
    return kind, reader


def _integers(reader: Reader) -> tuple[int, ...]:
    return tuple(reader.int32() for _ in range(max(0, reader.nullable_array(True, 4))))
