# Compiled by mypyc: src/compiled.toml lists this module.
"""The groups and offsets of one partition of `__consumer_offsets`.

Passes a request to the classic or the consumer groups and a record to the class that replays it. Implements what concerns all kinds of
group: listing, describing, deleting and expiring. `consumer` handles the groups of the consumer protocol; the owner of the shard sets it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from barnabas.coordinator.faults import truncated
from barnabas.coordinator.group.classic.classic_group import (
    DEAD,
    GROUP_METADATA,
    ClassicGroup,
    RespondJoin,
    RespondSync,
)
from barnabas.coordinator.group.classic.classic_groups import Caller, ClassicGroups, normalized_members
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.group import Group, GroupType
from barnabas.coordinator.group.group_memory import GroupMemory
from barnabas.coordinator.group.group_table import GroupTable
from barnabas.coordinator.group.offsets import OFFSET_COMMIT, OffsetMetadataManager
from barnabas.coordinator.metrics import CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, CoordinatorTimer
from barnabas.errors import GroupIdNotFound, KafkaError, UnknownMemberId
from barnabas.protocol.coordinator_records.group_metadata_key import GroupMetadataKey
from barnabas.protocol.coordinator_records.group_metadata_value import GroupMetadataValue
from barnabas.protocol.coordinator_records.legacy_offset_commit_key import LegacyOffsetCommitKey
from barnabas.protocol.coordinator_records.legacy_offset_commit_value import LegacyOffsetCommitValue
from barnabas.protocol.coordinator_records.offset_commit_key import OffsetCommitKey
from barnabas.protocol.coordinator_records.offset_commit_value import OffsetCommitValue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult
from barnabas.protocol.messages.describe_groups_response import DescribedGroup
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.list_groups_response import ListedGroup
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.topic_partition import TopicPartition

LEGACY_OFFSET_COMMIT: Final = 0
_EXPIRATION_KEY: Final = "expire-group-metadata"

log = logging.getLogger(__name__)


class ConsumerPart(Protocol):
    """Groups of the consumer protocol, and the requests of their members that still use the classic protocol during a migration."""

    def consumer_heartbeat(
        self, caller: Caller, request: ConsumerGroupHeartbeatRequest, /
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]: ...

    def describe(self, group_ids: Iterable[str], /) -> list[DescribedConsumerGroup]: ...

    def join(self, group: Group, caller: Caller, request: JoinGroupRequest, respond: RespondJoin, /) -> CoordinatorResult[None]: ...

    def sync(self, group: Group, request: SyncGroupRequest, respond: RespondSync, /) -> CoordinatorResult[None]: ...

    def heartbeat(self, group: Group, request: HeartbeatRequest, /) -> CoordinatorResult[HeartbeatResponse]: ...

    def leave(self, group: Group, request: LeaveGroupRequest, version: int, /) -> CoordinatorResult[LeaveGroupResponse]: ...

    def replay(self, record: CoordinatorRecord, /) -> None: ...

    def on_loaded(self, group: Group, /) -> None: ...

    def on_unloaded(self, group: Group, /) -> None: ...

    def on_topics_changed(self, changed: Iterable[str], /, *, created: bool) -> None: ...


class GroupCoordinatorShard:
    """`memory` is shared by all shards of a broker; a shard made without it has accounts of its own."""

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        clock: Clock,
        timer: CoordinatorTimer,
        metrics: CoordinatorMetrics,
        new_id: Callable[[], str],
        memory: GroupMemory | None = None,
        make_consumer: Callable[[GroupTable, ClassicGroups], ConsumerPart] | None = None,
    ) -> None:
        self.memory = memory = config.memory() if memory is None else memory
        self.groups = GroupTable(memory.members)
        self.classic = ClassicGroups(self.groups, config, clock, timer, metrics, new_id, memory)
        self.offsets = OffsetMetadataManager(self.groups, self.classic, config, clock, metrics, memory)
        self.consumer: ConsumerPart | None = None if make_consumer is None else make_consumer(self.groups, self.classic)
        self._config = config
        self._clock = clock
        self._timer = timer

    # -- the classic protocol, for groups of every kind

    def join(self, caller: Caller, request: JoinGroupRequest, respond: RespondJoin) -> CoordinatorResult[None]:
        group = self.groups.get(request.group_id)
        if group is None or isinstance(group, ClassicGroup) or (group.type is GroupType.CONSUMER and group.is_empty):
            return self.classic.join(caller, request, respond)
        if group.type is GroupType.CONSUMER and self.consumer is not None:
            return self.consumer.join(group, caller, request, respond)
        respond(JoinGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
        return CoordinatorResult()

    def sync(self, request: SyncGroupRequest, respond: RespondSync) -> CoordinatorResult[None]:
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup) and not group.is_empty:
            return self.classic.sync(group, request, respond)
        if group is not None and group.type is GroupType.CONSUMER and not group.is_empty and self.consumer is not None:
            return self.consumer.sync(group, request, respond)
        respond(SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        return CoordinatorResult()

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.heartbeat(group, request)
        if group is not None and group.type is GroupType.CONSUMER and self.consumer is not None:
            return self.consumer.heartbeat(group, request)
        raise UnknownMemberId(f"Group {request.group_id} not found.")

    def leave(self, request: LeaveGroupRequest, version: int) -> CoordinatorResult[LeaveGroupResponse]:
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.leave(group, normalized_members(request, version))
        if group is not None and group.type is GroupType.CONSUMER and self.consumer is not None:
            return self.consumer.leave(group, request, version)
        raise UnknownMemberId(f"Group {request.group_id} not found.")

    # -- all kinds of group

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """The groups in one of these states and of one of these types, ignoring case. An empty filter matches every group."""
        lower_states = {state.strip().lower() for state in states}
        group_types = {GroupType.parse(name) for name in types}
        return [
            group.as_listed()
            for group in self.groups.values()
            if (not lower_states or group.is_in_states(lower_states)) and (not group_types or group.type in group_types)
        ]

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """A classic group. This API reports any other group as dead; from version 6 on that is an error."""
        group = self.classic.find(group_id)
        if group is not None:
            return group.describe()
        other = self.groups.get(group_id)
        dead = DescribedGroup(group_id=group_id, group_state=DEAD.value)
        if version >= 6:
            dead.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            dead.error_message = truncated(f"Group {group_id} not found." if other is None else f"Group {group_id} is not a classic group.")
        return dead

    def delete_groups(self, group_ids: Collection[str]) -> CoordinatorResult[list[DeletableGroupResult]]:
        records: list[CoordinatorRecord] = []
        results: list[DeletableGroupResult] = []
        for group_id in group_ids:
            try:
                records += self._deletion(group_id)
                results.append(DeletableGroupResult(group_id))
            except KafkaError as error:
                results.append(DeletableGroupResult(group_id, error.code))
        return CoordinatorResult(records, results)

    def _deletion(self, group_id: str) -> list[CoordinatorRecord]:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        group.validate_delete()
        return [*self.offsets.tombstones_of_group(group_id), *group.tombstones()]

    def partitions_deleted(self, partitions: Collection[TopicPartition]) -> CoordinatorResult[bool]:
        return CoordinatorResult(self.offsets.tombstones_of_partitions(partitions), True, atomic=False)

    def expire(self) -> CoordinatorResult[None]:
        """Tombstones of offsets past their retention, and of empty groups that have none left."""
        started_ms = self._clock.monotonic_ms()
        records: list[CoordinatorRecord] = []
        of_groups = 0
        for group in self.groups.values():
            if self.offsets.expire(group, records) and group.is_empty:
                tombstones = group.tombstones()
                of_groups += len(tombstones)
                records += tombstones
        if len(records) > of_groups:
            taken_ms = self._clock.monotonic_ms() - started_ms
            log.info("Removed %d expired offsets in %d milliseconds.", len(records) - of_groups, taken_ms)
        self._schedule_expiration()
        return CoordinatorResult(records, atomic=False)

    def _schedule_expiration(self) -> None:
        self._timer.schedule(_EXPIRATION_KEY, self._config.offsets_retention_check_interval_ms, self.expire)

    # -- replay

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        key, value = record.key, record.value
        if record.type == OFFSET_COMMIT:
            assert isinstance(key, OffsetCommitKey) and (value is None or isinstance(value, OffsetCommitValue))
            self.offsets.replay(offset, producer_id, key, value)
        elif record.type == LEGACY_OFFSET_COMMIT:
            self._replay_legacy_offset(offset, producer_id, record)
        elif record.type == GROUP_METADATA:
            assert isinstance(key, GroupMetadataKey) and (value is None or isinstance(value, GroupMetadataValue))
            self._replay_classic_group(key.group, value)
        elif self.consumer is not None:
            self.consumer.replay(record)

    def _replay_legacy_offset(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        key, value = record.key, record.value
        assert isinstance(key, LegacyOffsetCommitKey) and (value is None or isinstance(value, LegacyOffsetCommitValue))
        latest = None if value is None else OffsetCommitValue(value.offset, -1, value.metadata, value.commit_timestamp)
        self.offsets.replay(offset, producer_id, OffsetCommitKey(key.group, key.topic, key.partition), latest)

    def _replay_classic_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is not None:
            self.groups[group_id] = ClassicGroup.from_record(group_id, value)
            return
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            self.classic.cancel_timers(group)
            del self.groups[group_id]

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.offsets.replay_end_transaction(producer_id, committed=committed)

    def on_loaded(self) -> None:
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                self.classic.on_loaded(group)
            elif self.consumer is not None:
                self.consumer.on_loaded(group)
        self._schedule_expiration()
        log.info("Loaded %d groups and %d offsets", len(self.groups), self.offsets.committed.count)

    def on_unloaded(self) -> None:
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                self.classic.on_unloaded(group)
            elif self.consumer is not None:
                self.consumer.on_unloaded(group)
        log.info("Finished unloading: removed %d cached offsets and %d cached groups.", self.offsets.committed.count, len(self.groups))
        self.groups.leave_account()
        self.offsets.leave_account()
