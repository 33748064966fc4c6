"""Streams groups (KIP-1071) with their topology, members and tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.admin.calls import Calls
from barnabas.client.admin.groups.describe_groups import describe_groups
from barnabas.client.admin.groups.group_descriptions import GroupState
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.cluster import Node
from barnabas.protocol.messages import streams_group_describe_response as described
from barnabas.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from barnabas.security.operations import AclOperation, authorized_operations


@dataclass(frozen=True, slots=True)
class StreamsTopicInfo:
    """An internal topic of a topology."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class StreamsGroupSubtopologyDescription:
    """A part of a topology: the topics it reads and writes, and those with its state."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: dict[str, StreamsTopicInfo]
    repartition_source_topics: dict[str, StreamsTopicInfo]


class TaskIds(NamedTuple):
    """Tasks of one subtopology, by partition number."""

    subtopology_id: str
    partitions: tuple[int, ...]


class TaskOffset(NamedTuple):
    """How far a task has read, or how much it has to read."""

    subtopology_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class StreamsGroupMemberAssignment:
    """The tasks of a member: active ones, standby replicas of their state, and those that are warming up."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupMemberDescription:
    """`user_endpoint` is the address at which the member serves interactive queries; None if it serves none."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: dict[str, str]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assignment: StreamsGroupMemberAssignment
    target_assignment: StreamsGroupMemberAssignment
    is_classic: bool


@dataclass(frozen=True, slots=True)
class StreamsGroupDescription:
    """A streams group (KIP-1071): its state, topology, members, epochs and coordinator."""

    group_id: str
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[StreamsGroupSubtopologyDescription, ...]
    members: tuple[StreamsGroupMemberDescription, ...]
    group_state: GroupState
    coordinator: Node
    authorized_operations: frozenset[AclOperation] | None = None


class StreamsGroupCalls:
    """Describes streams groups."""

    _calls: Calls

    async def describe_streams_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, StreamsGroupDescription]:
        """Streams groups with their topology and members."""
        call = self._calls.begin("describe_streams_groups", timeout_ms)

        def request_for(groups: list[str]) -> StreamsGroupDescribeRequest:
            return StreamsGroupDescribeRequest(groups, include_authorized_operations)

        return await describe_groups(self._calls, call, group_ids, request_for, _description)


def _description(group: described.DescribedGroup, coordinator: Node) -> StreamsGroupDescription:
    topology = group.topology
    return StreamsGroupDescription(
        group.group_id,
        group.group_epoch,
        group.assignment_epoch,
        -1 if topology is None else topology.epoch,
        tuple(map(_subtopology, (topology.subtopologies if topology is not None else None) or ())),
        tuple(map(_member, group.members)),
        GroupState.parse(group.group_state),
        coordinator,
        authorized_operations(group.authorized_operations),
    )


def _subtopology(subtopology: described.Subtopology) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        subtopology.subtopology_id,
        tuple(subtopology.source_topics),
        tuple(subtopology.repartition_sink_topics),
        {info.name: _topic(info) for info in subtopology.state_changelog_topics},
        {info.name: _topic(info) for info in subtopology.repartition_source_topics},
    )


def _topic(info: described.TopicInfo) -> StreamsTopicInfo:
    return StreamsTopicInfo(info.name, info.partitions, info.replication_factor, {pair.key: pair.value for pair in info.topic_configs})


def _member(member: described.Member) -> StreamsGroupMemberDescription:
    endpoint = member.user_endpoint
    return StreamsGroupMemberDescription(
        member.member_id,
        member.member_epoch,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        {tag.key: tag.value for tag in member.client_tags},
        tuple(TaskOffset(task.subtopology_id, task.partition, task.offset) for task in member.task_offsets),
        tuple(TaskOffset(task.subtopology_id, task.partition, task.offset) for task in member.task_end_offsets),
        _assignment(member.assignment),
        _assignment(member.target_assignment),
        member.is_classic,
    )


def _assignment(assignment: described.Assignment | None) -> StreamsGroupMemberAssignment:
    if assignment is None:
        return StreamsGroupMemberAssignment()
    return StreamsGroupMemberAssignment(_tasks(assignment.active_tasks), _tasks(assignment.standby_tasks), _tasks(assignment.warmup_tasks))


def _tasks(tasks: Iterable[described.TaskIds]) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(task.subtopology_id, tuple(task.partitions)) for task in tasks)
