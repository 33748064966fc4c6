"""Share groups (KIP-932): describe them, and list, alter and delete their start offsets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.groups.describe_groups import describe_groups
from barnabas.client.admin.groups.group_descriptions import GroupState, MemberAssignment
from barnabas.client.admin.keys import distinct
from barnabas.client.admin.locators import coordinators, settle
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.cluster import Node
from barnabas.client.errors import UnknownServerError, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.messages import alter_share_group_offsets_request as altering
from barnabas.protocol.messages import describe_share_group_offsets_request as listing
from barnabas.protocol.messages import share_group_describe_response as described
from barnabas.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from barnabas.protocol.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from barnabas.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from barnabas.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from barnabas.security.operations import AclOperation, authorized_operations
from barnabas.topic_partition import TopicPartition

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ShareMemberDescription:
    """A member of a share group, and the partitions it reads."""

    consumer_id: str
    rack_id: str | None
    client_id: str
    host: str
    assignment: MemberAssignment
    member_epoch: int


@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    """A share group (KIP-932): its state, members, epochs and coordinator."""

    group_id: str
    members: tuple[ShareMemberDescription, ...]
    group_state: GroupState
    coordinator: Node
    group_epoch: int
    target_assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(frozen=True, slots=True)
class SharePartitionOffsetInfo:
    """The start offset of a share partition; the lag is None where the broker does not return it."""

    start_offset: int
    leader_epoch: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class ListShareGroupOffsetsSpec:
    """The partitions to list; None for all partitions with an offset in the group."""

    topic_partitions: Sequence[TopicPartition] | None = None


ShareGroupOffsets = dict[TopicPartition, SharePartitionOffsetInfo | None]


class ShareGroupCalls:
    """Describes share groups and alters their offsets."""

    _calls: Calls

    async def describe_share_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, ShareGroupDescription]:
        """Share groups with their members."""
        call = self._calls.begin("describe_share_groups", timeout_ms)

        def request_for(groups: list[str]) -> ShareGroupDescribeRequest:
            return ShareGroupDescribeRequest(groups, include_authorized_operations)

        return await describe_groups(self._calls, call, group_ids, request_for, _description)

    async def list_share_group_offsets(
        self,
        group_specs: Mapping[str, ListShareGroupOffsetsSpec | Iterable[TopicPartition] | None],
        *,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, ShareGroupOffsets]:
        """The start offsets of share groups, by group and partition; None for a requested partition without an offset."""
        call = self._calls.begin("list_share_group_offsets", timeout_ms)
        partitions_by_group = {group: _partitions(spec) for group, spec in group_specs.items()}

        async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, ShareGroupOffsets]:
            request = listing.DescribeShareGroupOffsetsRequest([_listed(group, partitions_by_group[group]) for group in groups])
            response: DescribeShareGroupOffsetsResponse = await self._calls.send(call, node_id, request)
            answer: ApiResult[str, ShareGroupOffsets] = ApiResult()
            for group in response.groups:
                if group.error_code:
                    settle(answer, group.group_id, group.error_code, group.error_message)
                    continue
                answer.done[group.group_id] = {
                    TopicPartition(topic.topic_name, row.partition_index): _info(row.start_offset, row.leader_epoch, row.lag)
                    for topic in group.topics
                    for row in topic.partitions
                    if not row.error_code
                }
            return answer

        return await self._calls.request_by_node(call, partitions_by_group, coordinators(self._calls), request_from_node)

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, None]:
        """Sets the start offsets of a share group without members."""
        call = self._calls.begin("alter_share_group_offsets", timeout_ms)
        topics: dict[str, list[altering.AlterShareGroupOffsetsRequestPartition]] = {}
        for partition, offset in offsets.items():
            row = altering.AlterShareGroupOffsetsRequestPartition(partition.partition, offset)
            topics.setdefault(partition.topic, []).append(row)
        request = altering.AlterShareGroupOffsetsRequest(
            group_id, [altering.AlterShareGroupOffsetsRequestTopic(name, rows) for name, rows in topics.items()]
        )

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[str, dict[TopicPartition, KafkaError | None]]:
            response: AlterShareGroupOffsetsResponse = await self._calls.send(call, node_id, request)
            answer: ApiResult[str, dict[TopicPartition, KafkaError | None]] = ApiResult()
            if response.error_code:
                settle(answer, group_id, response.error_code, response.error_message)
            else:
                answer.done[group_id] = {
                    TopicPartition(topic.topic_name, row.partition_index): error_for(row.error_code, row.error_message)
                    if row.error_code
                    else None
                    for topic in response.responses
                    for row in topic.partitions
                }
            return answer

        errors = await self._calls.request_by_node(call, [group_id], coordinators(self._calls), request_from_node)
        return _outcomes_per_key(list(offsets), errors, group_id)

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, None]:
        """Deletes the offsets of topics in a share group without members."""
        call = self._calls.begin("delete_share_group_offsets", timeout_ms)
        topic_names = distinct(topics)
        request = DeleteShareGroupOffsetsRequest(group_id, [DeleteShareGroupOffsetsRequestTopic(topic) for topic in topic_names])

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[str, dict[str, KafkaError | None]]:
            response: DeleteShareGroupOffsetsResponse = await self._calls.send(call, node_id, request)
            answer: ApiResult[str, dict[str, KafkaError | None]] = ApiResult()
            if response.error_code:
                settle(answer, group_id, response.error_code, response.error_message)
            else:
                answer.done[group_id] = {
                    topic.topic_name: error_for(topic.error_code, topic.error_message) if topic.error_code else None
                    for topic in response.responses
                }
            return answer

        return _outcomes_per_key(
            topic_names, await self._calls.request_by_node(call, [group_id], coordinators(self._calls), request_from_node), group_id
        )


def _description(group: described.DescribedGroup, coordinator: Node) -> ShareGroupDescription:
    members = tuple(
        ShareMemberDescription(
            member.member_id, member.rack_id, member.client_id, member.client_host, _assigned(member.assignment), member.member_epoch
        )
        for member in group.members
    )
    return ShareGroupDescription(
        group.group_id,
        members,
        GroupState.parse(group.group_state),
        coordinator,
        group.group_epoch,
        group.assignment_epoch,
        authorized_operations(group.authorized_operations),
    )


def _assigned(assignment: described.Assignment | None) -> MemberAssignment:
    topics = [] if assignment is None else assignment.topic_partitions
    return MemberAssignment(frozenset(TopicPartition(topic.topic_name, number) for topic in topics for number in topic.partitions))


def _partitions(spec: ListShareGroupOffsetsSpec | Iterable[TopicPartition] | None) -> list[TopicPartition] | None:
    if isinstance(spec, ListShareGroupOffsetsSpec):
        spec = spec.topic_partitions
    return None if spec is None else list(spec)


def _listed(group_id: str, partitions: list[TopicPartition] | None) -> listing.DescribeShareGroupOffsetsRequestGroup:
    if partitions is None:
        return listing.DescribeShareGroupOffsetsRequestGroup(group_id, None)
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    rows = [listing.DescribeShareGroupOffsetsRequestTopic(name, numbers) for name, numbers in topics.items()]
    return listing.DescribeShareGroupOffsetsRequestGroup(group_id, rows)


def _info(start_offset: int, leader_epoch: int, lag: int) -> SharePartitionOffsetInfo | None:
    if start_offset < 0:
        return None
    return SharePartitionOffsetInfo(start_offset, None if leader_epoch < 0 else leader_epoch, None if lag < 0 else lag)


def _outcomes_per_key(keys: list[K], errors_by_group: Outcomes[str, dict[K, KafkaError | None]], group_id: str) -> Outcomes[K, None]:
    """The outcome of each key of one group. An error of the group is the error of each key."""
    try:
        errors = errors_by_group[group_id]
    except KafkaError as error:
        return Outcomes(keys, {}, failed(keys, error))
    missing = UnknownServerError("The response left it out")
    failures = {key: key_error for key in keys if (key_error := errors.get(key, missing)) is not None}
    return Outcomes(keys, {key: None for key in keys if key not in failures}, failures)
