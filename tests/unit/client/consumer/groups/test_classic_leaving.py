"""A member of the classic protocol that leaves while its first JoinGroup is under way.

The coordinator has made a member id for it and completes no rebalance until that id joins, leaves, or its session times out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

from barnabas.client.cluster import Node
from barnabas.client.consumer.config import consumer_config
from barnabas.client.consumer.interceptors import ConsumerInterceptors
from barnabas.client.consumer.membership.classic_membership import ClassicMembership
from barnabas.client.consumer.membership.group_member import MemberEnvironment
from barnabas.client.consumer.membership.membership import REMAIN_IN_GROUP
from barnabas.client.consumer.membership.rebalance_listener import call_here
from barnabas.client.consumer.offsets.offset_reset import LATEST
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import Disconnected
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from tests.unit.client.consumer.paper_network import PaperClock, PaperNetwork, Sent

ID_REQUIRED = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given")


class Versions:
    def choose(self, api_key: int, *, highest: int | None = None) -> int:
        return 5


class GroupNetwork(PaperNetwork):
    """Its one node is the coordinator. `connected` is whether requests can be sent to it."""

    def __init__(self) -> None:
        super().__init__()
        self.connected = True

    async def find_coordinator(self, key: str, key_type: int, *, own_connection: bool) -> Node:
        return Node(7, "h", 9092)

    def connection_failed(self, node_id: int) -> bool:
        return False

    def versions(self, node_id: int) -> Versions | None:
        return Versions() if self.connected else None

    async def wait_for_change(self, timeout_ms: int) -> None:
        await asyncio.get_running_loop().create_future()

    async def next(self) -> Sent:
        while not self.sent:
            await asyncio.sleep(0)
        return self.sent.pop(0)


class Rig:
    def __init__(self) -> None:
        config = consumer_config({"bootstrap.servers": "nowhere:1", "group.id": "g", "enable.auto.commit": False}, {})
        self.clock = PaperClock()
        self.network = GroupNetwork()
        self.subscriptions = SubscriptionState(LATEST)
        self.subscriptions.subscribe(["t"])
        self.membership = ClassicMembership(
            MemberEnvironment(
                config=config,
                client=cast("NetworkClient", self.network),
                metadata=Metadata(config, clock=self.clock),
                subscriptions=self.subscriptions,
                clock=self.clock,
                random=Random(0),
                metrics=Metrics(self.clock),
                interceptors=ConsumerInterceptors([]),
                wake=lambda: None,
                call_user=call_here,
            )
        )

    async def begin_join(self) -> Sent:
        """A poll that ends while the first JoinGroup has no answer; gives that request."""
        joining = asyncio.ensure_future(self.membership.join_if_needed(self.clock.ms + 60_000))
        request = await self.network.next()
        joining.cancel()
        assert isinstance(request.request, JoinGroupRequest)
        assert request.request.member_id == ""
        return request

    def close(self, operation: str = "DEFAULT") -> asyncio.Task[None]:
        return asyncio.ensure_future(self.membership.close(self.clock.ms + 30_000, operation))


def run(work: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await work(Rig())

    asyncio.run(main())


async def settle() -> None:
    """Runs what can run without another answer."""
    for _ in range(50):
        await asyncio.sleep(0)


def who_leaves(sent: Sent) -> list[str]:
    assert isinstance(sent.request, LeaveGroupRequest)
    return [member.member_id for member in sent.request.members]


def test_a_consumer_that_closes_before_it_has_a_member_id_leaves_with_the_one_it_is_given() -> None:
    async def work(rig: Rig) -> None:
        first = await rig.begin_join()
        closing = rig.close()
        await settle()
        assert not closing.done()
        first.answer(ID_REQUIRED)
        leave = await rig.network.next()
        assert who_leaves(leave) == ["given"]
        leave.answer(LeaveGroupResponse())
        await closing

    run(work)


def test_a_first_join_that_is_answered_with_a_generation_is_left_too() -> None:
    """Static members, and brokers before MEMBER_ID_REQUIRED, are answered when the rebalance is over."""

    async def work(rig: Rig) -> None:
        first = await rig.begin_join()
        closing = rig.close()
        await settle()
        assert not closing.done()
        first.answer(JoinGroupResponse(generation_id=1, protocol_type="consumer", protocol_name="range", leader="given", member_id="given"))
        leave = await rig.network.next()
        assert who_leaves(leave) == ["given"]
        leave.answer(LeaveGroupResponse())
        await closing
        assert rig.network.take() == []

    run(work)


def test_unsubscribing_does_not_wait_for_the_member_id_and_leaves_when_it_arrives() -> None:
    async def work(rig: Rig) -> None:
        first = await rig.begin_join()
        await rig.membership.leave("unsubscribed")
        assert rig.network.take() == []
        again = await rig.begin_join()
        first.answer(ID_REQUIRED)
        assert who_leaves(await rig.network.next()) == ["given"]
        again.answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="second"))
        closing = rig.close()
        leave = await rig.network.next()
        assert who_leaves(leave) == ["second"]
        leave.answer(LeaveGroupResponse())
        await closing

    run(work)


def test_a_first_join_that_was_not_sent_is_not_waited_for() -> None:
    async def work(rig: Rig) -> None:
        rig.network.connected = False
        joining = asyncio.ensure_future(rig.membership.join_if_needed(rig.clock.ms + 60_000))
        await settle()
        joining.cancel()
        await rig.close()
        assert rig.network.take() == []

    run(work)


def test_a_first_join_whose_connection_breaks_is_not_left() -> None:
    async def work(rig: Rig) -> None:
        first = await rig.begin_join()
        closing = rig.close()
        await settle()
        assert not closing.done()
        first.fail(Disconnected("gone"))
        await closing
        assert rig.network.take() == []

    run(work)


def test_a_consumer_that_is_to_remain_in_the_group_does_not_leave() -> None:
    async def work(rig: Rig) -> None:
        await rig.begin_join()
        await rig.close(REMAIN_IN_GROUP)
        assert rig.network.take() == []

    run(work)
