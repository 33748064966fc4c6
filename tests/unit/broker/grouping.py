"""A complete broker in this process for tests of groups. Frames go to its dispatcher without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from barnabas.broker.config import BrokerConfig
from barnabas.broker.server.server import BrokerServer
from barnabas.network.event_loop import run
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.delete_topics_response import DeleteTopicsResponse
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.messages.offset_fetch_response import OffsetFetchResponse
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from tests.unit.broker.handlers.asking import ask

M = TypeVar("M", bound=Message)

GROUP = "g"
PARTITIONS = 3  # of __consumer_offsets: a start is quicker with few of them
DEADLINE_S = 60


class Groups:
    """A broker that runs, and the requests of a group's members."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server
        self.broker = server.broker

    async def ask(self, request: Message, answer: type[M], version: int) -> M:
        return await ask(self.broker, request, answer, version)

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        created = await self.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1)], 10_000), CreateTopicsResponse, 7)
        assert [topic.error_code for topic in created.topics] == [0]

    async def delete_topic(self, name: str) -> None:
        deleted = await self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), DeleteTopicsResponse, 5)
        assert [topic.error_code for topic in deleted.responses] == [0]

    async def find(self, group: str = GROUP) -> FindCoordinatorResponse:
        return await self.ask(FindCoordinatorRequest(group), FindCoordinatorResponse, 3)

    async def ready(self, group: str = GROUP) -> None:
        """Until the group has a coordinator that has loaded it, as clients wait for theirs."""

        async def look() -> bool:
            coordinator, beat = await self.find(group), await self.heartbeat(0, "nobody", group=group)
            return coordinator.error_code == 0 and beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID

        await self.until(look)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not await condition():
                await turn_of_the_loop()

    async def join(self, member_id: str = "", version: int = 3, **fields: Any) -> JoinGroupResponse:
        given = {"group_id": GROUP, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", **fields}
        request = JoinGroupRequest(member_id=member_id, protocols=[JoinGroupRequestProtocol("range", b"metadata")], **given)
        return await self.ask(request, JoinGroupResponse, version)

    async def sync(self, joined: JoinGroupResponse, assignments: Mapping[str, bytes] | None = None, version: int = 3) -> SyncGroupResponse:
        request = SyncGroupRequest(GROUP, joined.generation_id, joined.member_id)
        if version >= 5:
            request.protocol_type, request.protocol_name = "consumer", "range"
        request.assignments = [SyncGroupRequestAssignment(member, data) for member, data in (assignments or {}).items()]
        return await self.ask(request, SyncGroupResponse, version)

    async def join_alone(self) -> JoinGroupResponse:
        """The only member of a stable group."""
        joined = await self.join()
        assert (joined.error_code, joined.leader) == (0, joined.member_id)
        assert (await self.sync(joined, {joined.member_id: b"mine"})).assignment == b"mine"
        return joined

    async def heartbeat(self, generation: int, member_id: str, version: int = 3, group: str = GROUP) -> HeartbeatResponse:
        return await self.ask(HeartbeatRequest(group, generation, member_id), HeartbeatResponse, version)

    async def commit(self, offset: int, topic: str = "t", joined: JoinGroupResponse | None = None) -> int:
        topics = [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset)])]
        request = OffsetCommitRequest(GROUP, topics=topics)
        if joined is not None:
            request.generation_id_or_member_epoch, request.member_id = joined.generation_id, joined.member_id
        return (await self.ask(request, OffsetCommitResponse, 8)).topics[0].partitions[0].error_code

    async def committed(self) -> dict[tuple[str, int], int]:
        response = await self.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)]), OffsetFetchResponse, 8)
        (group,) = response.groups
        assert group.error_code == 0
        return {
            (topic.name, partition.partition_index): partition.committed_offset for topic in group.topics for partition in topic.partitions
        }

    async def beat(self, member_id: str, epoch: int, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat of the consumer protocol."""
        request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_id": member_id, "member_epoch": epoch, **fields})
        return await self.ask(request, ConsumerGroupHeartbeatResponse, version)

    async def enter(self, member_id: str, *topics: str, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat of the consumer protocol."""
        given = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": list(topics), **fields}
        return await self.beat(member_id, 0, version, **given)


T = TypeVar("T")


async def turn_of_the_loop() -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_soon(over.set_result, None)
    await over


def settings(data: Path, **given: str) -> dict[str, str]:
    few = {"offsets.topic.num.partitions": str(PARTITIONS), "offsets.topic.replication.factor": "1"}
    quick = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}
    own = {name.replace("_", "."): value for name, value in given.items()}
    return {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(data), **few, **quick, **own}


def with_groups(data: Path, use: Callable[[Groups], Awaitable[T]], **given: str) -> T:
    """Starts a broker, does something to it, stops it cleanly."""

    async def life() -> T:
        server = BrokerServer(BrokerConfig.from_properties(settings(data, **given)))
        await server.start()
        try:
            return await asyncio.wait_for(use(Groups(server)), 2 * DEADLINE_S)
        finally:
            await server.shutdown(1000)

    return run(life())
