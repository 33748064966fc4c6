# Compiled by mypyc: src/compiled.toml lists this module.
"""Committed offsets: validates and answers commits, fetches and deletions, expires offsets, and keeps those of open transactions.

The methods that decide come first, then the state and `replay`, the only method that changes it. An offset committed in a transaction is
pending until the end marker of its producer is replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from barnabas.config_def import LONG_MAX
from barnabas.coordinator.group.classic.classic_group import PREPARING, STABLE, ClassicGroup
from barnabas.coordinator.group.classic.classic_groups import ClassicGroups
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.group import CommitPartitionValidator, CommittedOffset, Group
from barnabas.coordinator.group.group_memory import GROUP_BYTES, OFFSET_BYTES, GroupMemory
from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.coordinator.metrics import OFFSET_COMMITS, OFFSET_DELETIONS, OFFSET_EXPIRATIONS, CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult
from barnabas.errors import GroupIdNotFound, IllegalGeneration, StaleMemberEpoch
from barnabas.protocol.coordinator_records.offset_commit_key import OffsetCommitKey
from barnabas.protocol.coordinator_records.offset_commit_value import OffsetCommitValue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest
from barnabas.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from barnabas.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

COMMIT_BYTES_MAX: Final = 16_777_216  # no commit adds more to the account, because its records have to fit in one batch
OFFSET_COMMIT: Final = 1  # the type of the record
_WITH_EXPIRY: Final = 1  # the only version of the value with an expiry timestamp
_LATEST: Final = 4
NO_PRODUCER_ID: Final = -1
INVALID_OFFSET: Final = -1
_NO_RETENTION: Final = -1
_NO_TIMESTAMP: Final = -1

PartitionOffsets = dict[int, CommittedOffset]
TopicOffsets = dict[str, PartitionOffsets]


class OffsetStore:
    """Offsets by group, topic and partition, without empty entries. `account` includes the bytes it holds."""

    def __init__(self, account: MemoryAccount) -> None:
        self.by_group: dict[str, TopicOffsets] = {}
        self.count = 0
        self.held_bytes = 0
        self._account = account

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.by_group.get(group_id, {}).get(topic, {}).get(partition)

    def put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        partitions = self.by_group.setdefault(group_id, {}).setdefault(topic, {})
        replaced = partitions.get(partition)
        if replaced is None:
            self.count += 1
            self._change_held_bytes(OFFSET_BYTES + len(offset.metadata))
        else:
            self._change_held_bytes(len(offset.metadata) - len(replaced.metadata))
        partitions[partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        removed = None if partitions is None else partitions.pop(partition, None)
        if topics is None or removed is None:
            return
        self.count -= 1
        self._change_held_bytes(-OFFSET_BYTES - len(removed.metadata))
        if not partitions:
            del topics[topic]
            if not topics:
                del self.by_group[group_id]

    def leave_account(self) -> None:
        """To be called before the store is dropped with its contents."""
        self._change_held_bytes(-self.held_bytes)

    def _change_held_bytes(self, change: int) -> None:
        self.held_bytes += change
        self._account.used += change

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.by_group.get(group_id, {}).items():
            for partition, offset in partitions.items():
                yield topic, partition, offset


class _Room:
    """The bytes that one commit may add to the account. Partitions are checked one by one only if `is_tight`."""

    __slots__ = ("_account", "_group_id", "_store", "_taken", "is_tight")

    def __init__(self, account: MemoryAccount, store: OffsetStore | None, group_id: str) -> None:
        self._account = account
        self._store = store  # whose offsets the commit replaces
        self._group_id = group_id
        self._taken = 0
        self.is_tight = not account.has_room(COMMIT_BYTES_MAX)

    def take(self, topic: str, partition: int, metadata: str) -> bool:
        replaced = None if self._store is None else self._store.get(self._group_id, topic, partition)
        more = len(metadata) + (OFFSET_BYTES if replaced is None else -len(replaced.metadata))
        if more > 0 and not self._account.has_room(self._taken + more):
            return False
        self._taken += more
        return True


class OffsetMetadataManager:
    def __init__(
        self,
        groups: dict[str, Group],
        classic: ClassicGroups,
        config: GroupCoordinatorConfig,
        clock: Clock,
        metrics: CoordinatorMetrics,
        memory: GroupMemory,
    ) -> None:
        self._groups = groups
        self._classic = classic
        self._config = config
        self._clock = clock
        self._metrics = metrics
        self._memory = memory
        self.committed = OffsetStore(memory.offsets)
        self.pending: dict[int, OffsetStore] = {}  # by producer id

    # -- OffsetCommit, TxnOffsetCommit

    def commit(self, version: int, request: OffsetCommitRequest) -> CoordinatorResult[OffsetCommitResponse]:
        validator = self._validate_commit(version, request)
        room = _Room(self._memory.offsets, self.committed, request.group_id)
        now_ms = self._clock.now_ms()
        expires = None if request.retention_time_ms == _NO_RETENTION else min(now_ms + request.retention_time_ms, LONG_MAX)
        records: list[CoordinatorRecord] = []
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            partitions: list[OffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                if self._is_too_long(metadata):
                    partitions.append(OffsetCommitResponsePartition(partition.partition_index, int(ErrorCode.OFFSET_METADATA_TOO_LARGE)))
                    continue
                if validator is not None:
                    validator(topic.name, topic.topic_id, partition.partition_index)
                if room.is_tight and not room.take(topic.name, partition.partition_index, metadata):
                    partitions.append(OffsetCommitResponsePartition(partition.partition_index, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
                    continue
                partitions.append(OffsetCommitResponsePartition(partition.partition_index))
                committed_at = now_ms if partition.commit_timestamp == _NO_TIMESTAMP else partition.commit_timestamp
                offset = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, committed_at, expires, topic_id=topic.topic_id
                )
                records.append(commit_record(request.group_id, topic.name, partition.partition_index, offset))
            topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions))
        if records:
            self._metrics.record(OFFSET_COMMITS, len(records))
        return CoordinatorResult(records, OffsetCommitResponse(topics=topics))

    def _validate_commit(self, version: int, request: OffsetCommitRequest) -> CommitPartitionValidator | None:
        generation = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation >= 0:
                if version >= 9:
                    raise GroupIdNotFound(f"Group {request.group_id} not found.")
                raise IllegalGeneration
            group = self._new_group(request.group_id)
        validator = group.validate_offset_commit(
            request.member_id, request.group_instance_id, generation, transactional=False, version=version
        )
        if isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING):
            self._classic.keep_session(group, request.member_id)
        return validator

    def _new_group(self, group_id: str) -> ClassicGroup:
        """A group without members; the replay of the commit creates it. Raises CoordinatorNotAvailable when there is no memory for it."""
        self._memory.check_growth(0, GROUP_BYTES + len(group_id))
        return ClassicGroup(group_id)

    def commit_transactional(self, version: int, request: TxnOffsetCommitRequest) -> CoordinatorResult[TxnOffsetCommitResponse]:
        """The records are written with the producer's id and epoch, in a transactional batch."""
        try:
            return self._commit_transactional(version, request)
        except StaleMemberEpoch:
            raise IllegalGeneration from None

    def _commit_transactional(self, version: int, request: TxnOffsetCommitRequest) -> CoordinatorResult[TxnOffsetCommitResponse]:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise IllegalGeneration
            group = self._new_group(request.group_id)
        validator = group.validate_offset_commit(
            request.member_id, request.group_instance_id, request.generation_id, transactional=True, version=version
        )
        room = _Room(self._memory.offsets, self.pending.get(request.producer_id), request.group_id)
        now_ms = self._clock.now_ms()
        records: list[CoordinatorRecord] = []
        topics: list[TxnOffsetCommitResponseTopic] = []
        for topic in request.topics:
            partitions: list[TxnOffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                if self._is_too_long(metadata):
                    partitions.append(TxnOffsetCommitResponsePartition(partition.partition_index, int(ErrorCode.OFFSET_METADATA_TOO_LARGE)))
                    continue
                if validator is not None:
                    validator(topic.name, Uuid.ZERO, partition.partition_index)
                if room.is_tight and not room.take(topic.name, partition.partition_index, metadata):
                    partitions.append(TxnOffsetCommitResponsePartition(partition.partition_index, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
                    continue
                partitions.append(TxnOffsetCommitResponsePartition(partition.partition_index))
                offset = CommittedOffset(partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms)
                records.append(commit_record(request.group_id, topic.name, partition.partition_index, offset))
            topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions))
        if records:
            self._metrics.record(OFFSET_COMMITS, len(records))
        return CoordinatorResult(records, TxnOffsetCommitResponse(topics=topics))

    def _is_too_long(self, metadata: str) -> bool:
        size = len(metadata)
        if not metadata.isascii():
            size = len(metadata.encode("utf-16-le", "surrogatepass")) // 2  # Java counts UTF-16 units, not characters
        return size > self._config.offset_metadata_max_bytes

    # -- OffsetFetch

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The requested offsets, or all of the group when no topics are named. A partition without a commit gets -1 and no error."""
        group = self._groups.get(request.group_id)
        exists = group is not None
        if group is not None:
            try:
                group.validate_offset_fetch(request.member_id, request.member_epoch)
            except GroupIdNotFound:
                exists = False
        if request.topics is None:
            return OffsetFetchResponseGroup(request.group_id, self._all_offsets(request.group_id, require_stable) if exists else [])
        topics = []
        for topic in request.topics:
            partitions = [
                self._fetched(request.group_id, topic.name, topic.topic_id, index, exists, require_stable)
                for index in topic.partition_indexes
            ]
            topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
        return OffsetFetchResponseGroup(request.group_id, topics)

    def _all_offsets(self, group_id: str, require_stable: bool) -> list[OffsetFetchResponseTopics]:
        return [
            OffsetFetchResponseTopics(
                topic, Uuid.ZERO, [self._fetched(group_id, topic, Uuid.ZERO, index, True, require_stable) for index in partitions]
            )
            for topic, partitions in self.committed.by_group.get(group_id, {}).items()
        ]

    def _fetched(
        self, group_id: str, topic: str, topic_id: Uuid, partition: int, exists: bool, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        if require_stable and self.is_pending(group_id, topic, partition):
            return OffsetFetchResponsePartitions(partition, INVALID_OFFSET, -1, "", int(ErrorCode.UNSTABLE_OFFSET_COMMIT))
        offset = self.committed.get(group_id, topic, partition) if exists else None
        if offset is None or Uuid.ZERO != offset.topic_id != topic_id != Uuid.ZERO:
            return OffsetFetchResponsePartitions(partition, INVALID_OFFSET, -1, "")
        return OffsetFetchResponsePartitions(partition, offset.offset, offset.leader_epoch, offset.metadata)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset for this partition."""
        return any(store.get(group_id, topic, partition) is not None for store in self.pending.values())

    def has_open_transactions(self, group_id: str) -> bool:
        return any(group_id in store.by_group for store in self.pending.values())

    # -- OffsetDelete, DeleteGroups, deleted topics, retention

    def delete(self, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
        group = self._groups.get(request.group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {request.group_id} not found.")
        group.validate_offset_delete()
        records: list[CoordinatorRecord] = []
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            code = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if subscribed else 0
            for partition in topic.partitions:
                if not subscribed and self._exists(request.group_id, topic.name, partition.partition_index):
                    records.append(tombstone(request.group_id, topic.name, partition.partition_index))
            partitions = [OffsetDeleteResponsePartition(partition.partition_index, code) for partition in topic.partitions]
            topics.append(OffsetDeleteResponseTopic(topic.name, partitions))
        self._metrics.record(OFFSET_DELETIONS, len(records))
        return CoordinatorResult(records, OffsetDeleteResponse(topics=topics))

    def _exists(self, group_id: str, topic: str, partition: int) -> bool:
        return self.committed.get(group_id, topic, partition) is not None or self.is_pending(group_id, topic, partition)

    def tombstones_of_group(self, group_id: str) -> list[CoordinatorRecord]:
        keys = {(topic, partition): None for store in self._stores() for topic, partition, _ in store.of_group(group_id)}
        return [tombstone(group_id, topic, partition) for topic, partition in keys]

    def tombstones_of_partitions(self, partitions: Collection[TopicPartition]) -> list[CoordinatorRecord]:
        """The tombstones of all offsets of deleted partitions, in all groups."""
        keys = {
            (group_id, partition.topic, partition.partition): None
            for store in self._stores()
            for group_id, topics in store.by_group.items()
            for partition in partitions
            if partition.partition in topics.get(partition.topic, {})
        }
        return [tombstone(*key) for key in keys]

    def _stores(self) -> Iterable[OffsetStore]:
        return [self.committed, *self.pending.values()]

    def expire(self, group: Group, records: list[CoordinatorRecord]) -> bool:
        """Appends the tombstones of the group's expired offsets. Returns whether nothing remains that keeps the group alive."""
        group_id = group.group_id
        if group_id not in self.committed.by_group:
            return not self.has_open_transactions(group_id)
        base = group.retention_base()
        if base is None:
            return False
        now_ms, retention_ms = self._clock.now_ms(), self._config.offsets_retention_ms
        before, kept = len(records), False
        for topic, partition, offset in self.committed.of_group(group_id):
            if offset.expire_timestamp is not None:
                expired = now_ms >= offset.expire_timestamp
            else:
                expired = now_ms - base(offset) >= retention_ms
            if expired and not group.is_subscribed_to(topic) and not self.is_pending(group_id, topic, partition):
                records.append(tombstone(group_id, topic, partition))
            else:
                kept = True
        self._metrics.record(OFFSET_EXPIRATIONS, len(records) - before)
        return not kept and not self.has_open_transactions(group_id)

    # -- replay

    def replay(self, record_offset: int, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is None:
            for store in self._stores():
                store.remove(key.group, key.topic, key.partition)
            self._drop_empty_transactions()
            return
        if key.group not in self._groups:
            self._groups[key.group] = ClassicGroup(key.group, state_timestamp=self._clock.now_ms())
        offset = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            None if value.expire_timestamp == _NO_TIMESTAMP else value.expire_timestamp,
            record_offset,
            value.topic_id,
        )
        store = self.committed if producer_id == NO_PRODUCER_ID else self._pending_of(producer_id)
        store.put(key.group, key.topic, key.partition, offset)

    def _pending_of(self, producer_id: int) -> OffsetStore:
        store = self.pending.get(producer_id)
        if store is None:
            store = self.pending[producer_id] = OffsetStore(self._memory.offsets)
        return store

    def leave_account(self) -> None:
        """To be called when the shard is unloaded."""
        for store in self._stores():
            store.leave_account()

    def _drop_empty_transactions(self) -> None:
        for producer_id in [producer_id for producer_id, store in self.pending.items() if not store.by_group]:
            del self.pending[producer_id]

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        ended = self.pending.pop(producer_id, None)
        if ended is None:
            return
        ended.leave_account()
        if not committed:
            return
        for group_id in ended.by_group:
            for topic, partition, offset in ended.of_group(group_id):
                existing = self.committed.get(group_id, topic, partition)
                # The later record wins, not the later end marker: compaction may already have removed the earlier record.
                if existing is None or offset.record_offset > existing.record_offset:
                    self.committed.put(group_id, topic, partition, offset)


def commit_record(group_id: str, topic: str, partition: int, offset: CommittedOffset) -> CoordinatorRecord:
    version = _LATEST if offset.expire_timestamp is None else _WITH_EXPIRY
    value = OffsetCommitValue(
        offset.offset,
        offset.leader_epoch if version == _LATEST else -1,
        offset.metadata,
        offset.commit_timestamp,
        _NO_TIMESTAMP if offset.expire_timestamp is None else offset.expire_timestamp,
        offset.topic_id if version == _LATEST else Uuid.ZERO,
    )
    return CoordinatorRecord(OFFSET_COMMIT, OffsetCommitKey(group_id, topic, partition), value, version)


def tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OFFSET_COMMIT, OffsetCommitKey(group_id, topic, partition))
