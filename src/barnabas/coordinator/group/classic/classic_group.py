# Compiled by mypyc: src/compiled.toml lists this module.
"""A group of the classic protocol: its members, its generation, and its five states.

The group answers queries and changes its own fields; `classic_groups` decides when a rebalance starts and what follows. The log holds a
group only as stable or empty. The states in between are lost when the broker fails, and the members join again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from barnabas.coordinator.group.group import CommitPartitionValidator, Group, GroupType, RetentionBase
from barnabas.coordinator.group.group_memory import MEMBER_BYTES, PENDING_MEMBER_BYTES
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.coordinator_records.group_metadata_key import GroupMetadataKey
from barnabas.protocol.coordinator_records.group_metadata_value import GroupMetadataValue, MemberMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.protocol.reader import Reader

GROUP_METADATA: Final = 2  # the type of the record
GROUP_METADATA_VERSION: Final = 3
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
NO_TIMESTAMP: Final = -1

log = logging.getLogger(__name__)

Protocols = dict[str, bytes]  # name to metadata, in the order of the member's preference
RespondJoin = Callable[[JoinGroupResponse], None]
RespondSync = Callable[[SyncGroupResponse], None]


class ClassicGroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = ClassicGroupState.EMPTY
PREPARING: Final = ClassicGroupState.PREPARING_REBALANCE
COMPLETING: Final = ClassicGroupState.COMPLETING_REBALANCE
STABLE: Final = ClassicGroupState.STABLE
DEAD: Final = ClassicGroupState.DEAD

# The states from which each state may be entered.
PREVIOUS_STATES: Final = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({STABLE, PREPARING, COMPLETING, EMPTY, DEAD}),
}


class ClassicGroupMember:
    """A member. While `respond_join` or `respond_sync` is set, its JoinGroup or SyncGroup awaits a response."""

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.counted_bytes = 0  # the bytes that its group has counted for it
        self.respond_join: RespondJoin | None = None
        self.respond_sync: RespondSync | None = None

    @property
    def size(self) -> int:
        """The bytes that the member holds."""
        texts = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id) + len(self.client_host)
        return MEMBER_BYTES + texts + len(self.protocol_type) + protocols_size(self.protocols) + len(self.assignment)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.respond_join is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.respond_sync is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """A member whose JoinGroup or SyncGroup waits cannot send heartbeats. The timer of a new member runs on, else it could wait
        forever."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    def matches(self, protocols: Protocols) -> bool:
        return list(self.protocols.items()) == list(protocols.items())

    def metadata(self, protocol: str) -> bytes:
        if protocol not in self.protocols:
            raise ValueError(f"Member {self.member_id} does not support protocol {protocol}")
        return self.protocols[protocol]

    def vote(self, candidates: set[str]) -> str:
        return next(name for name in self.protocols if name in candidates)

    def describe(self, protocol: str | None) -> DescribedGroupMember:
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


