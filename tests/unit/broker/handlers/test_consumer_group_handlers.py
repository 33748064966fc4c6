"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, asked of a broker that runs, in every version."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.requests.authorized_operations import NOT_ASKED_FOR
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from barnabas.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tests.unit.broker.grouping import GROUP, Groups, with_groups

VERSIONS = range(2)
ALL_ON_GROUP = 3400  # read, delete, describe, describe configs, alter configs: bits 3, 6, 8, 10, 11, as Apache Kafka 4.2 answers


def partitions(answer: ConsumerGroupHeartbeatResponse) -> list[list[int]]:
    assert answer.assignment is not None
    return [topic.partitions for topic in answer.assignment.topic_partitions]


async def describe(groups: Groups, *names: str, version: int = 1, authorized: bool = False) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(list(names), authorized)
    return (await groups.ask(request, ConsumerGroupDescribeResponse, version)).groups


@pytest.mark.parametrize("version", VERSIONS)
def test_the_only_member_gets_everything(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t", 3)
        await groups.ready()
        answer = await groups.enter("m", "t", version=version)
        assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (0, "m", 1, 5_000)
        assert partitions(answer) == [[0, 1, 2]]

    with_groups(tmp_path, use)


def test_the_second_member_waits_until_the_first_has_given_back(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t", 2)
        await groups.ready()
        topic_id = groups.broker.metadata_cache.topic_id("t")
        assert topic_id is not None
        first = await groups.enter("a", "t")
        second = await groups.enter("b", "t")
        assert partitions(second) == []
        revoked = await groups.beat("a", first.member_epoch, topic_partitions=[TopicPartitions(topic_id, [0, 1])])
        (kept,) = partitions(revoked)
        assert len(kept) == 1
        await groups.beat("a", first.member_epoch, topic_partitions=[TopicPartitions(topic_id, kept)])
        second = await groups.beat("b", second.member_epoch)
        assert partitions(second) == [[1 - kept[0]]]

    with_groups(tmp_path, use)


def test_a_member_may_subscribe_by_an_expression(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("orders-1")
        await groups.create_topic("other")
        await groups.ready()
        entered = await groups.enter("m", subscribed_topic_names=None, subscribed_topic_regex="orders-.*")
        responses: list[ConsumerGroupHeartbeatResponse] = [entered]

        async def is_assigned() -> bool:
            responses.append(await groups.beat("m", responses[-1].member_epoch))
            return responses[-1].assignment is not None

        if not partitions(entered):
            await groups.until(is_assigned)
        assert partitions(responses[-1]) == [[0]]

    with_groups(tmp_path, use)


def test_a_request_that_makes_no_sense_is_refused_in_kafka_s_words(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        answer = await groups.beat("m", 0)
        text = "RebalanceTimeoutMs must be provided in first request."
        assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, text)
        answer = await groups.enter("m", "t", server_assignor="mine")
        text = "ServerAssignor mine is not supported. Supported assignors: uniform, range."
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_ASSIGNOR, text)

    with_groups(tmp_path, use)


def test_a_member_of_no_group_is_told_so(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        assert (await groups.beat("m", 3)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    with_groups(tmp_path, use)


@pytest.mark.parametrize("version", VERSIONS)
def test_groups_are_described_in_the_order_asked_and_others_with_their_error(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        await groups.enter("m", "t")
        nobody, described = await describe(groups, "nobody", GROUP, version=version)
        assert (nobody.group_id, nobody.error_code, nobody.authorized_operations) == ("nobody", ErrorCode.GROUP_ID_NOT_FOUND, NOT_ASKED_FOR)
        assert (described.group_state, described.group_epoch, described.assignor_name) == ("Stable", 1, "uniform")
        (member,) = described.members
        assert (member.member_id, member.client_id, member.client_host, member.subscribed_topic_names) == ("m", "test", "/127.0.0.1", ["t"])
        assert [(topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions] == [("t", [0])]
        assert member.member_type == (1 if version >= 1 else -1)

    with_groups(tmp_path, use)


def test_who_asks_is_told_what_may_be_done_with_the_groups_that_are_there(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.create_topic("t")
        await groups.ready()
        await groups.enter("m", "t")
        described = await describe(groups, GROUP, "nobody", authorized=True)
        assert [group.authorized_operations for group in described] == [ALL_ON_GROUP, NOT_ASKED_FOR]
        assert [group.authorized_operations for group in await describe(groups, GROUP)] == [NOT_ASKED_FOR]

    with_groups(tmp_path, use)


def test_where_the_protocol_is_not_enabled_nothing_of_it_is_answered(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        assert (await groups.enter("m", "t")).error_code == ErrorCode.UNSUPPORTED_VERSION
        described = await describe(groups, "a", "b")
        assert [(group.group_id, group.error_code) for group in described] == [("a", 35), ("b", 35)]

    with_groups(tmp_path, use, group_coordinator_rebalance_protocols="classic")


def test_a_cluster_that_runs_on_an_older_level_has_no_consumer_groups(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        await groups.broker.features.finalize({})
        assert (await groups.enter("m", "t")).error_code == ErrorCode.UNSUPPORTED_VERSION

    with_groups(tmp_path, use)
