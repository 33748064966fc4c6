"""Groups: listed by all brokers, described and deleted by their coordinators, freed of members that are gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.client.admin.access.operations import authorized_operations
from barnabas.client.admin.call import Answer, Call
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
from barnabas.topic_partition import TopicPartition

K = TypeVar("K", bound=Hashable)
Ask = Callable[[Call, int, Sequence[str]], Awaitable[Answer[str, ConsumerGroupDescription]]]

_REMOVED: Final = "member was removed by an admin"
_REASON_SIZE_MAX: Final = 255
_NOT_OF_CONSUMER_PROTOCOL: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A static member, by its group.instance.id."""

    group_instance_id: str


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
        """All groups of all types, or those in some states, of some types, of some protocols (`""` is that of simple consumers)."""
        call = self._calls.begin("list_groups", timeout_ms)
        request = ListGroupsRequest([str(state) for state in group_states], [str(kind) for kind in types])
        protocols = frozenset(protocol_types)

        async def ask(call: Call, node_id: int, _: object) -> Answer[int, list[GroupListing]]:
            response: ListGroupsResponse = await self._calls.send(call, node_id, request)
            if response.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                return Answer()
            if response.error_code:
                return Answer(failed={node_id: error_for(response.error_code)})
            return Answer({node_id: [_listing(group) for group in response.groups if not protocols or group.protocol_type in protocols]})

        by_broker = await self._calls.ask_each(call, await self._calls.brokers(call), self._calls.each_at_itself, ask)
        unique = {listing.group_id: listing for listings in by_broker.successes.values() for listing in listings}
        return Listing(unique.values(), by_broker.errors.values())

    async def list_consumer_groups(
        self, *, group_states: Iterable[GroupState] = (), types: Iterable[GroupType] = (), timeout_ms: int | None = None
    ) -> Listing[GroupListing]:
        """The groups of consumers alone, of both protocols. Deprecated in Java since 4.1 in favour of `list_groups`."""
        found = await self.list_groups(group_states=group_states, types=types, timeout_ms=timeout_ms)
        return Listing([listing for listing in found.valid if listing.is_consumer_group], found.errors)

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, ConsumerGroupDescription]:
        """Groups of consumers, of either protocol, with their members and what is assigned to them."""
        call = self._calls.begin("describe_consumer_groups", timeout_ms)
        classic: set[str] = set()

        async def ask(call: Call, node_id: int, groups: Sequence[str]) -> Answer[str, ConsumerGroupDescription]:
            newer = [group for group in groups if group not in classic]
            if newer:
                return await self._describe_newer(call, node_id, newer, include_authorized_operations, classic)
            return await self._describe_older(call, node_id, groups, include_authorized_operations)

        return await self._calls.ask_each(call, group_ids, coordinators(self._calls), _at_once(ask, classic))

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Outcomes[str, ClassicGroupDescription]:
        """Groups of the classic protocol, also those that are not of consumers (Connect's workers, for instance)."""
        call = self._calls.begin("describe_classic_groups", timeout_ms)

        async def ask(call: Call, node_id: int, groups: Sequence[str]) -> Answer[str, ClassicGroupDescription]:
            request = DescribeGroupsRequest(list(groups), include_authorized_operations)
            response: DescribeGroupsResponse = await self._calls.send(call, node_id, request)
            coordinator = self._calls.directory.node(node_id)
            answer: Answer[str, ClassicGroupDescription] = Answer()
            for group in response.groups:
                if group.error_code:
                    settle(answer, group.group_id, group.error_code)
                else:
                    answer.done[group.group_id] = _classic(group, coordinator)
            return answer

        return await self._calls.ask_each(call, group_ids, coordinators(self._calls), ask)

    async def delete_consumer_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Outcomes[str, None]:
        """Deletes groups that have no members, and their offsets with them."""
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
        """Takes static members out of a group without waiting for their sessions to end; all members, also dynamic ones, unless some are
        named. The outcomes are by group.instance.id, or by member id for members without one."""
        call = self._calls.begin("remove_members_from_consumer_group", timeout_ms)
        given = reason[:_REASON_SIZE_MAX] if reason else _REMOVED
        if members is None:
            identities = await self._all_members(group_id, given, timeout_ms)
        else:
            identities = [MemberIdentity("", member.group_instance_id, given) for member in members]
            if not identities:
                raise IllegalArgument("Invalid empty members has been provided")
        keys = [identity.group_instance_id or identity.member_id for identity in identities]

        async def ask(call: Call, node_id: int, _: object) -> Answer[str, dict[str, int]]:
            response: LeaveGroupResponse = await self._calls.send(call, node_id, LeaveGroupRequest(group_id, members=identities))
            answer: Answer[str, dict[str, int]] = Answer()
            if response.error_code:
                settle(answer, group_id, response.error_code)
            else:
                answer.done[group_id] = {one.group_instance_id or one.member_id: one.error_code for one in response.members}
            return answer

        left = await self._calls.ask_each(call, [group_id], coordinators(self._calls), ask)
        return per_key(keys, left, group_id)

    async def _delete_groups(self, name: str, group_ids: Iterable[str], timeout_ms: int | None) -> Outcomes[str, None]:
        call = self._calls.begin(name, timeout_ms)

        async def ask(call: Call, node_id: int, groups: Sequence[str]) -> Answer[str, None]:
            response: DeleteGroupsResponse = await self._calls.send(call, node_id, DeleteGroupsRequest(list(groups)))
            answer: Answer[str, None] = Answer()
            for result in response.results:
                if result.error_code:
                    settle(answer, result.group_id, result.error_code)
                else:
                    answer.done[result.group_id] = None
            return answer

        return await self._calls.ask_each(call, group_ids, coordinators(self._calls), ask)

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
    ) -> Answer[str, ConsumerGroupDescription]:
        answer: Answer[str, ConsumerGroupDescription] = Answer()
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
    ) -> Answer[str, ConsumerGroupDescription]:
        response: DescribeGroupsResponse = await self._calls.send(call, node_id, DescribeGroupsRequest(list(groups), with_operations))
        coordinator = self._calls.directory.node(node_id)
        answer: Answer[str, ConsumerGroupDescription] = Answer()
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


def _at_once(ask: Ask, classic: set[str]) -> Ask:
    """Turns to the classic protocol in the same attempt for the groups that have just been found to be of it."""

    async def both(call: Call, node_id: int, groups: Sequence[str]) -> Answer[str, ConsumerGroupDescription]:
        answer = await ask(call, node_id, groups)
        left = [group for group in groups if group in classic and not answer.names(group)]
        if left:
            older = await ask(call, node_id, left)
            answer.done.update(older.done)
            answer.failed.update(older.failed)
            answer.moved |= older.moved
        return answer

    return both


def per_key(keys: Iterable[K], codes: Outcomes[str, dict[K, int]], group_id: str) -> Outcomes[K, None]:
    """The outcome of each key of one group: the group's error, if it has one, is that of all of them."""
    wanted = list(dict.fromkeys(keys))
    try:
        told = codes[group_id]
    except KafkaError as error:
        return Outcomes(wanted, {}, failed(wanted, error))
    errors = {key: error_for(told.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)) for key in wanted if told.get(key, -1)}
    return Outcomes(wanted, {key: None for key in wanted if key not in errors}, errors)


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
        # Brings all assignors with it, which few admin clients need.
        from barnabas.client.consumer.assignors.protocol import deserialize_assignment

        partitions = frozenset(deserialize_assignment(bytes(member.member_assignment)).partitions)
    return MemberDescription(member.member_id, member.group_instance_id, member.client_id, member.client_host, MemberAssignment(partitions))
