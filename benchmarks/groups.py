"""Consumer groups next to Apache Kafka's, by turns in one run: how long a group of the classic protocol needs until every member has its
assignment in one generation, when all come at once (`group.initial.rebalance.delay.ms=0` on both); and offset commits to 1,000 groups.

Members are bare state machines, one connection each: join, sync, heartbeat every 50 ms, and join again when told to. A turn forms several
groups of each size, one after the other, and counts the median. Commits are prebuilt frames on ten connections, each with one in flight;
every answer is compared with the bytes of success. What the clients cost is the same for both brokers.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from barnabas.network.event_loop import run as run_loop
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, parse_response_header, request_frame, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.registry import BY_NAME
from benchmarks import peers
from benchmarks.peers import Peer
from benchmarks.report import Comparison, Figure
from benchmarks.wire import CLIENT_ID, Client

GROUPS_OF_SIZE: Final = {10: 15, 100: 9, 500: 5}  # how many groups of so many members a turn forms
GROUPS: Final = 1000
COMMIT_CONNECTIONS: Final = 10
COMMIT_SECONDS: Final = 5
TOPIC: Final = "groups"
PARTITIONS: Final = 10
HEARTBEAT_SECONDS: Final = 0.05  # how soon a member hears that it has to join again
STABLE_SECONDS_MAX: Final = 60
VERSIONS: Final = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "OffsetCommit": 8, "FindCoordinator": 3, "ApiVersions": 3}
CORRELATION_ID: Final = 1

Commits = list[tuple[bytes, bytes]]  # requests and the answers of success


def run(megabytes: int, turns: int) -> list[Figure | Comparison]:
    stable = {
        count: Comparison(f"{count} members to one stable generation", "ms", round(1 / 1.5, 2), smaller_is_better=True)
        for count in GROUPS_OF_SIZE
    }
    commits = Comparison(f"offset commits to {GROUPS:,} groups", "commits/s", 1.5)
    commits_of = [_commits_of(number) for number in range(COMMIT_CONNECTIONS)]
    with peers.apache_kafka() as theirs, peers.barnabas() as ours:
        for peer in (ours, theirs):
            _prepare(peer)
        for turn in range(turns + 1):
            for peer in (ours, theirs):
                found = run_loop(_turn(peer, turn, commits_of))
                if turn > 0:
                    for comparison, value in zip((*stable.values(), commits), found, strict=True):
                        (comparison.ours if peer is ours else comparison.theirs).append(value)
    return [*stable.values(), commits]


def _prepare(peer: Peer) -> None:
    """The topic, and the coordinator: the first who asks for one makes `__consumer_offsets`."""
    with Client("127.0.0.1", peer.port) as client:
        client.create_topics([TOPIC], PARTITIONS)
        while client.ask(FindCoordinatorRequest("first"), VERSIONS["FindCoordinator"]).error_code:
            time.sleep(0.05)


async def _turn(peer: Peer, turn: int, commits_of: list[Commits]) -> list[float]:
    found = []
    for members, groups in GROUPS_OF_SIZE.items():
        took = [await _time_to_stable(peer, f"stable-{turn}-{members}-{number}", members) for number in range(groups)]
        found.append(1000 * statistics.median(took))
    return [*found, await _commits_a_second(peer, commits_of)]


_GREETING: Final = b"".join(
    request_frame(ApiVersionsRequest("bench", "1"), BY_NAME["ApiVersions"], VERSIONS["ApiVersions"], CORRELATION_ID, CLIENT_ID)
)


class Connection(asyncio.Protocol):
    """One request in flight; what comes back goes to `received` as a frame, or ends the measurement when it cannot be taken."""

    def __init__(self, failed: asyncio.Future[Any]) -> None:
        self._failed = failed
        self._partial = b""
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    async def greet(self) -> None:
        self.transport.write(_GREETING)
        await self._greeted

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_closed:
            self.fail(error or ConnectionError("The broker has closed the connection"))

    def data_received(self, data: bytes) -> None:
        if self._partial:
            data = self._partial + data
        if len(data) < SIZE_PREFIX or len(data) < SIZE_PREFIX + int.from_bytes(data[:SIZE_PREFIX], "big"):
            self._partial = data
            return
        self._partial = b""
        if not self._greeted.done():
            self._greeted.set_result(None)
            return
        try:
            self.received(data)
        except Exception as error:
            self.fail(error)

    def received(self, frame: bytes) -> None:
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        for future in (self._greeted, self._failed):
            if not future.done():
                future.set_exception(error)

    def close(self) -> None:
        self.is_closed = True
        self.transport.close()


async def _connect(connections: Sequence[Connection], port: int) -> None:
    """Each is answered an ApiVersions, as real clients ask first: what the broker has not accepted yet is not measured with the rest."""
    loop = asyncio.get_running_loop()
    for connection in connections:
        await loop.create_connection(lambda connection=connection: connection, "127.0.0.1", port)  # type: ignore[misc]
        await connection.greet()


# -- members


async def _time_to_stable(peer: Peer, group: str, count: int) -> float:
    forming = Forming(count)
    members = [Member(group, forming) for _ in range(count)]
    await _connect(members, peer.port)
    began = time.perf_counter()
    for member in members:
        member.join()
    took = await asyncio.wait_for(forming.stable, STABLE_SECONDS_MAX) - began
    for member in members:
        member.close()
    return took


class Forming:
    """A group on its way: which generations have how many members with an assignment. `stable` is when all were in one."""

    def __init__(self, count: int) -> None:
        self.stable: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._count = count
        self._assigned: dict[int, int] = {}

    def entered(self, generation: int) -> None:
        self._assigned[generation] = self._assigned.get(generation, 0) + 1
        if self._assigned[generation] == self._count and not self.stable.done():
            self.stable.set_result(time.perf_counter())

    def left(self, generation: int) -> None:
        self._assigned[generation] -= 1


class Member(Connection):
    """One member of a group. It has an assignment of its generation, or is on the way to one."""

    def __init__(self, group: str, forming: Forming) -> None:
        super().__init__(forming.stable)
        self._group = group
        self._forming = forming
        self._loop = asyncio.get_running_loop()
        self._id = ""
        self._generation = -1
        self._waits_for = "JoinGroup"
        self._next: Callable[[Any], None] = self._joined

    def join(self) -> None:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self._id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"bench")],
        )
        self._ask("JoinGroup", request, self._joined)

    def received(self, frame: bytes) -> None:
        api = BY_NAME[self._waits_for]
        version = VERSIONS[self._waits_for]
        _, reader = parse_response_header(frame[SIZE_PREFIX:], api.response_header_version(version))
        self._next(api.response.read(reader, version))

    def _ask(self, name: str, request: Message, then: Callable[[Any], None]) -> None:
        self._waits_for, self._next = name, then
        self.transport.write(b"".join(request_frame(request, BY_NAME[name], VERSIONS[name], CORRELATION_ID, CLIENT_ID)))

    def _joined(self, answer: Any) -> None:
        self._id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.join()
            return
        _check("JoinGroup", answer.error_code)
        self._generation = answer.generation_id
        # The leader, who alone was told the members, gives each something.
        assignments = [SyncGroupRequestAssignment(each.member_id, b"yours") for each in answer.members]
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        self._ask("SyncGroup", request, self._synced)

    def _synced(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
            return
        _check("SyncGroup", answer.error_code)
        self._forming.entered(self._generation)
        self._beat()

    def _beat(self) -> None:
        if not self.is_closed:
            self._ask("Heartbeat", HeartbeatRequest(self._group, self._generation, self._id), self._heard)

    def _heard(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._forming.left(self._generation)
            self.join()
            return
        _check("Heartbeat", answer.error_code)
        self._loop.call_later(HEARTBEAT_SECONDS, self._beat)


def _check(name: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{name} was answered with error {code}")


# -- commits


async def _commits_a_second(peer: Peer, commits_of: list[Commits]) -> float:
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    committing = [Committing(commits, failed) for commits in commits_of]
    await _connect(committing, peer.port)
    began = time.perf_counter()
    for connection in committing:
        connection.commit()
    await asyncio.wait([failed], timeout=COMMIT_SECONDS)
    took = time.perf_counter() - began
    count = sum(connection.count for connection in committing)
    for connection in committing:
        connection.close()
    if failed.done():
        failed.result()
    return count / took


class Committing(Connection):
    """A commit after the other, one partition each, to one group after the other."""

    def __init__(self, commits: Commits, failed: asyncio.Future[None]) -> None:
        super().__init__(failed)
        self.count = 0
        self._commits = commits
        self._expected = b""

    def commit(self) -> None:
        request, self._expected = self._commits[self.count % len(self._commits)]
        self.transport.write(request)

    def received(self, frame: bytes) -> None:
        if frame != self._expected:
            raise RuntimeError(f"OffsetCommit was not answered with success: {frame.hex()}")
        self.count += 1
        if not self.is_closed:
            self.commit()


def _commits_of(number: int) -> Commits:
    """What one connection commits: the first partition of each group that is its own, then the second…, at growing offsets."""
    own = [f"commits-{group}" for group in range(number, GROUPS, COMMIT_CONNECTIONS)]
    commits: Commits = []
    for partition in range(PARTITIONS):
        expected = _committed(partition)
        for group in own:
            committed = OffsetCommitRequestPartition(partition, len(commits))
            request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=[committed])])
            frame = request_frame(request, BY_NAME["OffsetCommit"], VERSIONS["OffsetCommit"], CORRELATION_ID, CLIENT_ID)
            commits.append((b"".join(frame), expected))
    return commits


def _committed(partition: int) -> bytes:
    """The bytes of success."""
    topic = OffsetCommitResponseTopic(TOPIC, partitions=[OffsetCommitResponsePartition(partition)])
    header_version = BY_NAME["OffsetCommit"].response_header_version(VERSIONS["OffsetCommit"])
    frame = response_frame(OffsetCommitResponse(topics=[topic]), CORRELATION_ID, VERSIONS["OffsetCommit"], header_version)
    return b"".join(bytes(part) for part in frame if isinstance(part, bytes | memoryview))
