"""Groups: list them at all brokers, describe and delete them at their coordinators, and remove members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls
from barnabas.client.admin.groups.group_descriptions import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    Listing,
    MemberAssignment,
    MemberDescription,
)
from barnabas.client.admin.locators import coordinators, settle
from barnabas.client.admin.outcomes import Outcomes, failed
from barnabas.client.cluster import Node
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages import consumer_group_describe_response as modern
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from barnabas.security.operations import authorized_operations
from barnabas.topic_partition import TopicPartition

K = TypeVar("K", bound=Hashable)
Ask = Callable[[Call, int, Sequence[str]], Awaitable[ApiResult[str, ConsumerGroupDescription]]]

_REMOVED: Final = "member was removed by an admin"
_REASON_SIZE_MAX: Final = 255
_NOT_OF_CONSUMER_PROTOCOL: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A static member, by its group.instance.id; or any member of a classic group, by its member id, which Java's class does not take."""

    group_instance_id: str | None = None
    member_id: str = ""


class GroupCalls:
    """Lists, describes and deletes groups."""

    _calls: Calls

    async def list_groups(
        self,
        *,
        group_states: Iterable[GroupState] = (),
        protocol_types: Iterable[str] = (),
        types: Iterable[GroupType] = (),
        timeout_ms: int | None = None,
    ) -> Listing[GroupListing]:
        """The groups of all brokers, filtered by state, type and protocol type. The protocol type `""` is that of simple consumers."""
        call = self._calls.begin("list_groups", timeout_ms)
        request = ListGroupsRequest([str(state) for state in group_states], [str(kind) for kind in types])
        protocols = frozenset(protocol_types)

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[int, list[GroupListing]]:
            response: ListGroupsResponse = await self._calls.send(call, node_id, request)
            if response.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                return ApiResult()
            if response.error_code:
                return ApiResult(failed={node_id: error_for(response.error_code)})
            return ApiResult({node_id: [_listing(group) for group in response.groups if not protocols or group.protocol_type in protocols]})

        by_broker = await self._calls.request_by_node(call, await self._calls.brokers(call), self._calls.locate_brokers, request_from_node)
        unique = {listing.group_id: listing for listings in by_broker.successes.values() for listing in listings}
        return Listing(unique.values(), by_broker.errors.values())

    async def list_consumer_groups(
        self, *, group_states: Iterable[GroupState] = (), types: Iterable[GroupType] = (), timeout_ms: int | None = None
    ) -> Listing[GroupListing]:
        """Consumer groups of both protocols. Deprecated in Java since 4.1 in favour of `list_groups`."""
        listings = await self.list_groups(group_states=group_states, types=types, timeout_ms=timeout_ms)
        return Listing([listing for listing in listings.valid if listing.is_consumer_group], listings.errors)

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, ConsumerGroupDescription]:
        """Consumer groups of either protocol, with their members and assignments."""
        call = self._calls.begin("describe_consumer_groups", timeout_ms)
        classic: set[str] = set()

        async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, ConsumerGroupDescription]:
            newer = [group for group in groups if group not in classic]
            if newer:
                return await self._describe_newer(call, node_id, newer, include_authorized_operations, classic)
            return await self._describe_older(call, node_id, groups, include_authorized_operations)

        return await self._calls.request_by_node(call, group_ids, coordinators(self._calls), _at_once(request_from_node, classic))

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, ClassicGroupDescription]:
        """Groups of the classic protocol, also groups that are not consumer groups (Connect workers, for instance)."""
        call = self._calls.begin("describe_classic_groups", timeout_ms)

        async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, ClassicGroupDescription]:
            request = DescribeGroupsRequest(list(groups), include_authorized_operations)
            response: DescribeGroupsResponse = await self._calls.send(call, node_id, request)
            coordinator = self._calls.directory.node(node_id)
            answer: ApiResult[str, ClassicGroupDescription] = ApiResult()
            for group in response.groups:
                if group.error_code:
                    settle(answer, group.group_id, group.error_code)
                else:
                    answer.done[group.group_id] = _classic(group, coordinator)
            return answer

        return await self._calls.request_by_node(call, group_ids, coordinators(self._calls), request_from_node)

    async def delete_consumer_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes groups without members, with their offsets."""
        return await self._delete_groups("delete_consumer_groups", group_ids, timeout_ms)

    async def delete_share_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes share groups that have no members."""
        return await self._delete_groups("delete_share_groups", group_ids, timeout_ms)

    async def delete_streams_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes streams groups that have no members."""
        return await self._delete_groups("delete_streams_groups", group_ids, timeout_ms)

    async def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, None]:
        """Removes static members from a group without waiting for their session timeouts. Without `members`, removes all members, also
        dynamic ones. The outcomes are by group.instance.id, or by member id for members without one."""
        call = self._calls.begin("remove_members_from_consumer_group", timeout_ms)
        sent_reason = reason[:_REASON_SIZE_MAX] if reason else _REMOVED
        if members is None:
            identities = await self._all_members(group_id, sent_reason, timeout_ms)
        else:
            identities = [MemberIdentity(member.member_id, member.group_instance_id, sent_reason) for member in members]
            if not identities:
                raise IllegalArgument("Invalid empty members has been provided")
        keys = [identity.group_instance_id or identity.member_id for identity in identities]

        async def request_from_node(call: Call, node_id: int, _: object) -> ApiResult[str, dict[str, int]]:
            response: LeaveGroupResponse = await self._calls.send(call, node_id, LeaveGroupRequest(group_id, members=identities))
            answer: ApiResult[str, dict[str, int]] = ApiResult()
            if response.error_code:
                settle(answer, group_id, response.error_code)
            else:
                answer.done[group_id] = {
                    member_response.group_instance_id or member_response.member_id: member_response.error_code
                    for member_response in response.members
                }
            return answer

        codes = await self._calls.request_by_node(call, [group_id], coordinators(self._calls), request_from_node)
        return per_key(keys, codes, group_id)

    async def _delete_groups(self, name: str, group_ids: Iterable[str], timeout_ms: int | None) -> Outcomes[str, None]:
        call = self._calls.begin(name, timeout_ms)

        async def request_from_node(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, None]:
            response: DeleteGroupsResponse = await self._calls.send(call, node_id, DeleteGroupsRequest(list(groups)))
            answer: ApiResult[str, None] = ApiResult()
            for result in response.results:
                if result.error_code:
                    settle(answer, result.group_id, result.error_code)
                else:
                    answer.done[result.group_id] = None
            return answer

        return await self._calls.request_by_node(call, group_ids, coordinators(self._calls), request_from_node)

    async def _all_members(self, group_id: str, reason: str, timeout_ms: int | None) -> list[MemberIdentity]:
        group = (await self.describe_consumer_groups([group_id], timeout_ms=timeout_ms))[group_id]
        return [
            MemberIdentity("", member.group_instance_id, reason)
            if member.group_instance_id is not None
            else MemberIdentity(member.consumer_id, None, reason)
            for member in group.members
        ]

    async def _describe_newer(
        self, call: Call, node_id: int, groups: list[str], with_operations: bool, classic: set[str]
    ) -> ApiResult[str, ConsumerGroupDescription]:
        answer: ApiResult[str, ConsumerGroupDescription] = ApiResult()
        try:
            response: modern.ConsumerGroupDescribeResponse = await self._calls.send(
                call, node_id, ConsumerGroupDescribeRequest(groups, with_operations)
            )
        except UnsupportedVersion:
            classic.update(groups)
            return answer
        coordinator = self._calls.directory.node(node_id)
        for group in response.groups:
            if group.error_code in _NOT_OF_CONSUMER_PROTOCOL:
                classic.add(group.group_id)
            elif group.error_code:
                settle(answer, group.group_id, group.error_code, group.error_message)
            else:
                answer.done[group.group_id] = _modern(group, coordinator)
        return answer

    async def _describe_older(
        self, call: Call, node_id: int, groups: Sequence[str], with_operations: bool
    ) -> ApiResult[str, ConsumerGroupDescription]:
        response: DescribeGroupsResponse = await self._calls.send(call, node_id, DescribeGroupsRequest(list(groups), with_operations))
        coordinator = self._calls.directory.node(node_id)
        answer: ApiResult[str, ConsumerGroupDescription] = ApiResult()
        for group in response.groups:
            if group.error_code:
                settle(answer, group.group_id, group.error_code, group.error_message)
            elif group.protocol_type not in ("", CONSUMER_PROTOCOL_TYPE):
                answer.failed[group.group_id] = IllegalArgument(
                    f"GroupId {group.group_id} is not a consumer group ({group.protocol_type})."
                )
            else:
                answer.done[group.group_id] = _older(group, coordinator)
        return answer


def _at_once(request_from_node: Ask, classic: set[str]) -> Ask:
    """Uses the classic protocol in the same attempt for groups that turned out to be classic groups."""

    async def both(call: Call, node_id: int, groups: Sequence[str]) -> ApiResult[str, ConsumerGroupDescription]:
        answer = await request_from_node(call, node_id, groups)
        classic_groups = [group for group in groups if group in classic and not answer.names(group)]
        if classic_groups:
            older = await request_from_node(call, node_id, classic_groups)
            answer.done.update(older.done)
            answer.failed.update(older.failed)
            answer.moved |= older.moved
        return answer

    return both


def per_key(keys: Iterable[K], codes: Outcomes[str, dict[K, int]], group_id: str) -> Outcomes[K, None]:
    """The outcome of each key of one group. An error of the group is the error of each key."""
    distinct_keys = list(dict.fromkeys(keys))
    try:
        code_by_key = codes[group_id]
    except KafkaError as error:
        return Outcomes(distinct_keys, {}, failed(distinct_keys, error))
    errors = {key: error_for(code_by_key.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)) for key in distinct_keys if code_by_key.get(key, -1)}
    return Outcomes(distinct_keys, {key: None for key in distinct_keys if key not in errors}, errors)


def _listing(group: ListedGroup) -> GroupListing:
    return GroupListing(
        group.group_id,
        GroupType.parse(group.group_type) if group.group_type else None,
        group.protocol_type,
        GroupState.parse(group.group_state) if group.group_state else None,
    )


def _modern(group: modern.DescribedGroup, coordinator: Node) -> ConsumerGroupDescription:
    members = tuple(
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _assigned(member.assignment),
            member.rack_id,
            _assigned(member.target_assignment),
            member.member_epoch,
            None if member.member_type == -1 else member.member_type == 1,
        )
        for member in group.members
    )
    return ConsumerGroupDescription(
        group.group_id,
        False,
        members,
        group.assignor_name,
        GroupType.CONSUMER,
        GroupState.parse(group.group_state),
        coordinator,
        authorized_operations(group.authorized_operations),
        group.group_epoch,
        group.assignment_epoch,
    )


def _assigned(assignment: modern.Assignment | None) -> MemberAssignment:
    topics = [] if assignment is None else assignment.topic_partitions
    return MemberAssignment(frozenset(TopicPartition(topic.topic_name, partition) for topic in topics for partition in topic.partitions))


def _older(group: DescribedGroup, coordinator: Node) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group.group_id,
        not group.protocol_type,
        tuple(_member(member, decode=True) for member in group.members),
        group.protocol_data,
        GroupType.CLASSIC,
        GroupState.parse(group.group_state),
        coordinator,
        authorized_operations(group.authorized_operations),
    )


def _classic(group: DescribedGroup, coordinator: Node) -> ClassicGroupDescription:
    decode = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return ClassicGroupDescription(
        group.group_id,
        group.protocol_type,
        group.protocol_data,
        tuple(_member(member, decode=decode) for member in group.members),
        GroupState.parse(group.group_state),
        coordinator,
        authorized_operations(group.authorized_operations),
    )


def _member(member: DescribedGroupMember, *, decode: bool) -> MemberDescription:
    partitions: frozenset[TopicPartition] = frozenset()
    if decode and member.member_assignment:
        # This import loads all assignors, which few admin clients need.
        from barnabas.client.consumer.assignors.protocol import deserialize_assignment

        partitions = frozenset(deserialize_assignment(bytes(member.member_assignment)).partitions)
    return MemberDescription(member.member_id, member.group_instance_id, member.client_id, member.client_host, MemberAssignment(partitions))
