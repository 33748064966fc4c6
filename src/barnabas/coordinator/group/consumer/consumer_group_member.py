"""One member of a consumer group, as its records describe it.

An immutable value: a heartbeat creates the next one, and the difference determines which records are written. It must not hold anything
that is missing from its two records (metadata and current assignment).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from barnabas.coordinator.group.group_memory import MEMBER_BYTES
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue
from barnabas.protocol.coordinator_records.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.uuid import Uuid

_NAME_BYTES: Final = 100  # of a topic name in a set
Assignment = Mapping[Uuid, frozenset[int]]

NO_PARTITIONS: Final[Assignment] = {}
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2  # a static member that will rejoin: its partitions stay assigned to it


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # the member has to revoke partitions before it may move to the next epoch
    UNRELEASED_PARTITIONS = 2  # the member waits for partitions that other members have not revoked yet
    UNKNOWN = 127  # written by a newer release

    @classmethod
    def of(cls, value: int) -> MemberState:
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned_partitions: Assignment = field(default_factory=dict)
    partitions_pending_revocation: Assignment = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None  # only of a member that uses the classic protocol

    @property
    def size(self) -> int:
        """The bytes it holds, without assignments: together the members own at most all existing partitions."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.client_host, self.server_assignor)
        size = MEMBER_BYTES + sum(len(text) for text in texts if text) + len(self.subscribed_topic_regex or "")
        size += sum(_NAME_BYTES + len(name) for name in self.subscribed_topic_names)
        if self.classic is not None:
            size += sum(len(protocol.name) + len(protocol.metadata) for protocol in self.classic.supported_protocols)
        return size

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def classic_session_timeout_ms(self) -> int:
        assert self.classic is not None
        return self.classic.session_timeout_ms

    @property
    def classic_protocol_name(self) -> str:
        """The member's preferred protocol. The join response names it as the chosen one: there is no vote in a consumer group."""
        assert self.classic is not None
        return self.classic.supported_protocols[0].name

    def is_reconciled_to(self, target_assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_assignment_epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_current_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned_partitions={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
            partitions_pending_revocation={topic.topic_id: frozenset(topic.partitions) for topic in value.partitions_pending_revocation},
        )

    def without_assignment(self) -> ConsumerGroupMember:
        """The member after a tombstone of its current assignment: it is leaving the group."""
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned_partitions=NO_PARTITIONS,
            partitions_pending_revocation=NO_PARTITIONS,
        )
