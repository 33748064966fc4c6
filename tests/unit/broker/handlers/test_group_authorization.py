"""What the handlers of groups and their offsets refuse and hide from a client that an authorizer does not allow it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.handlers.find_coordinator import GROUP, SHARE, TRANSACTION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribeGroupsResponse
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_delete_response import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.unit.broker.grouping import GROUP as OF_THE_CONSUMERS
from tests.unit.broker.grouping import Groups, with_groups
from tests.unit.broker.handlers.asking import a_broker as any_broker
from tests.unit.broker.handlers.asking import ask, asked, id_of, topic
from tests.unit.broker.handlers.coordinating import answered, coordinating
from tests.unit.broker.handlers.granting import decisions, granting
from tests.unit.broker.handlers.test_offset_fetch import found, request
from tests.unit.coordinator.coordinator_host import Host

DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
NAMES = ("t", "u", "v", "w")  # t and u exist


def broker_granting(*grants: str, host: Host | None = None) -> Broker:
    return coordinating(host or Host(), access=granting(*grants))


# Requests about the group g that need READ on it, their responses, and the versions.
OF_MEMBERS: list[tuple[Message, type[Message], range]] = [
    (JoinGroupRequest("g", session_timeout_ms=10_000), JoinGroupResponse, range(10)),
    (SyncGroupRequest("g", 1, "m"), SyncGroupResponse, range(5)),
    (SyncGroupRequest("g", 1, "m", None, "consumer", "range"), SyncGroupResponse, range(5, 6)),
    (HeartbeatRequest("g", 1, "m"), HeartbeatResponse, range(5)),
    (LeaveGroupRequest("g", "m"), LeaveGroupResponse, range(3)),
    (LeaveGroupRequest("g"), LeaveGroupResponse, range(3, 6)),
]


@pytest.mark.parametrize(
    ("message", "response", "version"), [(message, response, version) for message, response, versions in OF_MEMBERS for version in versions]
)
def test_the_requests_of_members_need_read_on_the_group(message: Message, response: type[Message], version: int) -> None:
    for grant in ("DESCRIBE group g", "READ group h", "READ topic g"):
        refused: Any = answered(broker_granting(grant), message, response, version)
        assert refused.error_code == DENIED
    allowed: Any = answered(broker_granting("READ group g"), message, response, version)
    assert allowed.error_code != DENIED


def test_a_denied_join_has_the_protocol_name_that_its_version_can_carry() -> None:
    names = [answered(broker_granting(), OF_MEMBERS[0][0], JoinGroupResponse, version).protocol_name for version in range(10)]
    assert names == [""] * 7 + [None] * 3


def test_a_sync_without_a_protocol_is_refused_for_that_first() -> None:
    broker = broker_granting()
    assert answered(broker, SyncGroupRequest("g", 1, "m"), SyncGroupResponse, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert decisions(broker.access) == []


def commit(broker: Broker, version: int, group: str = "g") -> list[tuple[str, int]]:
    partitions = [OffsetCommitRequestPartition(0, 7)]
    by_id = version >= 10
    topics = [OffsetCommitRequestTopic("" if by_id else name, id_of(name) if by_id else Uuid.ZERO, partitions) for name in NAMES]
    response = asyncio.run(ask(broker, OffsetCommitRequest(group, topics=topics), OffsetCommitResponse, version))
    return sorted(
        (topic_result.name or topic_result.topic_id.value.decode().strip("."), part.error_code)
        for topic_result in response.topics
        for part in topic_result.partitions
    )


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_committed_with_read_on_the_group_and_on_the_topics(version: int) -> None:
    assert commit(broker_granting("READ topic t", "DESCRIBE group g"), version) == [(name, DENIED) for name in NAMES]
    host = Host()
    committed = commit(broker_granting("READ group g", "READ topic t", "READ topic v", "DESCRIBE topic u", host=host), version)
    unknown_id = int(ErrorCode.UNKNOWN_TOPIC_ID)
    unknown = [("v", unknown_id), ("w", unknown_id)] if version >= 10 else [("v", UNKNOWN), ("w", TOPIC_DENIED)]
    assert committed == [("t", 0), ("u", TOPIC_DENIED), *unknown]
    everything = coordinating(host)
    assert found(answered(everything, request(1, [("t", [0]), ("u", [0])], "g"), OffsetFetchResponse, 1)) == [
        ("t", 0, 7, 0),
        ("u", 0, -1, 0),
    ]


def test_offsets_of_the_metadata_store_are_checked_as_well() -> None:
    assert commit(broker_granting(), 0) == [(name, DENIED) for name in NAMES]
    broker = any_broker(topic("t"), topic("u"), access=granting("READ group g", "READ topic v"))
    assert commit(broker, 0) == [("t", TOPIC_DENIED), ("u", TOPIC_DENIED), ("v", UNKNOWN), ("w", TOPIC_DENIED)]


def offsets(broker: Broker, version: int, names: tuple[str, ...] | None = NAMES) -> tuple[int, list[tuple[str, int, int, int]]]:
    """The error of the group, and what was found."""
    topics = None if names is None else [(name, [0]) for name in names]
    response = asked(broker, request(version, topics, "g"), OffsetFetchResponse, version)
    results: OffsetFetchResponse | OffsetFetchResponseGroup = response if version < 8 else response.groups[0]
    return results.error_code, sorted((name or "", *rest) for name, *rest in found(results))  # type: ignore[misc]


@pytest.mark.parametrize("version", range(11))
def test_offsets_are_fetched_with_describe_on_the_group(version: int) -> None:
    code, parts = offsets(broker_granting("READ group g", "DESCRIBE topic t"), version)
    if version < 2:
        assert (code, parts) == (0, [(name, 0, -1, DENIED) for name in NAMES])
    else:
        assert (code, parts) == (DENIED, [])


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_are_fetched_of_topics_that_the_client_may_describe(version: int) -> None:
    host = Host()
    for name in ("t", "u"):
        host.commit(5, topic=name)
    code, parts = offsets(broker_granting("DESCRIBE group g", "DESCRIBE topic t", "DESCRIBE topic v", host=host), version)
    assert (code, parts) == (0, [("t", 0, 5, 0), ("u", 0, -1, TOPIC_DENIED), ("v", 0, -1, 0), ("w", 0, -1, TOPIC_DENIED)])


def test_offsets_are_fetched_by_id_of_topics_that_the_client_may_describe() -> None:
    host = Host()
    for name in ("t", "u"):
        host.commit(5, topic=name)
    broker = broker_granting("DESCRIBE group g", "DESCRIBE topic t", host=host)
    response = answered(broker, request(10, [("t", [0]), ("u", [0]), ("v", [0])], "g"), OffsetFetchResponse, 10)
    assert [(seen.topic_id, part.committed_offset, part.error_code) for seen in response.groups[0].topics for part in seen.partitions] == [
        (id_of("t"), 5, 0),
        (id_of("v"), -1, ErrorCode.UNKNOWN_TOPIC_ID),
        (id_of("u"), -1, TOPIC_DENIED),
    ]


@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_of_a_group_are_those_of_topics_that_the_client_may_describe(version: int) -> None:
    host = Host()
    for name in ("t", "u"):
        host.commit(5, topic=name)
    broker = broker_granting("DESCRIBE group g", "DESCRIBE topic u", host=host)
    response = answered(broker, request(version, None, "g"), OffsetFetchResponse, version)
    topics = response.topics if version < 8 else response.groups[0].topics
    assert [[part.committed_offset for part in seen.partitions] for seen in topics] == [[5]]
    seen = topics[0]
    assert getattr(seen, "topic_id", None) == id_of("u") if version >= 10 else seen.name == "u"


def test_the_old_offsets_of_the_metadata_store_are_hidden_as_well() -> None:
    async def fetch() -> OffsetFetchResponse:
        broker = any_broker(topic("t"), topic("u"), access=granting("DESCRIBE group g", "DESCRIBE topic t"))
        await broker.tree.connect()
        return await ask(broker, request(0, [(name, [0]) for name in NAMES], "g"), OffsetFetchResponse, 0)

    assert found(asyncio.run(fetch())) == [("t", 0, -1, UNKNOWN), *((name, 0, -1, TOPIC_DENIED) for name in ("u", "v", "w"))]


def test_one_denied_group_does_not_affect_another() -> None:
    host = Host()
    host.commit(5, group="h")
    broker = broker_granting("DESCRIBE group h", "DESCRIBE topic t", host=host)
    response = answered(broker, request(8, [("t", [0])], "g", "h"), OffsetFetchResponse, 8)
    assert [(group.group_id, group.error_code, found(group)) for group in response.groups] == [
        ("g", DENIED, []),
        ("h", 0, [("t", 0, 5, 0)]),
    ]


def test_offset_delete_needs_delete_on_the_group_and_read_on_the_topics() -> None:
    host = Host()
    for name in ("t", "u"):
        host.commit(5, topic=name)
    topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in NAMES]
    message = OffsetDeleteRequest("g", topics)
    refused = answered(broker_granting("READ group g", "READ topic t", host=host), message, OffsetDeleteResponse, 0)
    assert refused == OffsetDeleteResponse(DENIED)
    broker = broker_granting("DELETE group g", "READ topic t", "READ topic v", host=host)
    response = answered(broker, message, OffsetDeleteResponse, 0)
    assert sorted((seen.name, part.error_code) for seen in response.topics for part in seen.partitions) == [
        ("t", 0),
        ("u", TOPIC_DENIED),
        ("v", UNKNOWN),
        ("w", TOPIC_DENIED),
    ]
    assert offsets(coordinating(host), 8, ("t", "u"))[1] == [("t", 0, -1, 0), ("u", 0, 5, 0)]


@pytest.mark.parametrize("version", range(7))
def test_describe_groups_needs_describe_on_each_group(version: int) -> None:
    host = Host()
    host.stable()
    broker = broker_granting("DESCRIBE group g", "READ group h", host=host)
    message = DescribeGroupsRequest(["h", "g"], include_authorized_operations=version >= 3)
    denied, described = answered(broker, message, DescribeGroupsResponse, version).groups
    assert (denied.group_id, denied.error_code, denied.group_state, denied.members) == ("h", DENIED, "", [])
    assert (described.group_id, described.error_code, described.group_state) == ("g", 0, "Stable")
    if version >= 3:
        assert described.authorized_operations == 1 << AclOperation.DESCRIBE


@pytest.mark.parametrize("version", range(3))
def test_delete_groups_needs_delete_on_each_group(version: int) -> None:
    host = Host()
    for group in ("g", "h"):
        host.commit(5, group=group)
    broker = broker_granting("DELETE group h", "READ group g", host=host)
    response = answered(broker, DeleteGroupsRequest(["g", "h", "g"]), DeleteGroupsResponse, version)
    assert [(result.group_id, result.error_code) for result in response.results] == [("h", 0), ("g", DENIED)]
    listed = answered(coordinating(host), ListGroupsRequest(), ListGroupsResponse, 4)
    assert [group.group_id for group in listed.groups] == ["g"]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("grants", "listed"), [((), []), (("DESCRIBE group h",), ["h"]), (("DESCRIBE cluster",), ["g", "h"])])
def test_groups_are_listed_with_describe_on_the_cluster_or_on_each(version: int, grants: tuple[str, ...], listed: list[str]) -> None:
    host = Host()
    for group in ("g", "h"):
        host.commit(5, group=group)
    response = answered(broker_granting(*grants, host=host), ListGroupsRequest(), ListGroupsResponse, version)
    assert (response.error_code, sorted(group.group_id for group in response.groups)) == (0, listed)


KEY = f"g:{Uuid(b'1' * 16)}:0"


def locate(broker: Broker, key_type: int, key: str, version: int) -> tuple[int, str | None]:
    fields: dict[str, Any] = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
    response = asked(broker, FindCoordinatorRequest(key_type=key_type, **fields), FindCoordinatorResponse, version)
    if version < 4:
        return response.error_code, response.error_message
    return response.coordinators[0].error_code, response.coordinators[0].error_message


@pytest.mark.parametrize("version", range(7))
def test_the_coordinator_is_for_those_who_may_describe_the_group_or_the_transactional_id(version: int) -> None:
    text = "" if version == 0 else "Group authorization failed."
    broker = any_broker(topic("__consumer_offsets"), topic("__transaction_state"), access=granting("DESCRIBE group g", "READ group h"))
    assert locate(broker, GROUP, "g", version)[0] == 0
    assert locate(broker, GROUP, "h", version) == (DENIED, "" if version >= 4 else text)
    if version == 0:
        return
    assert locate(broker, TRANSACTION, "g", version)[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    broker.access = granting("DESCRIBE transactional_id g")
    assert locate(broker, TRANSACTION, "g", version)[0] == 0


def test_the_coordinator_of_share_groups_is_for_brokers() -> None:
    broker = any_broker(topic("__share_group_state"), access=granting("DESCRIBE group g"))
    assert locate(broker, SHARE, KEY, 6) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    assert locate(broker, SHARE, KEY, 5)[0] == ErrorCode.INVALID_REQUEST
    broker.access = granting("CLUSTER_ACTION cluster")
    assert locate(broker, SHARE, KEY, 6)[0] == 0


def test_a_consumer_group_is_joined_with_read_on_it_and_describe_on_the_topics(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        for grants, code in (
            (("DESCRIBE topic t",), DENIED),
            ((f"READ group {OF_THE_CONSUMERS}",), TOPIC_DENIED),
            ((f"READ group {OF_THE_CONSUMERS}", "READ topic t", "DESCRIBE topic u"), TOPIC_DENIED),
            ((f"READ group {OF_THE_CONSUMERS}", "DESCRIBE topic t"), 0),
        ):
            groups.broker.access = granting(*grants)
            assert (await groups.enter("m", "t")).error_code == code
        groups.broker.access = granting()
        assert (await groups.beat("m", 1)).error_code == DENIED

    with_groups(tmp_path, use)


def test_an_expression_matches_topics_that_the_member_may_describe(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        for name in ("orders-1", "orders-2"):
            await groups.create_topic(name)
        await groups.ready()
        groups.broker.access = granting(f"READ group {OF_THE_CONSUMERS}", "DESCRIBE topic orders-2")
        epochs = [(await groups.enter("m", subscribed_topic_names=None, subscribed_topic_regex="orders-.*")).member_epoch]
        owned: list[Uuid] = []

        async def is_assigned() -> bool:
            response = await groups.beat("m", epochs[-1])
            epochs.append(response.member_epoch)
            owned.extend(topic.topic_id for topic in (response.assignment.topic_partitions if response.assignment else ()))
            return bool(owned)

        await groups.until(is_assigned)
        assert owned == [groups.broker.metadata_cache.topic_id("orders-2")]

    with_groups(tmp_path, use)


def test_a_consumer_group_is_described_with_describe_on_it_and_on_its_topics(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        await groups.enter("m", "t")

        async def describe(*grants: str) -> list[tuple[str, int, int]]:
            groups.broker.access = granting(*grants)
            message = ConsumerGroupDescribeRequest([OF_THE_CONSUMERS, "other"], include_authorized_operations=True)
            response = await groups.ask(message, ConsumerGroupDescribeResponse, 1)
            return [(group.group_id, group.error_code, group.authorized_operations) for group in response.groups]

        none, bit = -(2**31), 1 << AclOperation.DESCRIBE
        assert await describe(f"READ group {OF_THE_CONSUMERS}", "DESCRIBE topic t") == [
            (OF_THE_CONSUMERS, DENIED, none),
            ("other", DENIED, none),
        ]
        described = f"DESCRIBE group {OF_THE_CONSUMERS}"
        assert await describe(described) == [("other", DENIED, none), (OF_THE_CONSUMERS, TOPIC_DENIED, none)]
        assert await describe(described, "DESCRIBE topic t") == [("other", DENIED, none), (OF_THE_CONSUMERS, 0, bit)]

    with_groups(tmp_path, use)