class ClassicGroup(Group):
    def __init__(
        self,
        group_id: str,
        state: ClassicGroupState = EMPTY,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_timestamp: int = NO_TIMESTAMP,
    ) -> None:
        super().__init__(group_id)
        self.state = state
        self.previous_state = DEAD
        self.state_timestamp = state_timestamp
        self.generation_id = generation_id
        self.protocol_type_or_none = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join_members: set[str] = set()  # ids that were handed out and have not joined yet
        self.pending_sync_members: set[str] = set()
        self.num_awaiting_join = 0
        self.new_member_added = False  # during the first rebalance, which then waits for further members
        self.subscribed_topics: frozenset[str] | None = None  # None when the subscriptions are not known
        self._votes: Counter[str] = Counter()

    # -- the interface of Group

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return self.protocol_type_or_none or ""

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def num_members(self) -> int:
        return len(self.members)

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                raise UnknownMemberId
            if existing != member_id:
                raise FencedInstanceId
        if member_id not in self.members:
            raise UnknownMemberId

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation_or_epoch: int, *, transactional: bool, version: int
    ) -> CommitPartitionValidator | None:
        if self.state is DEAD:
            raise CoordinatorNotAvailable
        if generation_or_epoch < 0 and self.state is EMPTY:
            return None  # an admin client, or a consumer that assigns its partitions itself
        if generation_or_epoch >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            if generation_or_epoch != self.generation_id:
                raise IllegalGeneration
        elif not transactional:
            raise UnknownMemberId
        if not transactional and self.state is COMPLETING:
            raise RebalanceInProgress
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_alive()

    def validate_offset_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise NonEmptyGroup

    def validate_delete(self) -> None:
        self._check_alive()
        if self.state is not EMPTY:
            raise NonEmptyGroup

    def _check_alive(self) -> None:
        if self.state is DEAD:
            raise GroupIdNotFound(f"Group {self.group_id} is in dead state.")

    def is_subscribed_to(self, topic: str) -> bool:
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(self.group_id))]

    def retention_base(self) -> RetentionBase | None:
        if self.protocol_type_or_none is None:
            return lambda offset: offset.commit_timestamp
        if self.state is EMPTY:
            since = self.state_timestamp
            return lambda offset: offset.commit_timestamp if since == NO_TIMESTAMP else since
        if self.uses_consumer_protocol and self.subscribed_topics is not None and self.state is STABLE:
            return lambda offset: offset.commit_timestamp
        return None

    # -- members

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type_or_none == CONSUMER_PROTOCOL_TYPE

    @property
    def is_simple(self) -> bool:
        """Whether the group holds only offsets and never had a member."""
        return self.protocol_type_or_none is None and self.is_empty and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.num_awaiting_join and not self.pending_join_members

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREVIOUS_STATES[PREPARING]

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def add(self, member: ClassicGroupMember, respond: RespondJoin | None = None) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, "a static member is replaced, never added twice"
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type_or_none = member.protocol_type
        assert self.protocol_type_or_none == member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_member(member)
        self._votes.update(member.protocols.keys())
        member.respond_join = respond
        if respond is not None:
            self.num_awaiting_join += 1
        self._remove_pending(member.member_id)

    def add_pending(self, member_id: str) -> None:
        """This member id was handed out with MEMBER_ID_REQUIRED; the member has to join with it."""
        if member_id not in self.pending_join_members:
            self.pending_join_members.add(member_id)
            self.change_held_bytes(PENDING_MEMBER_BYTES + len(member_id))

    def _remove_pending(self, member_id: str) -> None:
        if member_id in self.pending_join_members:
            self.pending_join_members.discard(member_id)
            self.change_held_bytes(-PENDING_MEMBER_BYTES - len(member_id))

    def _count_member(self, member: ClassicGroupMember) -> None:
        """Must be called after every change of the bytes a member holds."""
        size = member.size
        self.change_held_bytes(size - member.counted_bytes)
        member.counted_bytes = size

    def _uncount_member(self, member: ClassicGroupMember) -> None:
        self.change_held_bytes(-member.counted_bytes)
        member.counted_bytes = 0

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._uncount_member(member)
            self._votes.subtract(member.protocols.keys())
            if member.is_awaiting_join:
                self.num_awaiting_join -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self._remove_pending(member_id)
        self.pending_sync_members.discard(member_id)

    def update_member(
        self,
        member: ClassicGroupMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: RespondJoin | None,
    ) -> None:
        self._votes.subtract(member.protocols.keys())
        member.protocols = protocols
        self._count_member(member)
        self._votes.update(protocols.keys())
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.num_awaiting_join += (respond is not None) - member.is_awaiting_join
        member.respond_join = respond

    def replace_static_member(self, group_instance_id: str, old_member_id: str, new_member_id: str) -> ClassicGroupMember:
        """The instance under a new member id. A request that still waits under the old member id is fenced."""
        old = self.members.pop(old_member_id)
        self._uncount_member(old)
        fenced = int(ErrorCode.FENCED_INSTANCE_ID)
        self.complete_join(old, JoinGroupResponse(member_id=old_member_id, protocol_name=None, error_code=fenced))
        self.complete_sync(old, SyncGroupResponse(protocol_name=None, error_code=fenced))
        new = ClassicGroupMember(
            new_member_id,
            old.group_instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self.members[new_member_id] = new
        self._count_member(new)
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        self.pending_sync_members.discard(old_member_id)
        return new

    def assign(self, member: ClassicGroupMember, assignment: bytes) -> None:
        member.assignment = assignment
        self._count_member(member)

    def elect_joined_leader(self) -> bool:
        """Whether the leader has joined. A leader that has not is replaced by a member that has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].is_awaiting_join:
            return True
        joined = next((member for member in self.members.values() if member.is_awaiting_join), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    def not_yet_rejoined(self) -> list[ClassicGroupMember]:
        return [member for member in self.members.values() if not member.is_awaiting_join]

    def complete_join(self, member: ClassicGroupMember, response: JoinGroupResponse) -> bool:
        respond = member.respond_join
        if respond is None:
            return False
        member.respond_join = None
        self.num_awaiting_join -= 1
        respond(response)
        return True

    def complete_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        respond = member.respond_sync
        if respond is None:
            return False
        member.respond_sync = None
        respond(response)
        return True

    # -- protocols and generations

    def supports_protocols(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        if self.state is EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        return self.protocol_type_or_none == protocol_type and any(self._votes[name] == len(self.members) for name in protocols)

    def select_protocol(self) -> str:
        """Of the protocols that all members support, the one that most of them prefer."""
        candidates = {name for name, count in self._votes.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        if self.state not in PREVIOUS_STATES[state]:
            raise RuntimeError(f"Group {self.group_id} cannot become {state.value} while it is {self.state.value}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp = now_ms

    def init_next_generation(self, now_ms: int) -> None:
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_sync_members.clear()

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            return frozenset(
                topic for member in self.members.values() for topic in subscribed_topics_of(member.metadata(self.protocol_name))
            )
        except KafkaError as error:
            log.warning("Failed to parse the subscriptions of group %s with protocol %s: %s", self.group_id, self.protocol_name, error)
            return None

    def joined_members(self) -> list[JoinGroupResponseMember]:
        assert self.protocol_name is not None
        return [
            JoinGroupResponseMember(member.member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        ]

    def join_response(self, member_id: str, *, with_members: bool) -> JoinGroupResponse:
        """The JoinGroup response of the current generation for a member."""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type_or_none,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            member_id=member_id,
            members=self.joined_members() if with_members else [],
        )

    def assignments(self) -> dict[str, bytes]:
        return {member.member_id: member.assignment for member in self.members.values()}

    def describe(self) -> DescribedGroup:
        protocol = self.protocol_name if self.state is STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type,
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in self.members.values()],
        )

    # -- the record

    def record(self, assignments: dict[str, bytes]) -> CoordinatorRecord:
        """The group's record for the log, with these assignments."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp,
            members=[self._member_record(member, assignments[member.member_id]) for member in self.members.values()],
        )
        return CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(self.group_id), value, GROUP_METADATA_VERSION)

    def empty_record(self) -> CoordinatorRecord:
        """The first record of a group, written while its first members are still joining."""
        value = GroupMetadataValue("", 0, None, None, self.state_timestamp)
        return CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(self.group_id), value, GROUP_METADATA_VERSION)

    def _member_record(self, member: ClassicGroupMember, assignment: bytes) -> MemberMetadata:
        assert self.protocol_name is not None
        return MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(self.protocol_name),
            assignment=assignment,
        )

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(
            group_id,
            STABLE if value.members else EMPTY,
            value.generation,
            value.protocol_type or None,
            value.protocol,
            value.leader,
            value.current_state_timestamp,
        )
        for member in value.members:
            rebalance_timeout_ms = member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
            group.add(
                ClassicGroupMember(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    rebalance_timeout_ms,
                    member.session_timeout,
                    value.protocol_type,
                    {value.protocol or "": bytes(member.subscription)},
                    bytes(member.assignment),
                )
            )
        group.subscribed_topics = group.compute_subscribed_topics()
        return group


def protocols_size(protocols: Protocols) -> int:
    return sum(len(name) + len(metadata) for name, metadata in protocols.items())


def subscribed_topics_of(subscription: bytes) -> list[str]:
    """The topics in a consumer's subscription. Only version 0 is parsed, because all versions begin with its fields."""
    reader = Reader(bytes(subscription), 0, len(subscription))
    reader.int16()
    return [reader.string(False) for _ in range(reader.array(False, 2))]
