"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.broker import Broker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribeGroupsResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tests.unit.broker.handlers.coordinating import answered, coordinating, sent
from tests.unit.coordinator.coordinator_host import Host

NOT_ASKED_FOR = -(2**31)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def with_groups() -> Host:
    """`g` has a member that reads `t`; `simple` has an offset of `t` and no member."""
    host = Host()
    host.stable()
    host.commit(5, group="simple")
    return host


def described(broker: Broker, version: int, *groups: str, operations: bool = False) -> list[Any]:
    return answered(broker, DescribeGroupsRequest(list(groups), operations), DescribeGroupsResponse, version).groups


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_the_order_asked_and_as_often(version: int) -> None:
    groups = described(coordinating(with_groups()), version, "simple", "g", "nobody", "g")
    assert [(group.group_id, group.group_state, len(group.members)) for group in groups] == [
        ("simple", "Empty", 0),
        ("g", "Stable", 1),
        ("nobody", "Dead", 0),
        ("g", "Stable", 1),
    ]
    assert (groups[1].protocol_type, groups[1].protocol_data, groups[1].members[0].client_id) == ("consumer", "range", "client")


@pytest.mark.parametrize("version", range(7))
def test_from_version_6_on_it_is_an_error_that_a_group_does_not_exist(version: int) -> None:
    (group,) = described(coordinating(Host()), version, "nobody")
    expected = (int(ErrorCode.GROUP_ID_NOT_FOUND), "Group nobody not found.") if version >= 6 else (0, None)
    assert (group.error_code, group.error_message) == expected


@pytest.mark.parametrize("version", range(3, 7))
def test_operations_are_told_to_those_who_ask_unless_the_group_has_an_error(version: int) -> None:
    broker = coordinating(with_groups())
    assert described(broker, version, "g")[0].authorized_operations == NOT_ASKED_FOR
    known, unknown = described(broker, version, "g", "nobody", operations=True)
    assert known.authorized_operations == 3400  # as Apache Kafka 4.2
    assert unknown.authorized_operations == (NOT_ASKED_FOR if version >= 6 else 3400)


def listed(host: Host, version: int, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[ListedGroup]:
    request = ListGroupsRequest(list(states), list(types))
    response = answered(coordinating(host), request, ListGroupsResponse, version)
    assert response.error_code == 0
    return sorted(response.groups, key=lambda group: group.group_id)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_with_what_the_version_has_room_for(version: int) -> None:
    states, kind = (("Stable", "Empty") if version >= 4 else ("", "")), ("classic" if version >= 5 else "")
    assert listed(with_groups(), version) == [
        ListedGroup("g", "consumer", states[0], kind),
        ListedGroup("simple", "", states[1], kind),
    ]


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        (("stable",), (), ["g"]),
        (("Empty", "Stable"), (), ["g", "simple"]),
        (("NoSuchState",), (), []),
        ((), ("Classic",), ["g", "simple"]),
        ((), ("consumer",), []),
        (("Empty",), ("classic", "consumer"), ["simple"]),
    ],
)
def test_a_filter_lets_through_what_it_names(states: tuple[str, ...], types: tuple[str, ...], names: list[str]) -> None:
    assert [group.group_id for group in listed(with_groups(), 5, states, types)] == names


def test_a_coordinator_that_does_not_run_lists_nothing() -> None:
    host = with_groups()
    host.coordinator.shutdown()
    response = answered(coordinating(host), ListGroupsRequest(), ListGroupsResponse, 5)
    assert response == ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


@pytest.mark.parametrize("version", range(3))
def test_a_group_without_members_is_deleted_and_every_group_answered_once(version: int) -> None:
    host = with_groups()
    request = DeleteGroupsRequest(["g", "simple", "nobody", "g"])
    assert answered(coordinating(host), request, DeleteGroupsResponse, version).results == [
        DeletableGroupResult("g", ErrorCode.NON_EMPTY_GROUP),
        DeletableGroupResult("simple", 0),
        DeletableGroupResult("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert [group.group_id for group in listed(host, 5)] == ["g"]
    assert host.fetch("simple") == (-1, 0)


def test_a_deletion_is_answered_when_it_is_replicated() -> None:
    host = with_groups()
    host.log.held_at = host.log.log_end_offset(0)
    pending = sent(coordinating(host), DeleteGroupsRequest(["simple"]), 2)
    assert pending.is_waiting
    host.log.held_at = None
    host.coordinator.high_watermark_updated(0, host.log.log_end_offset(0))
    assert pending.response().results == [DeletableGroupResult("simple", 0)]


def test_nothing_to_describe_or_delete_is_answered_with_nothing() -> None:
    broker = coordinating(with_groups())
    assert described(broker, 6) == []
    assert answered(broker, DeleteGroupsRequest(), DeleteGroupsResponse, 2).results == []


def offsets_deleted(host: Host, group: str, *topics: tuple[str, list[int]]) -> OffsetDeleteResponse:
    topics_deleted = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes]) for name, indexes in topics
    ]
    return answered(coordinating(host), OffsetDeleteRequest(group, topics_deleted), OffsetDeleteResponse, 0)


def of(name: str, *partitions: tuple[int, int]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(name, [OffsetDeleteResponsePartition(index, code) for index, code in partitions])


def test_offsets_are_deleted_and_partitions_that_do_not_exist_answered_first() -> None:
    host = with_groups()
    response = offsets_deleted(host, "simple", ("t", [0, 1, 66]), ("u", [0]), ("gone", [0]), ("t", [2]))
    assert response.topics == [of("t", (66, UNKNOWN), (0, 0), (1, 0), (2, 0)), of("gone", (0, UNKNOWN)), of("u", (0, 0))]
    assert host.fetch("simple") == (-1, 0)


def test_offsets_of_a_topic_that_members_read_are_kept() -> None:
    host = with_groups()
    response = offsets_deleted(host, "g", ("t", [0]), ("u", [0]))
    assert response.topics == [of("t", (0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)), of("u", (0, 0))]


@pytest.mark.parametrize(("group", "code"), [("nobody", ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)])
def test_an_error_of_the_group_is_all_the_answer(group: str, code: ErrorCode) -> None:
    assert offsets_deleted(with_groups(), group, ("t", [0]), ("gone", [0])) == OffsetDeleteResponse(error_code=code)


def test_the_group_is_asked_even_if_no_partition_exists() -> None:
    assert offsets_deleted(with_groups(), "simple", ("gone", [0]), ("no", [])).topics == [of("gone", (0, UNKNOWN)), of("no")]
    assert offsets_deleted(with_groups(), "nobody", ("gone", [0])).error_code == ErrorCode.GROUP_ID_NOT_FOUND
