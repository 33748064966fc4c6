"""Joining, syncing, heartbeats and leaving, with a coordinator whose answers are written down beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from barnabas.client.clock import SystemClock
from barnabas.client.consumer.assignors import Assignment, RangeAssignor, RebalanceProtocol, StickyAssignor, Subscription
from barnabas.client.consumer.assignors.protocol import (
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from barnabas.client.consumer.config import consumer_config
from barnabas.client.consumer.membership.classic_exchange import ClassicExchange
from barnabas.client.consumer.membership.classic_leader import Leader
from barnabas.client.consumer.membership.classic_member import ClassicHeartbeatResult, ClassicMember, ClassicMemberState, Generation
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager
from barnabas.client.consumer.membership.group_metrics import GroupMetrics
from barnabas.client.consumer.membership.metadata_watch import MetadataWatch
from barnabas.client.consumer.offsets.offset_reset import LATEST
from barnabas.client.consumer.offsets.subscription_state import SubscriptionState
from barnabas.client.errors import (
    Disconnected,
    IllegalGeneration,
    IllegalState,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
)
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.metadata import Metadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.topic_partition import TopicPartition

CLOCK = SystemClock()
GIVEN = Assignment((TopicPartition("t", 0),))


class Scripted:
    """Answers in order. What was sent is kept, and who is said not to be the coordinator."""

    def __init__(self, answers: list[Message | KafkaError], version: int) -> None:
        self.answers = answers
        self.sent: list[Message] = []
        self.noted: list[KafkaError] = []
        self.node = "somewhere"
        self.version = version

    async def send(self, kind: object, build: Callable[[int], Message], expected: object, *, timeout_ms: int | None = None) -> Message:
        self.sent.append(build(self.version))
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def note(self, error: KafkaError) -> None:
        self.noted.append(error)


class Rig:
    def __init__(self, *answers: Message | KafkaError, version: int = 9) -> None:
        config = consumer_config({"bootstrap.servers": "localhost:1", "group.id": "g", "client.rack": "here"}, {})
        self.coordinator = Scripted(list(answers), version)
        self.member = ClassicMember("g", None)
        self.subscriptions = SubscriptionState(LATEST)
        self.subscriptions.subscribe(["t"])
        self.metadata = Metadata(config, clock=CLOCK)
        self.metadata.set_topics(["t"])
        self.told_joined = 0
        watch = MetadataWatch(self.metadata, self.subscriptions, "")
        self.leader = Leader(self.metadata, self.subscriptions, watch, RebalanceProtocol.EAGER)
        self.watch = watch
        self.exchange = ClassicExchange(
            config,
            cast("CoordinatorRequestManager", self.coordinator),
            self.member,
            self.leader,
            self.subscriptions,
            [RangeAssignor(), StickyAssignor()],
            clock=CLOCK,
            metrics=GroupMetrics(Metrics(CLOCK), lambda: 0),
            on_joined=self._note_joined,
        )

    def _note_joined(self) -> None:
        self.told_joined += 1

    def know(self, **partitions: int) -> None:
        """Metadata has been told of these topics."""
        topics = [
            MetadataResponseTopic(name=name, partitions=[MetadataResponsePartition(0, number, 1, 0, [1], [1]) for number in range(count)])
            for name, count in partitions.items()
        ]
        response = MetadataResponse(brokers=[MetadataResponseBroker(1, "h", 9092)], topics=topics)
        self.metadata.update(response, 12, self.metadata.next_question(), CLOCK.monotonic_ms())

    def join(self) -> bytes:
        self.member.begin_join()
        assignment: bytes = run(self.exchange.join)
        return assignment


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        return await work()

    return asyncio.run(main())


def joined(leader: str = "other", members: dict[str, Subscription] | None = None, skip: bool = False) -> JoinGroupResponse:
    rows = [JoinGroupResponseMember(name, None, serialize_subscription(one)) for name, one in (members or {}).items()]
    return JoinGroupResponse(
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        skip_assignment=skip,
        member_id="me",
        members=rows,
    )


def synced(code: int = 0, protocol: str | None = "range") -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, protocol_type="consumer", protocol_name=protocol, assignment=serialize_assignment(GIVEN))


def test_a_follower_joins_and_is_given_its_assignment() -> None:
    rig = Rig(joined(), synced())
    assert deserialize_assignment(rig.join()) == GIVEN
    assert (rig.member.state, rig.member.generation, rig.told_joined) == (ClassicMemberState.STABLE, Generation(3, "me", "range"), 1)


def test_a_join_tells_subscription_assignors_and_why() -> None:
    rig = Rig(joined(), synced())
    rig.member.rejoin_reason = "because" * 100
    rig.join()
    request = rig.coordinator.sent[0]
    assert isinstance(request, JoinGroupRequest)
    assert [protocol.name for protocol in request.protocols] == ["range", "sticky"]
    assert deserialize_subscription(request.protocols[0].metadata) == Subscription(("t",), rack_id="here")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms, request.protocol_type) == (45_000, 300_000, "consumer")
    assert (request.reason, rig.exchange.joined_subscription) == (("because" * 100)[:255], frozenset({"t"}))


def test_a_follower_sends_no_assignments() -> None:
    rig = Rig(joined(), synced())
    rig.join()
    request = rig.coordinator.sent[1]
    assert isinstance(request, SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.protocol_name, request.assignments) == (3, "me", "range", [])


def test_the_leader_divides_the_partitions_of_all_members() -> None:
    rig = Rig(joined("me", {"me": Subscription(("t",)), "you": Subscription(("t",))}), synced())
    rig.know(t=3)
    rig.join()
    request = rig.coordinator.sent[1]
    assert isinstance(request, SyncGroupRequest)
    given = {one.member_id: [part.partition for part in deserialize_assignment(one.assignment).partitions] for one in request.assignments}
    assert given == {"me": [0, 1], "you": [2]}


def test_the_leader_sees_that_partitions_were_added() -> None:
    rig = Rig(joined("me", {"me": Subscription(("t",))}), synced())
    rig.know(t=3)
    rig.join()
    rig.leader.joined()
    rig.know(t=3)
    rig.watch.look()
    assert not rig.leader.out_of_date
    rig.know(t=4)
    rig.watch.look()
    assert rig.leader.out_of_date


def test_a_follower_does_not_watch() -> None:
    rig = Rig(joined("me", {"me": Subscription(("t",))}), synced(), joined(), synced())
    rig.know(t=3)
    rig.join()
    rig.leader.step_down()
    rig.join()
    rig.leader.joined()
    rig.know(t=4)
    rig.watch.look()
    assert not rig.leader.out_of_date


def test_a_static_leader_that_comes_back_keeps_the_assignment() -> None:
    rig = Rig(joined("me", {"me": Subscription(("t",))}, skip=True), synced())
    rig.know(t=3)
    rig.join()
    request = rig.coordinator.sent[1]
    assert isinstance(request, SyncGroupRequest)
    assert request.assignments == []


def test_the_leader_watches_the_topics_of_the_others() -> None:
    rig = Rig(joined("me", {"me": Subscription(("t",)), "you": Subscription(("u",))}), synced())
    rig.know(t=1)

    async def work() -> bytes:
        joining = asyncio.ensure_future(rig.exchange.join())
        while not rig.metadata.update_requested:
            await asyncio.sleep(0)
        rig.know(t=1, u=2)
        return await joining

    rig.member.begin_join()
    run(work)
    assert rig.metadata.topics_wanted() == {"t", "u"}


@pytest.mark.parametrize(
    ("code", "error"),
    [(ErrorCode.MEMBER_ID_REQUIRED, MemberIdRequired), (ErrorCode.NOT_COORDINATOR, NotCoordinator)],
)
def test_a_refused_join_is_raised_and_the_coordinator_looked_at(code: int, error: type[KafkaError]) -> None:
    rig = Rig(JoinGroupResponse(error_code=code, member_id="given"))
    with pytest.raises(error):
        rig.join()
    assert [type(one) for one in rig.coordinator.noted] == [error]


@pytest.mark.parametrize(
    ("code", "error"),
    [(ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgress), (ErrorCode.ILLEGAL_GENERATION, IllegalGeneration)],
)
def test_a_refused_sync_is_raised(code: int, error: type[KafkaError]) -> None:
    rig = Rig(joined(), synced(code))
    with pytest.raises(error):
        rig.join()


def test_a_group_of_another_kind_is_refused() -> None:
    rig = Rig(JoinGroupResponse(generation_id=1, protocol_type="connect", protocol_name="range", member_id="me"))
    with pytest.raises(InconsistentGroupProtocol):
        rig.join()


def test_an_assignor_that_this_member_does_not_have_is_refused() -> None:
    answer = joined("me", {"me": Subscription(("t",))})
    answer.protocol_name = "nonsense"
    rig = Rig(answer)
    with pytest.raises(IllegalState, match="Coordinator selected invalid assignment protocol: nonsense"):
        rig.join()


def test_a_heartbeat_is_sent_in_the_present_generation() -> None:
    rig = Rig(joined(), synced(), HeartbeatResponse())
    rig.join()
    assert run(rig.exchange.heartbeat) == (ClassicHeartbeatResult.LIVES, None)
    request = rig.coordinator.sent[2]
    assert isinstance(request, HeartbeatRequest)
    assert (request.generation_id, request.member_id) == (3, "me")


def test_a_heartbeat_without_an_answer_is_tried_again() -> None:
    rig = Rig(joined(), synced(), Disconnected("gone"))
    rig.join()
    assert run(rig.exchange.heartbeat)[0] is ClassicHeartbeatResult.FAILED


@pytest.mark.parametrize(("version", "named"), [(2, ("me", [])), (5, ("", ["me"]))])
def test_leaving_is_said_as_the_coordinator_understands_it(version: int, named: tuple[str, list[str]]) -> None:
    rig = Rig(LeaveGroupResponse(), version=version)
    run(lambda: rig.exchange.leave("me", "enough", None))
    (request,) = rig.coordinator.sent
    assert isinstance(request, LeaveGroupRequest)
    assert (request.member_id, [one.member_id for one in request.members]) == named


def test_leaving_never_fails() -> None:
    rig = Rig(Disconnected("gone"), LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    run(lambda: rig.exchange.leave("me", "enough", None))
    run(lambda: rig.exchange.leave("me", "enough", None))
