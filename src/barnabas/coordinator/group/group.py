# Compiled by mypyc: src/compiled.toml lists this module.
"""The interface of all kinds of group, and the mapping of a group to its partition of `__consumer_offsets`.

Offsets, listing and deletion use a group only through this interface: it validates commits, names the subscribed topics and gives the
records that remove the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from enum import Enum
from functools import lru_cache
from typing import Final

from barnabas.coordinator.group.group_memory import GROUP_BYTES
from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.java_hash import java_hash
from barnabas.protocol.messages.list_groups_response import ListedGroup
from barnabas.uuid import Uuid

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""


class GroupType(Enum):
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"

    @classmethod
    def parse(cls, name: str) -> GroupType:
        """The type of this name, in any case; UNKNOWN when no type has it."""
        return next((kind for kind in cls if kind.value == name.lower()), cls.UNKNOWN)


class CommittedOffset:
    """A committed offset."""

    __slots__ = ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset", "record_offset", "topic_id")

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp: int,
        expire_timestamp: int | None = None,
        record_offset: int = -1,
        topic_id: Uuid = Uuid.ZERO,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch  # -1 when the consumer did not send it
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp  # only of commits with a retention of their own
        self.record_offset = record_offset  # the offset of the record this commit was replayed from; -1 when it was not replayed
        self.topic_id = topic_id  # zero when the consumer sent only the topic name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CommittedOffset):
            return NotImplemented
        return self._parts() == other._parts()

    def _parts(self) -> tuple[int, int, str, int, int | None, Uuid]:
        return self.offset, self.leader_epoch, self.metadata, self.commit_timestamp, self.expire_timestamp, self.topic_id

    def __repr__(self) -> str:
        return (
            f"CommittedOffset({self.offset}, leader_epoch={self.leader_epoch}, metadata={self.metadata!r}, "
            f"commit_timestamp={self.commit_timestamp})"
        )


# Validates one partition of a commit (topic, topic id, partition). Raises if it may not be committed.
CommitPartitionValidator = Callable[[str, Uuid, int], None]

# The time from which the retention of an offset counts.
RetentionBase = Callable[[CommittedOffset], int]


class Group(ABC):
    """A group of any kind. The validate methods raise the KafkaError that the client receives."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.held_bytes = GROUP_BYTES + len(group_id)  # of the group and its members, without offsets
        self._account: MemoryAccount | None = None

    def enter_account(self, account: MemoryAccount) -> None:
        """From now on `account` includes the bytes of the group and follows their changes."""
        self.leave_account()
        self._account = account
        account.used += self.held_bytes

    def leave_account(self) -> None:
        if self._account is not None:
            self._account.used -= self.held_bytes
            self._account = None

    def change_held_bytes(self, change: int) -> None:
        self.held_bytes += change
        if self._account is not None:
            self._account.used += change

    @property
    @abstractmethod
    def type(self) -> GroupType: ...

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as clients see it: `Empty`, `Stable`…"""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The protocol type in ListGroups: `consumer`, `connect`…; empty when the group never had a member."""

    @property
    @abstractmethod
    def is_empty(self) -> bool: ...

    @property
    @abstractmethod
    def num_members(self) -> int: ...

    @abstractmethod
    def has_member(self, member_id: str) -> bool: ...

    @abstractmethod
    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation_or_epoch: int, *, transactional: bool, version: int
    ) -> CommitPartitionValidator | None:
        """The check for each partition; None when every partition may be committed."""

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    @abstractmethod
    def validate_offset_delete(self) -> None: ...

    @abstractmethod
    def validate_delete(self) -> None: ...

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool: ...

    @abstractmethod
    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, without those of its offsets."""

    @abstractmethod
    def retention_base(self) -> RetentionBase | None:
        """The start of the retention of offsets; None when no offset expires in this state."""

    def is_in_states(self, states: Collection[str]) -> bool:
        """Whether the state is one of `states`, given in lower case."""
        return self.state_name.lower() in states

    def as_listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=self.protocol_type, group_state=self.state_name, group_type=self.type.value
        )


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` whose leader coordinates the group."""
    id_hash = _cached_hash(group_id) if len(group_id) <= _CACHED_ID_SIZE_MAX else java_hash(group_id)
    return java_abs(id_hash) % partition_count


# Every request of a group needs the hash. Only short ids are cached, so that the cache is bounded in bytes, too.
_cached_hash: Final = lru_cache(maxsize=4096)(java_hash)
_CACHED_ID_SIZE_MAX: Final = 256


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the smallest int has no positive counterpart and becomes 0."""
    return 0 if value == -(1 << 31) else abs(value)
