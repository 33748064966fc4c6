"""One group as its page shows it: state, members and what each reads, and the offsets of its partitions. All types of groups become the
same plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.client.admin.groups.group_descriptions import MemberDescription
from barnabas.client.admin.groups.share_groups import ShareMemberDescription
from barnabas.client.admin.groups.streams_groups import StreamsGroupDescription, StreamsGroupMemberDescription
from barnabas.client.admin.topics.offsets import OffsetSpec
from barnabas.console.cluster.snapshot import ClusterSnapshot, GroupSnapshot, PartitionSnapshot
from barnabas.console.failures import sentence
from barnabas.errors import KafkaError
from barnabas.topic_partition import TopicPartition

CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"
SHARE: Final = "Share"
STREAMS: Final = "Streams"
_INACTIVE: Final = ("Empty", "Dead")
_ENDS_TIMEOUT_MS: Final = 5_000
_CONSUMERS: Final = ("", "consumer")  # the protocols of classic groups whose members are consumers


@dataclass(frozen=True, slots=True)
class MemberDetails:
    """A member of a group; `instance_id` is set for a static one. `epoch` is None in a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition that a member reads, or that has an offset in the group. `start` and `end` are None while they are unknown."""

    partition: TopicPartition
    committed: int | None
    start: int | None
    end: int | None
    member: MemberDetails | None
    is_stuck: bool

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)

    @property
    def is_lost(self) -> bool:
        """Whether records that the group has not read were deleted."""
        return self.committed is not None and self.start is not None and self.committed < self.start


@dataclass(frozen=True, slots=True)
class GroupDetails:
    """`unknown` says in words why members or offsets are missing."""

    group_id: str
    type: str
    protocol: str
    state: str
    assignor: str
    epoch: int | None
    coordinator: int | None
    members: tuple[MemberDetails, ...]
    partitions: tuple[GroupPartition, ...]
    unknown: tuple[str, ...] = ()

    @property
    def is_inactive(self) -> bool:
        """Whether offsets may be changed."""
        return self.state in _INACTIVE

    @property
    def has_offsets(self) -> bool:
        """Whether a group of this kind commits offsets: those of Connect workers and schema registries do not."""
        return self.type != CLASSIC or self.protocol in _CONSUMERS

    @property
    def lag(self) -> int | None:
        lags = [partition.lag for partition in self.partitions if partition.lag is not None]
        return sum(lags) if lags else None

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics in which the group has offsets."""
        return tuple(sorted({row.partition.topic for row in self.partitions if row.committed is not None}))

    @property
    def committed(self) -> dict[TopicPartition, int]:
        return {row.partition: row.committed for row in self.partitions if row.committed is not None}


@dataclass(slots=True)
class _Described:
    state: str
    assignor: str = ""
    epoch: int | None = None
    coordinator: int | None = None
    members: tuple[MemberDetails, ...] = ()


async def read_group(admin: AsyncAdmin, listed: GroupSnapshot, snapshot: ClusterSnapshot) -> GroupDetails:
    """The group with its members and offsets, read now, and the ends of its logs, read after them: an offset is not beyond its end."""
    unknown: list[str] = []
    described = _Described(listed.state)
    committed: dict[TopicPartition, int] = {}
    try:
        described = await _describe(admin, listed)
    except KafkaError as error:
        unknown.append(sentence(error))
    try:
        committed = await committed_offsets(admin, listed)
    except KafkaError as error:
        unknown.append(sentence(error))
    return GroupDetails(
        listed.group_id,
        listed.type,
        listed.protocol,
        described.state,
        described.assignor,
        described.epoch,
        described.coordinator,
        described.members,
        rows_of(
            described.members, committed, snapshot, await _ends(admin, described.members, committed, snapshot), frozenset(listed.stuck)
        ),
        tuple(dict.fromkeys(unknown)),
    )


async def committed_offsets(admin: AsyncAdmin, group: GroupSnapshot) -> dict[TopicPartition, int]:
    """The offsets that a group has committed; of a share group, the first offsets that it has not finished."""
    name = group.group_id
    if group.type == CLASSIC and group.protocol not in _CONSUMERS:
        return {}
    if group.type == SHARE:
        shared = (await admin.list_share_group_offsets({name: None}))[name]
        return {partition: info.start_offset for partition, info in shared.items() if info is not None}
    offsets = (await admin.list_consumer_group_offsets(name))[name]
    return {partition: offset.offset for partition, offset in offsets.items() if offset is not None}


