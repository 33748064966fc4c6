"""Listings and descriptions of groups, with their types, states and members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from barnabas.client.cluster import Node
from barnabas.errors import KafkaError
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")
CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class GroupType(Enum):
    """The type of a group. The values are the names on the wire and in tools."""

    UNKNOWN = "Unknown"
    CONSUMER = "Consumer"
    CLASSIC = "Classic"
    SHARE = "Share"
    STREAMS = "Streams"

    @classmethod
    def parse(cls, text: str) -> GroupType:
        """The type of a name in any case; UNKNOWN for a type that this client does not know."""
        return next((kind for kind in cls if kind.value.lower() == text.lower()), cls.UNKNOWN)

    def __str__(self) -> str:
        return self.value


class GroupState(Enum):
    """The states of all types of groups; the values are the names on the wire and in tools."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"

    @classmethod
    def parse(cls, text: str) -> GroupState:
        """The state of a name in any case; UNKNOWN for a name that this client does not know."""
        return next((state for state in cls if state.value.lower() == text.lower()), cls.UNKNOWN)

    @classmethod
    def states_for_type(cls, kind: GroupType) -> frozenset[GroupState]:
        """The states of a group of this type; raises ValueError for UNKNOWN."""
        return _STATES[kind] if kind in _STATES else _no_states(kind)

    def __str__(self) -> str:
        return self.value


def _no_states(kind: GroupType) -> frozenset[GroupState]:
    raise ValueError(f"Group type not known: {kind}")


_STATES: Final = {
    GroupType.CLASSIC: frozenset(
        {GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE, GroupState.DEAD, GroupState.EMPTY}
    ),
    GroupType.CONSUMER: frozenset(
        {
            GroupState.PREPARING_REBALANCE,
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
            GroupState.DEAD,
            GroupState.EMPTY,
            GroupState.ASSIGNING,
            GroupState.RECONCILING,
        }
    ),
    GroupType.SHARE: frozenset({GroupState.STABLE, GroupState.DEAD, GroupState.EMPTY}),
    GroupType.STREAMS: frozenset(
        {GroupState.STABLE, GroupState.DEAD, GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.NOT_READY}
    ),
}


class Listing(Generic[T]):
    """The combined lists of several brokers. Some brokers may have failed: `all()` and iteration raise the first of `errors`; `valid`
    ignores them."""

    def __init__(self, valid: Iterable[T], errors: Iterable[KafkaError]) -> None:
        self.valid = list(valid)
        self.errors = list(errors)

    def all(self) -> list[T]:
        """All groups. Raises the first error, if a broker could not be asked."""
        for error in self.errors:
            raise error
        return list(self.valid)

    def __iter__(self) -> Iterator[T]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __repr__(self) -> str:
        return f"Listing(valid={self.valid!r}, errors={self.errors!r})"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`type` and `group_state` are None from brokers that do not return them. `protocol` is `consumer`, `connect`, `share`, … or ""."""

    group_id: str
    type: GroupType | None
    protocol: str
    group_state: GroupState | None

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether the group only stores offsets and its consumers assign partitions to themselves."""
        return self.type is GroupType.CLASSIC and not self.protocol

    @property
    def is_consumer_group(self) -> bool:
        """Whether its members are consumers, of either protocol."""
        return self.type is GroupType.CONSUMER or self.protocol in ("", CONSUMER_PROTOCOL_TYPE)


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The partitions that a member of a group reads."""

    topic_partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a consumer group. The last three fields are set only for members of KIP-848 groups; `upgraded` is False for a member that
    still uses the classic protocol."""

    consumer_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: MemberAssignment
    rack_id: str | None = None
    target_assignment: MemberAssignment | None = None
    member_epoch: int | None = None
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """A consumer group of either protocol (`type`). The epochs are set for KIP-848 groups."""

    group_id: str
    is_simple_consumer_group: bool
    members: tuple[MemberDescription, ...]
    partition_assignor: str
    type: GroupType
    group_state: GroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ClassicGroupDescription:
    """A group of the classic protocol, of any protocol type. Assignments are decoded for consumer groups only."""

    group_id: str
    protocol: str
    protocol_data: str
    members: tuple[MemberDescription, ...]
    group_state: GroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether the group only commits offsets: its consumers assign partitions themselves."""
        return not self.protocol
