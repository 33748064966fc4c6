# Compiled by mypyc: src/compiled.toml lists this module.
"""What all kinds of group have in common, and to which partition of `__consumer_offsets` a group belongs.

Offsets, listing and deletion see a group only through this: whether classic or consumer, it says who may commit, what it is subscribed to
and how it is removed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from enum import Enum
from functools import lru_cache
from typing import Final

from barnabas.coordinator.group.group_memory import GROUP_BYTES
from barnabas.coordinator.memory_account import MemoryAccount
from barnabas.coordinator.result import Record
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
        """The type of this name in any case; UNKNOWN when there is none."""
        return next((kind for kind in cls if kind.value == name.lower()), cls.UNKNOWN)


class Offset:
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
        self.leader_epoch = leader_epoch  # -1 when the consumer did not say
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp  # only of commits that asked for a retention of their own
        self.record_offset = record_offset  # where in the log this commit was read from; -1 when it was not
        self.topic_id = topic_id  # zero when the consumer named the topic only

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Offset):
            return NotImplemented
        return self._parts() == other._parts()

    def _parts(self) -> tuple[int, int, str, int, int | None, Uuid]:
        return self.offset, self.leader_epoch, self.metadata, self.commit_timestamp, self.expire_timestamp, self.topic_id

    def __repr__(self) -> str:
        return (
            f"Offset({self.offset}, leader_epoch={self.leader_epoch}, metadata={self.metadata!r}, commit_timestamp={self.commit_timestamp})"
        )


# Says of one partition of a commit (topic, topic id, partition) whether it may be committed, by raising or not.
CommitPartitionValidator = Callable[[str, Uuid, int], None]

# From which moment on the retention of an offset counts.
RetentionBase = Callable[[Offset], int]


class Group(ABC):
    """A group of any kind. The validate methods raise the KafkaError the client hears, and return nothing when all is well."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.held_bytes = GROUP_BYTES + len(group_id)  # of its members and itself, without offsets
        self._account: MemoryAccount | None = None

    def enter_account(self, account: MemoryAccount) -> None:
        """From here on the bytes of the group count in the account, also those that it grows and shrinks by."""
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
        """As clients see it: `Empty`, `Stable`…"""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """What ListGroups says: `consumer`, `connect`…; empty when the group never had a member."""

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
        """None when every partition may be committed."""

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    @abstractmethod
    def validate_offset_delete(self) -> None: ...

    @abstractmethod
    def validate_delete(self) -> None: ...

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool: ...

    @abstractmethod
    def tombstones(self) -> list[Record]:
        """The records that remove the group, its offsets aside."""

    @abstractmethod
    def retention_base(self) -> RetentionBase | None:
        """From when on offsets age; None when in this state none expire."""

    def is_in_states(self, states: Collection[str]) -> bool:
        """Whether the state is one of these, given in lower case."""
        return self.state_name.lower() in states

    def as_listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=self.protocol_type, group_state=self.state_name, group_type=self.type.value
        )


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` whose leader coordinates the group."""
    found = _known_hash(group_id) if len(group_id) <= _KEPT_ID_SIZE_MAX else java_hash(group_id)
    return java_abs(found) % partition_count


# Every request of a group asks for it. Only short ids are kept: what is kept must be bounded in bytes, too.
_known_hash: Final = lru_cache(maxsize=4096)(java_hash)
_KEPT_ID_SIZE_MAX: Final = 256


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the smallest int, which has no positive counterpart, becomes 0."""
    return 0 if value == -(1 << 31) else abs(value)