async def _describe(admin: AsyncAdmin, group: GroupSnapshot) -> _Described:
    name = group.group_id
    if group.type == SHARE:
        share = (await admin.describe_share_groups([name]))[name]
        return _Described(str(share.group_state), "", share.group_epoch, share.coordinator.id, tuple(map(_share_member, share.members)))
    if group.type == STREAMS:
        streams = (await admin.describe_streams_groups([name]))[name]
        members = tuple(_streams_member(member, streams) for member in streams.members)
        return _Described(str(streams.group_state), "", streams.group_epoch, streams.coordinator.id, members)
    if group.type == CLASSIC and group.protocol not in _CONSUMERS:
        classic = (await admin.describe_classic_groups([name]))[name]
        return _Described(
            str(classic.group_state), classic.protocol_data, None, classic.coordinator.id, tuple(map(_member, classic.members))
        )
    consumer = (await admin.describe_consumer_groups([name]))[name]
    return _Described(
        str(consumer.group_state),
        consumer.partition_assignor,
        consumer.group_epoch,
        consumer.coordinator.id,
        tuple(map(_member, consumer.members)),
    )


async def _ends(
    admin: AsyncAdmin, members: Iterable[MemberDetails], committed: Iterable[TopicPartition], snapshot: ClusterSnapshot
) -> dict[TopicPartition, int]:
    """The ends of the logs that can be read: those with a leader."""
    partitions = {partition for member in members for partition in member.partitions} | set(committed)
    led = [partition for partition in sorted(partitions) if (known := _known(snapshot, partition)) is not None and known.leader is not None]
    if not led:
        return {}
    try:
        outcomes = await admin.list_offsets(dict.fromkeys(led, OffsetSpec.latest()), timeout_ms=_ENDS_TIMEOUT_MS)
    except KafkaError:
        return {}  # those of the snapshot are shown
    return {partition: info.offset for partition, info in outcomes.successes.items()}


def _known(snapshot: ClusterSnapshot, partition: TopicPartition) -> PartitionSnapshot | None:
    topic = snapshot.topics.get(partition.topic)
    return next((one for one in topic.partitions if one.partition == partition.partition), None) if topic is not None else None


def rows_of(
    members: Iterable[MemberDetails],
    committed: Mapping[TopicPartition, int],
    snapshot: ClusterSnapshot,
    ends: Mapping[TopicPartition, int],
    stuck: frozenset[TopicPartition],
) -> tuple[GroupPartition, ...]:
    """A row for each partition that is assigned or has an offset."""
    readers = {partition: member for member in members for partition in member.partitions}
    rows: list[GroupPartition] = []
    for partition in sorted(readers.keys() | committed.keys()):
        known = _known(snapshot, partition)
        rows.append(
            GroupPartition(
                partition,
                committed.get(partition),
                known.start_offset if known is not None else None,
                ends.get(partition, known.end_offset if known is not None else None),
                readers.get(partition),
                partition in stuck,
            )
        )
    return tuple(rows)


def _member(member: MemberDescription) -> MemberDetails:
    partitions = tuple(sorted(member.assignment.topic_partitions))
    return MemberDetails(member.consumer_id, member.group_instance_id, member.client_id, member.host, member.member_epoch, partitions)


def _share_member(member: ShareMemberDescription) -> MemberDetails:
    partitions = tuple(sorted(member.assignment.topic_partitions))
    return MemberDetails(member.consumer_id, None, member.client_id, member.host, member.member_epoch, partitions)


def _streams_member(member: StreamsGroupMemberDescription, group: StreamsGroupDescription) -> MemberDetails:
    """The partitions of a member are those that its active tasks read."""
    topics = {part.subtopology_id: (*part.source_topics, *part.repartition_source_topics) for part in group.subtopologies}
    partitions = {
        TopicPartition(topic, number)
        for task in member.assignment.active_tasks
        for topic in topics.get(task.subtopology_id, ())
        for number in task.partitions
    }
    return MemberDetails(
        member.member_id, member.instance_id, member.client_id, member.client_host, member.member_epoch, tuple(sorted(partitions))
    )
