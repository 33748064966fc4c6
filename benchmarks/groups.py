"""Consumer groups next to Apache Kafka's, by turns in one run: how long a group of the classic protocol needs until every member has its
assignment in one generation, when all come at once (`group.initial.rebalance.delay.ms=0` on both); and offset commits to 1,000 groups.

Members are bare state machines, one connection each: join, sync, heartbeat, and join again when told to. What they cost is the same for
both brokers.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from barnabas.network.event_loop import run as run_loop
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.registry import BY_NAME
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import CLIENT_ID, Client

MEMBERS = (10, 100, 500)
GROUPS = 1000
COMMIT_CONNECTIONS = 10
COMMIT_SECONDS = 5
TOPIC = "groups"
HEARTBEAT_SECONDS = 0.05  # how soon a member hears that it has to join again
VERSIONS = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "OffsetCommit": 8, "FindCoordinator": 3}


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    stable = {count: Comparison(f"{count} members to one stable generation", "s", 1 / 1.5, smaller_is_better=True) for count in MEMBERS}
    commits = Comparison(f"offset commits to {GROUPS:,} groups", "commits/s", 1.5)
    with peers.apache_kafka() as theirs, peers.barnabas() as ours:
        for peer in (ours, theirs):
            _prepare(peer)
        for turn in range(turns + 1):
            for peer in (ours, theirs):
                found = run_loop(_turn(peer, turn))
                if turn > 0:
                    for comparison, value in zip((*stable.values(), commits), found, strict=True):
                        (comparison.ours if peer is ours else comparison.theirs).append(value)
    return [*stable.values(), commits]


def _prepare(peer: Peer) -> None:
    """The topic, and the coordinator: the first who asks for one makes `__consumer_offsets`."""
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics([TOPIC], 10)
        while client.ask(FindCoordinatorRequest("first"), VERSIONS["FindCoordinator"]).error_code:
            time.sleep(0.05)


async def _turn(peer: Peer, turn: int) -> list[float]:
    found = [await _time_to_stable(peer, f"stable-{turn}-{count}", count) for count in MEMBERS]
    return [*found, await _commits_a_second(peer)]


async def _time_to_stable(peer: Peer, group: str, count: int) -> float:
    members = [Member(group) for _ in range(count)]
    await asyncio.gather(*(member.connect(peer.port) for member in members))
    began = time.perf_counter()
    tasks = [asyncio.ensure_future(member.take_part()) for member in members]
    while not _is_stable(members):
        await asyncio.sleep(0.005)
        for task in tasks:
            if task.done():
                task.result()
    took = time.perf_counter() - began
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for member in members:
        member.close()
    return took


def _is_stable(members: list[Member]) -> bool:
    return members[0].generation > 0 and all(each.is_assigned and each.generation == members[0].generation for each in members)


async def _commits_a_second(peer: Peer) -> float:
    committing = [Connection() for _ in range(COMMIT_CONNECTIONS)]
    await asyncio.gather(*(connection.connect(peer.port) for connection in committing))
    until = time.perf_counter() + COMMIT_SECONDS
    counts = await asyncio.gather(*(_commit(connection, number, until) for number, connection in enumerate(committing)))
    for connection in committing:
        connection.close()
    return sum(counts) / COMMIT_SECONDS


async def _commit(connection: Connection, number: int, until: float) -> int:
    """A commit after the other, to one group after the other; one partition each."""
    count = 0
    while time.perf_counter() < until:
        group = f"commits-{(count * COMMIT_CONNECTIONS + number) % GROUPS}"
        topic = OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(count % 10, count)])
        answer = await connection.ask(OffsetCommitRequest(group, topics=[topic]))
        code = answer.topics[0].partitions[0].error_code
        if code:
            raise RuntimeError(f"OffsetCommit was answered with error {code}")
        count += 1
    return count


class Connection:
    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    def close(self) -> None:
        self._writer.close()

    async def ask(self, request: Message) -> Any:
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        version = VERSIONS[api.name]
        self._writer.write(b"".join(request_frame(request, api, version, 1, CLIENT_ID)))
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        _, reader = parse_response_header(await self._reader.readexactly(size), api.response_header_version(version))
        return api.response.read(reader, version)


class Member(Connection):
    """One member of a group. It has an assignment of its generation, or is on the way to one."""

    def __init__(self, group: str) -> None:
        self.generation = -1
        self.is_assigned = False
        self._group = group
        self._id = ""

    async def take_part(self) -> None:
        while True:
            await self._join()
            if await self._sync():
                await self._stay()

    async def _join(self) -> None:
        self.is_assigned = False
        protocol = JoinGroupRequestProtocol("range", b"bench")
        while True:
            request = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=self._id,
                protocol_type="consumer",
                protocols=[protocol],
            )
            answer = await self.ask(request)
            self._id = answer.member_id
            if answer.error_code == ErrorCode.NONE:
                self.generation = answer.generation_id
                self._members = [each.member_id for each in answer.members]
                return
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                raise RuntimeError(f"JoinGroup was answered with error {answer.error_code}")

    async def _sync(self) -> bool:
        """The leader, who alone was told the members, gives each something."""
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self._id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(each, b"yours") for each in self._members],
        )
        answer = await self.ask(request)
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            raise RuntimeError(f"SyncGroup was answered with error {answer.error_code}")
        self.is_assigned = answer.error_code == ErrorCode.NONE
        return self.is_assigned

    async def _stay(self) -> None:
        """Until the group rebalances."""
        request = HeartbeatRequest(self._group, self.generation, self._id)
        while (await self.ask(request)).error_code == ErrorCode.NONE:
            await asyncio.sleep(HEARTBEAT_SECONDS)
